package prune

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"netsplit/model"
)

// Keys of a fit that are not a point's: the fault and its place.
const (
	keyFailure = "failure"
	keyPlace   = "place"
)

// fit is a fault at a point, as policies see it: PreFail's failure-injection task (§3.2),
// a value with keys, which can be compared and be in a set. It has the keys of the
// point's identity, failure and place, or some of them if it was reduced.
type fit struct {
	f    model.PointFault
	keys []string // of those it has, in the order of allKeys
	id   string   // by those keys
	hash uint32
	less map[string]*fit // what it was reduced to
}

// alias is a key under which the paper has what several keys of a point say.
type alias struct {
	of   []string // keys that it needs
	read func(f model.PointFault) string
}

// aliases are other names of keys: the paper's (§3.2, Table 1; Figures 14 and 15), and fault.
var aliases = map[string]alias{
	// As the policy "only" and --only call it.
	"fault": {[]string{keyFailure}, func(f model.PointFault) string { return string(f.Kind) }},
	// Where in the code: what is sent, received or done, on which port.
	"loc": {[]string{"side", "type", "port"}, func(f model.PointFault) string { return location(f.Point) }},
	// The stack: what the node does at the moment.
	"stack":    {[]string{"after", "stage"}, func(f model.PointFault) string { return strings.TrimSpace(f.Stage + " " + f.After) }},
	"func":     {[]string{"side"}, func(f model.PointFault) string { return string(f.Side) }},
	"target":   {[]string{"peer"}, func(f model.PointFault) string { return string(f.Peer) }},
	"ioType":   {[]string{"side", "type"}, func(f model.PointFault) string { return ioType(f.Point) }},
	"ioTarget": {[]string{"side"}, func(f model.PointFault) string { return ioTarget(f.Point) }},
	"sender":   {[]string{"side", "node", "peer"}, func(f model.PointFault) string { return string(sender(f.Point)) }},
	"receiver": {[]string{"side", "node", "peer"}, func(f model.PointFault) string { return string(receiver(f.Point)) }},
}

func location(p model.Point) string {
	if p.Port == 0 {
		return string(p.Side) + " " + p.Type
	}
	return fmt.Sprintf("%s %s :%d", p.Side, p.Type, p.Port)
}

// ioType is "write" for what others can see of a node, or its disk keeps; "read" for
// what changes the node alone (§4.5.1).
func ioType(p model.Point) string {
	op, _, _ := strings.Cut(p.Type, " ")
	if p.Side == model.SideReceive || p.Side == model.SideFile && slices.Contains([]string{"read", "open"}, op) {
		return "read"
	}
	return "write"
}

func ioTarget(p model.Point) string {
	if p.Side == model.SideFile {
		return "disk"
	}
	return "net"
}

func sender(p model.Point) model.NodeID {
	if p.Side == model.SideReceive {
		return p.Peer
	}
	return p.Node
}

func receiver(p model.Point) model.NodeID {
	if p.Side == model.SideReceive {
		return p.Node
	}
	return p.Peer
}

// allKeys lists the keys that a fit can have.
func allKeys() []string {
	out := []string{keyFailure, keyPlace}
	for _, k := range model.PointKeys() {
		out = append(out, string(k))
	}
	return out
}

// knownKey says that policies may name a key.
func knownKey(k string) bool {
	_, ok := aliases[k]
	return ok || slices.Contains(allKeys(), k)
}

// value is what a fault has under one of allKeys.
func value(f model.PointFault, k string) string {
	switch k {
	case keyFailure:
		return string(f.Kind)
	case keyPlace:
		return string(f.Place)
	}
	return f.Value(model.PointKey(k))
}

// newFit has all keys of the identity.
func newFit(f model.PointFault, identity []model.PointKey) *fit {
	return reduce(f, func(k string) bool {
		return k == keyFailure || k == keyPlace || slices.Contains(identity, model.PointKey(k))
	})
}

func reduce(f model.PointFault, has func(string) bool) *fit {
	out := &fit{f: f}
	for _, k := range allKeys() {
		if has(k) {
			out.keys = append(out.keys, k)
			v := value(f, k)
			out.id += fmt.Sprintf("%s=%d:%s;", k, len(v), v)
		}
	}
	out.hash, _ = starlark.String(out.id).Hash()
	return out
}

// reduced keeps the keys in the list, or all others (reducedFit). A key of the paper
// stands for those that it is made of.
func (f *fit) reduced(keys []string, include bool) *fit {
	name := fmt.Sprint(include, keys)
	if out := f.less[name]; out != nil {
		return out
	}
	var named []string
	for _, k := range keys {
		if a, ok := aliases[k]; ok {
			named = append(named, a.of...)
		} else {
			named = append(named, k)
		}
	}
	out := reduce(f.f, func(k string) bool { return slices.Contains(f.keys, k) && slices.Contains(named, k) == include })
	if f.less == nil {
		f.less = map[string]*fit{}
	}
	f.less[name] = out
	return out
}

// get is the value under a key.
func (f *fit) get(k string) (string, error) {
	need := []string{k}
	a, ok := aliases[k]
	if ok {
		need = a.of
	}
	for _, n := range need {
		if !slices.Contains(f.keys, n) {
			return "", fmt.Errorf("a fit has no key %q here: it has %s", k, strings.Join(f.keys, ", "))
		}
	}
	if ok {
		return a.read(f.f), nil
	}
	return value(f.f, k), nil
}

// String is the keys and values.
func (f *fit) String() string {
	var out []string
	for _, k := range f.keys {
		out = append(out, fmt.Sprintf("%s: %q", k, value(f.f, k)))
	}
	return "fit{" + strings.Join(out, ", ") + "}"
}

// Type is the name of its type in Starlark.
func (f *fit) Type() string { return "fit" }

// Freeze does nothing: a fit does not change.
func (f *fit) Freeze() {}

// Truth is true.
func (f *fit) Truth() starlark.Bool { return true }

// Hash lets fits be in sets.
func (f *fit) Hash() (uint32, error) { return f.hash, nil }

// Get is fit["key"].
func (f *fit) Get(k starlark.Value) (starlark.Value, bool, error) {
	s, ok := starlark.AsString(k)
	if !ok {
		return nil, false, fmt.Errorf("the key of a fit is a string, not a %s", k.Type())
	}
	v, err := f.get(s)
	if err != nil {
		return nil, false, err
	}
	return starlark.String(v), true, nil
}

// CompareSameType compares fits by the keys that they have.
func (f *fit) CompareSameType(op syntax.Token, y starlark.Value, _ int) (bool, error) {
	switch op {
	case syntax.EQL:
		return f.id == y.(*fit).id, nil
	case syntax.NEQ:
		return f.id != y.(*fit).id, nil
	}
	return false, fmt.Errorf("fits have no order: %s cannot compare them", op)
}

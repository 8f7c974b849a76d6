package prune

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"netsplit/explorer/sequence"
)

// Read reads a file of policies. One whose name ends in .star is a policy in Starlark.
// Any other is YAML: a list of named policies, asked one after the other,
//
//	policy: [crash-before-send, ignore-nodes, {recovery: [type, node]}]
//
// with two more that take something:
//
//	{only: {fault: [crash], node: [n1, n2], side: [send], type: ["dn *"], stage: [setup]}}
//	{file: mine.star}
//
// only keeps sequences all of whose faults have one of the values of each key (FATE
// §4.2.3, filters); * stands for any text. open reads a policy file that this one names.
// Errors begin with file and line.
func Read(name string, src []byte, open func(name string) ([]byte, error)) ([]sequence.Policy, error) {
	if path.Ext(name) == ".star" {
		p, err := Compile(name, src)
		if err != nil {
			return nil, err
		}
		return []sequence.Policy{p}, nil
	}
	r := &reader{name: name, open: open}
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: want a line such as: policy: [%s, ignore-nodes]", name, All()[0].Name)
	}
	top := doc.Content[0]
	var list *yaml.Node
	for i := 0; i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value != "policy" {
			return nil, r.errorf(top.Content[i], "unknown key %q: only policy is known", top.Content[i].Value)
		}
		list = top.Content[i+1]
	}
	if list == nil || list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		return nil, r.errorf(top, "policy must be a list of at least one policy")
	}
	var out []sequence.Policy
	for _, n := range list.Content {
		p, err := r.policy(n)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

type reader struct {
	name string
	open func(string) ([]byte, error)
}

func (r *reader) errorf(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", r.name, n.Line, fmt.Sprintf(format, args...))
}

func (r *reader) policy(n *yaml.Node) (sequence.Policy, error) {
	name, arg := n, (*yaml.Node)(nil)
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 {
		name, arg = n.Content[0], n.Content[1]
	}
	if name.Kind != yaml.ScalarNode {
		return nil, r.errorf(n, "a policy is a name, or a name with what it takes, as in {recovery: [type, node]}")
	}
	switch name.Value {
	case "only":
		return r.only(name, arg)
	case "file":
		if arg == nil || arg.Kind != yaml.ScalarNode || path.Ext(arg.Value) != ".star" {
			return nil, r.errorf(name, "file takes the name of a .star file")
		}
		src, err := r.open(arg.Value)
		if err != nil {
			return nil, r.errorf(arg, "%v", err)
		}
		return Compile(arg.Value, src)
	}
	i := slices.IndexFunc(All(), func(d Named) bool { return d.Name == name.Value })
	if i < 0 {
		names := []string{"file", "only"}
		for _, d := range All() {
			names = append(names, d.Name)
		}
		slices.Sort(names)
		return nil, r.errorf(name, "no policy has the name %q: there are %s", name.Value, strings.Join(names, ", "))
	}
	d := All()[i]
	if arg == nil {
		return d.make(nil), nil
	}
	if d.Takes == "" {
		return nil, r.errorf(arg, "%s takes nothing", d.Name)
	}
	keys, err := r.strings(arg)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if len(pointKeys([]string{k})) == 0 {
			return nil, r.errorf(arg, "a point has no key %q: there are %s", k, strings.Join(pointNames(), ", "))
		}
	}
	return d.make(keys), nil
}

// pointNames are the keys that points have, those of the paper among them.
func pointNames() []string {
	return slices.DeleteFunc(keyNames(), func(k string) bool { return len(pointKeys([]string{k})) == 0 })
}

func (r *reader) strings(n *yaml.Node) ([]string, error) {
	var out []string
	if err := n.Decode(&out); err != nil || len(out) == 0 {
		return nil, r.errorf(n, "want a list, such as [type, node]")
	}
	return out, nil
}

// only is a filter by values.
func (r *reader) only(name, arg *yaml.Node) (sequence.Policy, error) {
	if arg == nil || arg.Kind != yaml.MappingNode || len(arg.Content) == 0 {
		return nil, r.errorf(name, "only takes keys with lists of values, such as {node: [n1]}")
	}
	want := map[string][]string{}
	for i := 0; i+1 < len(arg.Content); i += 2 {
		k, err := onlyKey(arg.Content[i].Value)
		if err != nil {
			return nil, r.errorf(arg.Content[i], "%v", err)
		}
		vs, err := r.strings(arg.Content[i+1])
		if err != nil {
			return nil, err
		}
		want[k] = vs
	}
	return only(want), nil
}

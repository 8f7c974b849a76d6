// Package story is for tests. It reads what stories about runs and searches share: a
// testbed, invariants, states and classes. It panics where a story is not as it reads them.
package story

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"netsplit/model"
)

// Story is what a file has told so far.
type Story struct {
	Nodes, Clients []model.NodeID
	Invariants     map[string]model.Invariant // by name
	Names          []string                   // of Invariants, in order
}

// New is a story that has told nothing.
func New() Story { return Story{Invariants: map[string]model.Invariant{}} }

// Do takes in a verb that is about the testbed. told: it was one.
func (s *Story) Do(d *datadriven.TestData) (told bool) {
	switch d.Cmd {
	case "nodes": // nodes n1 n2 n3 clients=(c1)
		for _, a := range d.CmdArgs {
			if a.Key != "clients" {
				s.Nodes = append(s.Nodes, model.NodeID(a.Key))
				continue
			}
			for _, v := range a.Vals {
				s.Clients = append(s.Clients, model.NodeID(v))
			}
		}
	case "invariant": // invariant I changes=3 support=10 kind=leader status=pinned: next line "status[n1]@n2 == status[n1]@n3"
		s.invariant(d)
	default:
		return false
	}
	return true
}

// Hosts are the nodes, then the clients.
func (s *Story) Hosts() []model.NodeID {
	return append(append([]model.NodeID{}, s.Nodes...), s.Clients...)
}

func (s *Story) invariant(d *datadriven.TestData) {
	a, b, ok := strings.Cut(d.Input, "==")
	if !ok {
		panic(fmt.Sprintf("%s: invariant: want a line A == B", d.Pos))
	}
	i := model.Invariant{ID: d.CmdArgs[0].Key, Kind: "status", Relation: model.RelationEqual, A: Ref(a), B: Ref(b), Status: model.InvariantMined}
	for _, set := range d.CmdArgs[1:] {
		v := set.Vals[0]
		switch set.Key {
		case "kind":
			i.Kind = v
		case "changes":
			i.Changes = number(v)
		case "support":
			i.Support = number(v)
		case "status":
			i.Status = model.InvariantStatus(v)
		default:
			panic(fmt.Sprintf("%s: invariant: unknown setting %q", d.Pos, set.Key))
		}
	}
	s.Invariants[i.ID] = i
	s.Names = append(s.Names, i.ID)
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// Lines are the lines of a text that are not empty.
func Lines(s string) []string {
	var out []string
	for _, l := range strings.Split(s, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

var refRE = regexp.MustCompile(`^([a-z]+)(?:\[(\w+)\])?@(\w+)$`)

// Ref reads "name[about]@node" or "name@node".
func Ref(s string) model.VarRef {
	m := refRE.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		panic(fmt.Sprintf("variable %q: want name[about]@node or name@node", s))
	}
	return model.VarRef{Name: m[1], About: m[2], Node: model.NodeID(m[3])}
}

// Duration is the setting key of a verb; 0: it has none.
func Duration(d *datadriven.TestData, key string) time.Duration {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			x, err := time.ParseDuration(a.Vals[0])
			if err != nil {
				panic(err)
			}
			return x
		}
	}
	return 0
}

var classRE = regexp.MustCompile(`^(.*) (\w+)>(\w+) (?:at )?\{(.*), (.*)\}$`)

// Class reads "TYPE from>to at {a, b}".
func Class(s string) model.Class {
	m := classRE.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		panic(fmt.Sprintf("class %q: want TYPE from>to at {a, b}", s))
	}
	return model.Class{Type: m[1], From: model.NodeID(m[2]), To: model.NodeID(m[3]), State: model.State{A: m[4], B: m[5]}}
}

// Renaming reads what a model.Renaming prints.
func Renaming(s string) model.Renaming {
	r := model.Renaming{}
	for _, one := range strings.Split(s, ", ") {
		as, n, _ := strings.Cut(one, " for ")
		r[model.NodeID(n)] = model.NodeID(as)
	}
	return r
}

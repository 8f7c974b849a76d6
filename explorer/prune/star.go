package prune

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"netsplit/explorer/sequence"
	"netsplit/model"
)

// Bounds of what a policy may compute.
const (
	// MaxSteps of the interpreter are for one call, MaxLevelSteps for all calls of a
	// level.
	MaxSteps      = 1_000_000
	MaxLevelSteps = 50_000_000
	// MaxRange is the longest range.
	MaxRange = 100_000
	// MaxPrinted bounds the lines that are kept of what a policy prints.
	MaxPrinted = 100
)

// Star is a policy that a user wrote in Starlark.
type Star struct {
	name                 string
	filter, cluster, key starlark.Callable
	fits                 map[model.PointFault]*fit // kept from level to level

	// These are of the level that is being pruned.
	known *sequence.Known
	level []sequence.Candidate
	steps uint64
	// seen caches the sets of allFits and postInjectionFits. frozen has the same sets;
	// reduced caches what they were reduced to.
	seen    map[string]*starlark.Set
	frozen  map[*starlark.Set]bool
	reduced map[reducedFrom]*starlark.Set
	// printed are the lines of print, each with its place.
	printed []string
}

// reducedFrom is a set that was reduced, and how.
type reducedFrom struct {
	set *starlark.Set
	how string
}

// dialect is standard Starlark with sets. It has no unbounded loops and no recursion.
var dialect = &syntax.FileOptions{Set: true}

// Compile reads a policy. It may define filter(fitSeq), which says whether to keep a
// sequence, and one of cluster(a, b), which says whether two sequences are alike, and
// key(fitSeq), which returns a value that is equal for sequences that are alike. It must
// define at least one. The filter is asked first. Errors begin with file:line:column.
func Compile(name string, src []byte) (*Star, error) {
	s := &Star{name: name, fits: map[model.PointFault]*fit{}}
	globals, err := starlark.ExecFileOptions(dialect, s.thread(), name, src, s.library())
	if err != nil {
		return nil, s.explain(err)
	}
	for _, d := range []struct {
		name   string
		params int
		to     *starlark.Callable
	}{{"filter", 1, &s.filter}, {"cluster", 2, &s.cluster}, {"key", 1, &s.key}} {
		v, ok := globals[d.name]
		if !ok {
			continue
		}
		f, ok := v.(*starlark.Function)
		if !ok {
			return nil, fmt.Errorf("%s: %s is a %s: it must be a function", name, d.name, v.Type())
		}
		if f.NumParams() != d.params || f.HasVarargs() || f.HasKwargs() {
			return nil, fmt.Errorf("%s: %s takes %d sequence(s) and nothing else", f.Position(), d.name, d.params)
		}
		*d.to = f
	}
	switch {
	case s.filter == nil && s.cluster == nil && s.key == nil:
		return nil, fmt.Errorf("%s: defines no filter(fitSeq), no cluster(a, b) and no key(fitSeq)", name)
	case s.cluster != nil && s.key != nil:
		return nil, fmt.Errorf("%s: defines both cluster and key: keep the one that says which sequences are alike", name)
	}
	return s, nil
}

// Name is the name of its file.
func (s *Star) Name() string { return s.name }

// Printed are the first lines that the policy printed at the last level.
func (s *Star) Printed() []string { return s.printed }

// Prune asks the policy about a level.
func (s *Star) Prune(level []sequence.Candidate, k *sequence.Known) (kept []sequence.Candidate, pruned []sequence.Pruned, err error) {
	s.known, s.level, s.steps, s.printed = k, level, 0, nil
	s.seen, s.frozen, s.reduced = map[string]*starlark.Set{}, map[*starlark.Set]bool{}, map[reducedFrom]*starlark.Set{}
	defer func() { s.known, s.level, s.seen, s.frozen, s.reduced = nil, nil, nil, nil, nil }()
	kept = level
	if s.filter != nil {
		kept = nil
		for _, c := range level {
			v, err := s.call(s.filter, s.seq(c.Faults))
			if err != nil {
				return nil, nil, err
			}
			keep, ok := v.(starlark.Bool)
			if !ok {
				return nil, nil, fmt.Errorf("%s: filter returned a %s for %s: it must return True or False", place(s.filter), v.Type(), c.IDs)
			}
			if keep {
				kept = append(kept, c)
			} else {
				pruned = append(pruned, sequence.Pruned{Candidate: c, Policy: s.name, Why: "filter returns False"})
			}
		}
	}
	if s.cluster == nil && s.key == nil {
		return kept, pruned, nil
	}
	classes, err := s.classes(kept)
	if err != nil {
		return nil, nil, err
	}
	kept, alike := sequence.Represent(s.name, classes, k)
	return kept, append(pruned, alike...), nil
}

// canonicalDepth bounds how deep the values of a key are looked into.
const canonicalDepth = 8

// canonical is one text for all values that are equal: sets and dicts print in the order of
// insertion.
func canonical(v starlark.Value, depth int) string {
	var parts []string
	sorted := false
	switch v := v.(type) {
	case *starlark.Dict:
		if depth > canonicalDepth {
			return v.Type() + " " + v.String()
		}
		sorted = true
		for _, item := range v.Items() {
			parts = append(parts, canonical(item[0], depth+1)+": "+canonical(item[1], depth+1))
		}
	case starlark.Iterable:
		if depth > canonicalDepth { // it may hold itself
			return v.Type() + " " + v.String()
		}
		_, sorted = v.(*starlark.Set)
		for e := range starlark.Elements(v) {
			parts = append(parts, canonical(e, depth+1))
		}
	default:
		return v.Type() + " " + v.String()
	}
	if sorted {
		slices.Sort(parts)
	}
	return fmt.Sprintf("%s %q", v.Type(), parts)
}

// classes groups sequences that are alike. cluster is an equivalence relation (§3.3.2), so
// it compares with one sequence of each class only.
func (s *Star) classes(level []sequence.Candidate) ([][]sequence.Candidate, error) {
	var out [][]sequence.Candidate
	at := map[string]int{}
	for _, c := range level {
		i := -1
		if s.key != nil {
			v, err := s.call(s.key, s.seq(c.Faults))
			if err != nil {
				return nil, err
			}
			name := canonical(v, 0)
			if n, ok := at[name]; ok {
				i = n
			} else {
				at[name] = len(out)
			}
		} else {
			for n := range out {
				v, err := s.call(s.cluster, s.seq(out[n][0].Faults), s.seq(c.Faults))
				if err != nil {
					return nil, err
				}
				if v.Truth() {
					i = n
					break
				}
			}
		}
		if i < 0 {
			out = append(out, []sequence.Candidate{c})
		} else {
			out[i] = append(out[i], c)
		}
	}
	return out, nil
}

func place(f starlark.Callable) string {
	if fn, ok := f.(*starlark.Function); ok {
		return fn.Position().String()
	}
	return f.Name()
}

func (s *Star) thread() *starlark.Thread {
	t := &starlark.Thread{
		Name: s.name,
		Print: func(t *starlark.Thread, msg string) {
			if len(s.printed) < MaxPrinted {
				s.printed = append(s.printed, fmt.Sprintf("%s: %s", t.CallFrame(1).Pos, msg))
			}
		},
		Load: func(*starlark.Thread, string) (starlark.StringDict, error) {
			return nil, errors.New("a policy cannot load files: write all of it in one file")
		},
	}
	t.SetMaxExecutionSteps(MaxSteps)
	return t
}

func (s *Star) call(f starlark.Callable, args ...starlark.Value) (starlark.Value, error) {
	t := s.thread()
	v, err := starlark.Call(t, f, args, nil)
	if err != nil {
		return nil, s.explain(err)
	}
	if s.steps += t.ExecutionSteps(); s.steps > MaxLevelSteps {
		return nil, fmt.Errorf("%s: a level of %d sequences took more than %d steps: make the policy cheaper, with key in place of cluster", place(f), len(s.level), MaxLevelSteps)
	}
	return v, nil
}

// explain puts the place in front of an error, and adds why a policy may not do this.
func (s *Star) explain(err error) error {
	var run *starlark.EvalError
	var names resolve.ErrorList
	var syn syntax.Error
	switch {
	case errors.As(err, &run):
		at := s.name
		for _, f := range slices.Backward(run.CallStack) {
			if f.Pos.Filename() == s.name && f.Pos.Line > 0 {
				at = f.Pos.String()
				break
			}
		}
		msg := run.Msg
		if strings.Contains(msg, "too many steps") {
			msg = fmt.Sprintf("took more than %d steps: a policy must come to an end", MaxSteps)
		}
		return fmt.Errorf("%s: %s", at, msg)
	case errors.As(err, &names) && len(names) > 0:
		e := names[0]
		msg := e.Msg
		for _, chance := range []string{"random", "time", "rand"} {
			if msg == "undefined: "+chance {
				msg += ": a policy has no random source and no clock: what it keeps depends only on what runs have shown"
			}
		}
		return fmt.Errorf("%s: %s", e.Pos, msg)
	case errors.As(err, &syn):
		return fmt.Errorf("%s: %s", syn.Pos, syn.Msg)
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

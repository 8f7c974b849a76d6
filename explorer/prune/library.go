package prune

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"netsplit/model"
)

// library is PreFail's (§3.2), and contains.
func (s *Star) library() starlark.StringDict {
	def := func(name string, f func(args starlark.Tuple) (starlark.Value, error), params int) *starlark.Builtin {
		return starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if len(kwargs) > 0 || len(args) != params {
				return nil, fmt.Errorf("%s takes %d argument(s)", name, params)
			}
			return f(args)
		})
	}
	out := starlark.StringDict{"explored": &explored{s}}
	for _, b := range []*starlark.Builtin{
		def("allFits", func(a starlark.Tuple) (starlark.Value, error) { return s.fitsOf("allFits", a[0]) }, 1),
		def("postInjectionFits", func(a starlark.Tuple) (starlark.Value, error) { return s.fitsOf("postInjectionFits", a[0]) }, 1),
		def("allFitSeqs", func(starlark.Tuple) (starlark.Value, error) { return s.allSeqs() }, 0),
		def("reducedFit", func(a starlark.Tuple) (starlark.Value, error) {
			f, ok := a[0].(*fit)
			if !ok {
				return nil, fmt.Errorf("reducedFit takes a fit, not a %s", a[0].Type())
			}
			keys, include, err := reduction(a[1], a[2])
			if err != nil {
				return nil, err
			}
			return f.reduced(keys, include), nil
		}, 3),
		def("reducedFits", func(a starlark.Tuple) (starlark.Value, error) {
			return s.reducedSet(a)
		}, 3),
		def("reducedFitSeq", func(a starlark.Tuple) (starlark.Value, error) {
			fits, err := reduceAll(a)
			if err != nil {
				return nil, err
			}
			return listOf(fits), nil
		}, 3),
		def("contains", func(a starlark.Tuple) (starlark.Value, error) { return contains(a[0], a[1]) }, 2),
		starlark.NewBuiltin("range", boundedRange),
	} {
		out[b.Name()] = b
	}
	return out
}

// boundedRange is range with at most MaxRange numbers: to make a list of a range takes no
// steps.
func boundedRange(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	v, err := starlark.Call(t, starlark.Universe["range"], args, kwargs)
	if err != nil {
		return nil, err
	}
	if n := starlark.Len(v); n > MaxRange {
		return nil, fmt.Errorf("a range of %d numbers: at most %d are allowed", n, MaxRange)
	}
	return v, nil
}

func (s *Star) fit(f model.PointFault) *fit {
	out := s.fits[f]
	if out == nil {
		out = newFit(f, s.known.Keys())
		s.fits[f] = out
	}
	return out
}

func (s *Star) seq(faults []model.PointFault) starlark.Value {
	out := make([]*fit, len(faults))
	for i, f := range faults {
		out[i] = s.fit(f)
	}
	return listOf(out)
}

func listOf(fits []*fit) starlark.Value {
	vs := make([]starlark.Value, len(fits))
	for i, f := range fits {
		vs[i] = f
	}
	l := starlark.NewList(vs)
	l.Freeze()
	return l
}

func setOf(fits []*fit) (*starlark.Set, error) {
	out := starlark.NewSet(len(fits))
	for _, f := range fits {
		if err := out.Insert(f); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// list reads fits out of a list, tuple or set.
func list(v starlark.Value) ([]*fit, error) {
	it, ok := v.(starlark.Iterable)
	if !ok {
		return nil, fmt.Errorf("want a sequence or a set of fits, not a %s", v.Type())
	}
	var out []*fit
	for x := range starlark.Elements(it) {
		f, ok := x.(*fit)
		if !ok {
			return nil, fmt.Errorf("a %s is no fit", x.Type())
		}
		out = append(out, f)
	}
	return out, nil
}

// fitsOf is allFits and postInjectionFits.
func (s *Star) fitsOf(name string, arg starlark.Value) (starlark.Value, error) {
	if s.known == nil {
		return nil, fmt.Errorf("%s: no run has been made while the file is read: call it in a function", name)
	}
	fits, err := list(arg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var ids model.Sequence
	for _, f := range fits {
		if f != s.fit(f.f) && f.id != s.fit(f.f).id {
			return nil, fmt.Errorf("%s: a reduced fit names no run: use the sequence itself", name)
		}
		ids = append(ids, s.known.ID(f.f))
	}
	key := name + " " + ids.String()
	if set := s.seen[key]; set != nil {
		return set, nil
	}
	ask := s.known.All
	if name != "allFits" {
		ask = s.known.After
	}
	met, err := ask(ids)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out := make([]*fit, len(met))
	for i, f := range met {
		out[i] = s.fit(f)
	}
	set, err := setOf(out)
	if err != nil {
		return nil, err
	}
	set.Freeze()
	s.seen[key], s.frozen[set] = set, true
	return set, nil
}

func (s *Star) allSeqs() (starlark.Value, error) {
	if s.known == nil {
		return nil, errors.New("allFitSeqs: there are no sequences while the file is read: call it in a function")
	}
	vs := make([]starlark.Value, len(s.level))
	for i, c := range s.level {
		vs[i] = s.seq(c.Faults)
	}
	l := starlark.NewList(vs)
	l.Freeze()
	return l, nil
}

func reduction(keys, include starlark.Value) ([]string, bool, error) {
	it, ok := keys.(starlark.Iterable)
	if !ok {
		return nil, false, fmt.Errorf("keys are a list of strings, not a %s", keys.Type())
	}
	var out []string
	for v := range starlark.Elements(it) {
		k, ok := starlark.AsString(v)
		if !ok {
			return nil, false, fmt.Errorf("a key is a string, not a %s", v.Type())
		}
		if !knownKey(k) {
			return nil, false, fmt.Errorf("a fit has no key %q: there are %s", k, strings.Join(keyNames(), ", "))
		}
		out = append(out, k)
	}
	b, ok := include.(starlark.Bool)
	if !ok {
		return nil, false, fmt.Errorf("the argument after the keys is True to keep them or False to keep the others, not a %s", include.Type())
	}
	return out, bool(b), nil
}

// keyNames lists all keys that policies may name.
func keyNames() []string {
	out := allKeys()
	for k := range aliases {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func reduceAll(a starlark.Tuple) ([]*fit, error) {
	fits, err := list(a[0])
	if err != nil {
		return nil, err
	}
	keys, include, err := reduction(a[1], a[2])
	if err != nil {
		return nil, err
	}
	out := make([]*fit, len(fits))
	for i, f := range fits {
		out[i] = f.reduced(keys, include)
	}
	return out, nil
}

// reducedSet is reducedFits. Policies ask for the same ones again and again.
func (s *Star) reducedSet(a starlark.Tuple) (starlark.Value, error) {
	from, _ := a[0].(*starlark.Set)
	key := reducedFrom{from, a[1].String() + a[2].String()}
	if out := s.reduced[key]; out != nil && s.frozen[from] {
		return out, nil
	}
	fits, err := reduceAll(a)
	if err != nil {
		return nil, err
	}
	out, err := setOf(fits)
	if err == nil && s.frozen[from] {
		out.Freeze()
		s.reduced[key] = out
	}
	return out, err
}

// contains says whether a text has a part, or a list, set or dict an element.
func contains(in, what starlark.Value) (starlark.Value, error) {
	if text, ok := starlark.AsString(in); ok {
		part, ok := starlark.AsString(what)
		if !ok {
			return nil, fmt.Errorf("contains: look for text in a text, not for a %s", what.Type())
		}
		return starlark.Bool(strings.Contains(text, part)), nil
	}
	it, ok := in.(starlark.Iterable)
	if !ok {
		return nil, fmt.Errorf("contains: want a text, list, set or dict to look in, not a %s", in.Type())
	}
	for v := range starlark.Elements(it) {
		if same, err := starlark.Equal(v, what); err != nil || same {
			return starlark.Bool(same), err
		}
	}
	return starlark.False, nil
}

// explored says whether a fault with these keys and values has occurred in a run. The
// paper prints explored [("loc", last["loc"])], which both a call with a list and an
// index by a pair are.
type explored struct{ s *Star }

// Name is the name of the function.
func (e *explored) Name() string { return "explored" }

// String is what print shows.
func (e *explored) String() string { return "<built-in function explored>" }

// Type is that of functions.
func (e *explored) Type() string { return "builtin_function_or_method" }

// Freeze does nothing.
func (e *explored) Freeze() {}

// Truth is true.
func (e *explored) Truth() starlark.Bool { return true }

// Hash is that of the name.
func (e *explored) Hash() (uint32, error) { return starlark.String("explored").Hash() }

// CallInternal is explored([(key, value), …]).
func (e *explored) CallInternal(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) != 1 || len(kwargs) > 0 {
		return nil, errors.New("explored takes a list of pairs of key and value")
	}
	it, ok := args[0].(starlark.Iterable)
	if !ok {
		return nil, fmt.Errorf("explored takes a list of pairs of key and value, not a %s", args[0].Type())
	}
	want := map[string]string{}
	for p := range starlark.Elements(it) {
		pair, ok := p.(starlark.Tuple)
		if !ok || len(pair) != 2 {
			return nil, errors.New("explored takes a list of pairs of key and value")
		}
		k, ok := starlark.AsString(pair[0])
		v, ok2 := starlark.AsString(pair[1])
		if !ok || !ok2 || !knownKey(k) {
			return nil, fmt.Errorf("explored: %s is no key and value: keys are %s", pair, strings.Join(keyNames(), ", "))
		}
		want[k] = v
	}
	if e.s.known == nil {
		return nil, errors.New("explored: no run has been made while the file is read: call it in a function")
	}
	return starlark.Bool(e.s.known.Explored(func(f model.PointFault) bool {
		for k, v := range want {
			if got, err := e.s.fit(f).get(k); err != nil || got != v {
				return false
			}
		}
		return true
	})), nil
}

// Get is explored[(key, value)].
func (e *explored) Get(k starlark.Value) (starlark.Value, bool, error) {
	v, err := e.CallInternal(nil, starlark.Tuple{starlark.Tuple{k}}, nil)
	return v, err == nil, err
}

package prune_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsplit/explorer/prune"
	"netsplit/explorer/sequence"
	"netsplit/internal/simwrite"
	"netsplit/model"
)

var crashes = []sequence.FaultAt{
	{Kind: model.PointCrash, Side: model.SideSend, Place: model.PlaceBefore},
	{Kind: model.PointCrash, Side: model.SideFile, Place: model.PlaceBefore},
}

// search runs a search on the simulated write.
func search(t *testing.T, depth int, kinds []sequence.FaultAt, policies ...sequence.Policy) (runs []sequence.Run, rep *sequence.Report, why string) {
	t.Helper()
	s := sequence.New(sequence.Config{Seed: 1, Clean: 2, Depth: depth, Runs: 1 << 20, Kinds: kinds, Policies: policies})
	for {
		r := s.Step(sequence.Input{Kind: sequence.InputAsk, Slots: 1})
		if r.Done {
			return runs, s.Report(), r.Why
		}
		if len(r.Runs) == 0 {
			t.Fatalf("nothing to do: %s", r.Why)
		}
		run := r.Runs[0]
		if len(run.IDs) > 0 {
			runs = append(runs, run)
		}
		got := simwrite.Execute(simwrite.Options{}, run.Faults, run.Seed)
		s.Step(sequence.Input{Kind: sequence.InputResult, Result: &sequence.Result{Run: run.ID, Profile: got.Profile, Occurred: got.Occurred, Verdict: model.VerdictPass}})
	}
}

func compile(t *testing.T, name, src string) *prune.Star {
	t.Helper()
	p, err := prune.Compile(name, []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// figure is a policy as PreFail prints it.
func figure(t *testing.T, n int) *prune.Star {
	t.Helper()
	name := fmt.Sprintf("figure%02d.star", n)
	src, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, name, string(src))
}

func named(t *testing.T, list string) []sequence.Policy {
	t.Helper()
	ps, err := prune.Read("p.yaml", []byte("policy: "+list), nil)
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

func ids(runs []sequence.Run) []string {
	var out []string
	for _, r := range runs {
		out = append(out, r.IDs.String())
	}
	return out
}

// The figures and the named policies were written apart, one in Starlark and one in Go,
// and keep the same sequences.
func TestFiguresAndNamedPoliciesAgree(t *testing.T) {
	brute, _, _ := search(t, 2, crashes)
	for _, c := range []struct {
		figures []int
		named   string
	}{
		{[]int{3}, "[{only: {stage: [setupStage]}}]"},
		{[]int{4, 10}, "[new-location, {same-last: [loc]}]"},
		{[]int{6}, "[same-last]"},
		{[]int{13}, "[{recovery: [loc]}]"},
	} {
		var ps []sequence.Policy
		for _, n := range c.figures {
			ps = append(ps, figure(t, n))
		}
		runs, _, why := search(t, 2, crashes, ps...)
		want, _, _ := search(t, 2, crashes, named(t, c.named)...)
		if !slices.Equal(ids(runs), ids(want)) {
			t.Errorf("figures %v run %d sequences, %s %d: %s", c.figures, len(runs), c.named, len(want), why)
		}
		if len(runs) == 0 || len(runs) >= len(brute) {
			t.Errorf("figures %v run %d sequences of %d", c.figures, len(runs), len(brute))
		}
	}
}

// Of the single faults the first one of each kind at each node is run, and each is extended by
// all that came after it.
func TestSameFirst(t *testing.T) {
	singles, _, _ := search(t, 1, crashes)
	kept, _, _ := search(t, 1, crashes, named(t, "[same-first]")...)
	at := func(r sequence.Run) string { return string(r.Faults[0].Node) + " " + string(r.Faults[0].Place) }
	first := map[string]string{}
	for _, r := range singles {
		if first[at(r)] == "" {
			first[at(r)] = r.IDs.String()
		}
	}
	for _, r := range kept {
		if first[at(r)] != r.IDs.String() {
			t.Errorf("%s is not the first fault at %s", r.Faults[0], at(r))
		}
	}
	if len(kept) != len(first) || len(kept) >= len(singles) {
		t.Errorf("%d of %d single faults are kept, want %d", len(kept), len(singles), len(first))
	}
	pairs, rep, _ := search(t, 2, crashes, named(t, "[same-first]")...)
	if n := len(rep.Levels[1].Pruned); n > 0 || len(pairs) <= len(kept) {
		t.Errorf("%d runs, %d pairs pruned", len(pairs), n)
	}
	byType, _, _ := search(t, 1, crashes, named(t, "[{same-first: [node, type]}]")...)
	if len(byType) <= len(kept) {
		t.Errorf("%d by node and type, %d by node", len(byType), len(kept))
	}
}

// Recoveries that are told apart by less are met in fewer sequences.
func TestRecoveryPairs(t *testing.T) {
	one, _, _ := search(t, 2, crashes, named(t, "[prioritised]")...)
	pairs, _, _ := search(t, 2, crashes, named(t, "[recovery-pairs]")...)
	byType, _, _ := search(t, 2, crashes, named(t, "[{recovery-pairs: [side, type]}]")...)
	if len(byType) == 0 || len(byType) >= len(pairs) || len(pairs) >= len(one) {
		t.Errorf("%d sequences by type, %d by node too, %d of all recoveries", len(byType), len(pairs), len(one))
	}
}

// Figure 14 on all kinds of faults: at depth 1 nothing needs to occur.
func TestFigure14(t *testing.T) {
	runs, rep, _ := search(t, 1, sequence.AllKinds(), figure(t, 14))
	want, _, _ := search(t, 1, sequence.AllKinds(), named(t, "[crash-before-send]")...)
	if !slices.Equal(ids(runs), ids(want)) {
		t.Errorf("figure 14 keeps %d, crash-before-send %d", len(runs), len(want))
	}
	for _, r := range runs {
		if f := r.Faults[0]; f.Kind == model.PointCrash && (f.Side == model.SideReceive || f.Place == model.PlaceAfter) {
			t.Errorf("kept %s", f)
		}
	}
	for _, p := range rep.Levels[0].Pruned {
		if p.Policy == "figure14.star" && p.Last().Kind != model.PointCrash {
			t.Errorf("pruned %s", p.Last())
		}
	}
}

// Figure 15: n1 is dead, so what n2 sends to it is no place to crash n2. The other way
// round n1 still speaks to n2, and to c1 it is.
func TestFigure15(t *testing.T) {
	points := []model.Point{
		{Side: model.SideSend, Node: "n1", Peer: "n2", Type: "a", Nth: 1},
		{Side: model.SideSend, Node: "n2", Peer: "n1", Type: "b", Nth: 1},
		{Side: model.SideSend, Node: "n2", Peer: "c1", Type: "c", Nth: 1},
	}
	runs := func(p sequence.Policy) (out []string) {
		s := sequence.New(sequence.Config{Clean: 1, Depth: 2, Runs: 100, Kinds: crashes, Policies: []sequence.Policy{p}})
		for {
			r := s.Step(sequence.Input{Kind: sequence.InputAsk, Slots: 1})
			if r.Done {
				return out
			}
			res := sequence.Result{Run: r.Runs[0].ID, Occurred: len(r.Runs[0].IDs), Verdict: model.VerdictPass}
			name := ""
			for _, f := range r.Runs[0].Faults {
				name += f.Type
			}
			out = append(out, name)
			for _, p := range points {
				res.Profile.Points = append(res.Profile.Points, model.SeenPoint{Point: p, Step: res.Occurred})
			}
			s.Step(sequence.Input{Kind: sequence.InputResult, Result: &res})
		}
	}
	want := []string{"", "a", "b", "c", "ac", "bc", "cb"}
	if got := runs(figure(t, 15)); !slices.Equal(got, want) {
		t.Errorf("figure 15 runs %v, want %v", got, want)
	}
	if got := runs(named(t, "[not-to-crashed]")[0]); !slices.Equal(got, want) {
		t.Errorf("not-to-crashed runs %v, want %v", got, want)
	}
}

// Figure 5: all of the setup stage is one cluster, everything else stays.
func TestFigure5(t *testing.T) {
	all, _, _ := search(t, 1, crashes)
	setup := 0
	for _, r := range all {
		if r.Faults[0].Stage == "setupStage" {
			setup++
		}
	}
	runs, _, _ := search(t, 1, crashes, figure(t, 5))
	if setup < 2 || len(runs) != len(all)-setup+1 {
		t.Errorf("%d runs of %d, of which %d are in the setup stage", len(runs), len(all), setup)
	}
}

// Figure 9: what differs in the node alone is one. In the write pipeline that are the
// nodes that do the same to their disks after the same message.
func TestFigure9(t *testing.T) {
	all, _, _ := search(t, 1, crashes)
	runs, rep, _ := search(t, 1, crashes, figure(t, 9))
	kinds := map[string]bool{}
	for _, r := range all {
		f := r.Faults[0]
		f.Node = ""
		kinds[f.String()] = true
	}
	if len(runs) != len(kinds) || len(kinds) >= len(all) {
		t.Errorf("%d runs, want %d of %d", len(runs), len(kinds), len(all))
	}
	for _, p := range rep.Levels[0].Pruned {
		i := slices.IndexFunc(all, func(r sequence.Run) bool { return slices.Equal(r.IDs, p.Like) })
		if i < 0 || all[i].Faults[0].Type != p.Last().Type || all[i].Faults[0].Node == p.Last().Node {
			t.Errorf("%s is said to be like %s", p.Last(), p.Like)
		}
	}
}

// TestEqualKeysAreOne, in whatever order a set or a dict was filled.
func TestEqualKeysAreOne(t *testing.T) {
	same := func(values string) int {
		runs, rep, _ := search(t, 1, crashes, compile(t, "key.star", "def key(s):\n  a = s[0]['node'] == \"d1\"\n  return "+values+"\n"))
		if rep.Err != nil {
			t.Fatal(rep.Err)
		}
		return len(runs)
	}
	constant := same("0")
	for _, values := range []string{`set(["x", "y"]) if a else set(["y", "x"])`, `{"x": 1, "y": [2]} if a else {"y": [2], "x": 1}`, `[set(["x", "y"])] if a else [set(["y", "x"])]`} {
		if n := same(values); n != constant {
			t.Errorf("%s: %d runs, want %d", values, n, constant)
		}
	}
	if n := same(`["x", "y"] if a else ["y", "x"]`); n <= constant {
		t.Errorf("lists in two orders: %d runs, want more than %d", n, constant)
	}
}

// key and cluster say the same in two ways.
func TestKeyAndClusterAgree(t *testing.T) {
	byKey, _, _ := search(t, 2, crashes, compile(t, "key.star", "def key(s):\n  return s[len(s)-1]\n"))
	byPairs, _, _ := search(t, 2, crashes, figure(t, 6))
	if !slices.Equal(ids(byKey), ids(byPairs)) {
		t.Errorf("key keeps %d, cluster %d", len(byKey), len(byPairs))
	}
}

func TestNamedPoliciesCompose(t *testing.T) {
	yaml := "[crash-before-send, ignore-nodes, {recovery: [type, node]}]"
	runs, rep, _ := search(t, 2, crashes, named(t, yaml)...)
	brute, _, _ := search(t, 2, crashes)
	if len(runs) == 0 || 2*len(runs) > len(brute) {
		t.Errorf("%s runs %d of %d sequences", yaml, len(runs), len(brute))
	}
	by := map[string]int{}
	for _, l := range rep.Levels {
		for _, p := range l.Pruned {
			by[p.Policy]++
			if p.Why == "" {
				t.Errorf("%s is pruned by %s without a reason", p.IDs, p.Policy)
			}
		}
		if l.Kept+len(l.Pruned) != l.Candidates {
			t.Errorf("level %d: %d kept and %d pruned of %d", l.Depth, l.Kept, len(l.Pruned), l.Candidates)
		}
	}
	if by["ignore-nodes"] == 0 || by["recovery by type, node"] == 0 {
		t.Errorf("pruned by %v", by)
	}
	if runs, _, _ := search(t, 2, crashes, named(t, "[during-recovery, first-only, prioritised]")...); len(runs) == 0 || len(runs) >= len(brute) {
		t.Errorf("%d runs of %d", len(runs), len(brute))
	}
}

// refused says what a policy is refused with, when it is read or when it is asked.
func refused(t *testing.T, src string) string {
	t.Helper()
	p, err := prune.Compile("p.star", []byte(src))
	if err != nil {
		return err.Error()
	}
	runs, rep, why := search(t, 1, crashes, p)
	if rep.Err == nil || len(runs) > 0 {
		t.Errorf("%q is accepted: %s", src, why)
	}
	return why
}

func TestBadPoliciesAreRefusedWithTheirLine(t *testing.T) {
	f := func(body string) string {
		return "def filter(s):\n  " + strings.ReplaceAll(body, "\n", "\n  ") + "\n"
	}
	for src, want := range map[string][]string{
		f("for i in range(100000):\n  for j in range(100000):\n    pass\nreturn True"): {"p.star:", "steps: a policy must come to an end"},
		f("while True:\n  pass"): {"p.star:2", "while"},
		"def g(s):\n  return filter(s)\ndef filter(s):\n  return g(s)\n": {"p.star:", "recursive"},
		f("return random() > 0.5"):                                       {"p.star:2:10", "has no random source"},
		f("return time.now() == 0"):                                      {"p.star:2", "no clock"},
		"import random\n" + f("return True"):                             {"p.star:1"},
		"load('x.star', 'y')\n" + f("return True"):                       {"p.star:1", "cannot load files"},
		f("return open('/etc/passwd') != ''"):                            {"p.star:2", "undefined: open"},
		f("return list(range(1 << 40)) == []"):                           {"p.star:2", "at most 100000"},
		f("return s[0]['colour'] == 'red'"):                              {"p.star:2", `no key "colour"`, "failure, place, side"},
		f("return s[7] == s[0]"):                                         {"p.star:2", "out of range"},
		f("return 1"):                                                    {"p.star:1", "returned a int", "True or False"},
		f("return explored([('color', 'red')])"):                         {"p.star:2", "is no key and value"},
		f("return len(allFits(s)) > 0"):                                  {"p.star:2", "the sequence f-"},
		f("return allFits(reducedFitSeq(s, ['node'], False)) == 0"):      {"p.star:2", "a reduced fit names no run"},
		f("return s[0] < s[0]"):                                          {"p.star:2", "no order"},
		f("fail('no')"):                                                  {"p.star:2", "no"},
		"x = allFits([])\n" + f("return True"):                           {"p.star:1", "while the file is read"},
		"def filter(a, b):\n  return True\n":                             {"p.star:1", "takes 1 sequence"},
		"filter = 3\n":                                                   {"p.star", "must be a function"},
		"x = 1\n":                                                        {"p.star", "defines no filter"},
		"def key(s):\n  return 1\ndef cluster(a, b):\n  return True\n":   {"p.star", "both cluster and key"},
		"n = []\n" + f("n.append(1)\nreturn True"):                       {"p.star:3", "frozen"},
		"def filter(s) return True\n":                                    {"p.star:1"},
	} {
		got := refused(t, src)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%q\nis refused with %q\nwant %q in it", src, got, w)
			}
		}
	}
}

func TestPrintedLinesAreKept(t *testing.T) {
	p := compile(t, "p.star", "def filter(s):\n  print(s[0]['type'])\n  return True\n")
	search(t, 1, crashes, p)
	if got := p.Printed(); len(got) == 0 || len(got) > prune.MaxPrinted || !strings.HasPrefix(got[0], "p.star:2:8: ") {
		t.Errorf("printed %q", got)
	}
}

func TestBadYAMLIsRefusedWithItsLine(t *testing.T) {
	none := func(name string) ([]byte, error) {
		if name == "loops.star" {
			return []byte("def filter(s):\n  while True:\n    pass\n"), nil
		}
		return nil, errors.New(name + ": no such file")
	}
	for src, want := range map[string]string{
		"":                                     "p.yaml: want a line such as: policy: [crash-before-send",
		"policy: x":                            "p.yaml:1: policy must be a list",
		"policy: []":                           "p.yaml:1: policy must be a list",
		"policies: [prioritised]":              `p.yaml:1: unknown key "policies"`,
		"policy:\n  - prioritized":             `p.yaml:2: no policy has the name "prioritized": there are crash-before-send, during-recovery, file,`,
		"policy:\n  - {recovery: [colour]}":    `p.yaml:2: a point has no key "colour": there are after, func,`,
		"policy:\n  - {recovery: [failure]}":   `p.yaml:2: a point has no key "failure"`,
		"policy: [{ignore-nodes: [n1]}]":       "p.yaml:1: ignore-nodes takes nothing",
		"policy:\n\n  - {only: {colour: [a]}}": `p.yaml:3: a fault has no key "colour"`,
		"policy: [only]":                       "p.yaml:1: only takes keys",
		"policy: [{only: {node: n1}}]":         "p.yaml:1: want a list",
		"policy: [{file: x.star}]":             "p.yaml:1: x.star: no such file",
		"policy: [{file: x.py}]":               "p.yaml:1: file takes the name of a .star file",
		"policy: [{file: loops.star}]":         "loops.star:2",
		"policy: [[a]]":                        "p.yaml:1: a policy is a name",
		"policy: [":                            "p.yaml: yaml: line 1",
	} {
		_, err := prune.Read("p.yaml", []byte(src), none)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", src, err, want)
		}
	}
}

// What a search is narrowed to by keys is what the policy of that name in a file does.
func TestOnlyNarrowsByKeys(t *testing.T) {
	want := map[string][]string{"fault": {"crash"}, "type": {"dn *"}, "stage": {"transferStage"}}
	p, err := prune.Only(want)
	if err != nil {
		t.Fatal(err)
	}
	got, _, _ := search(t, 1, crashes, p)
	read, _, _ := search(t, 1, crashes, named(t, "[{only: {fault: [crash], type: ['dn *'], stage: [transferStage]}}]")...)
	all, _, _ := search(t, 1, crashes)
	if len(got) == 0 || len(got) >= len(all) || !slices.EqualFunc(got, read, func(a, b sequence.Run) bool { return slices.Equal(a.IDs, b.IDs) }) {
		t.Errorf("%d runs by keys, %d by a file, of %d", len(got), len(read), len(all))
	}
	if _, err := prune.Only(map[string][]string{"colour": {"red"}}); err == nil || !strings.Contains(err.Error(), `no key "colour"`) {
		t.Error(err)
	}
}

// TestFaultIsFailure: fits have the kind of their fault under the name that only has for it, too.
func TestFaultIsFailure(t *testing.T) {
	all, _, _ := search(t, 1, crashes)
	both, _, _ := search(t, 1, crashes, compile(t, "p.star", "def filter(s):\n  return s[0]['fault'] == s[0]['failure'] and s[0]['fault'] == 'crash'\n"))
	if len(both) == 0 || len(both) != len(all) {
		t.Errorf("%d of %d runs", len(both), len(all))
	}
}

func TestYAMLNamesAStarlarkFile(t *testing.T) {
	ps, err := prune.Read("p.yaml", []byte("policy: [{file: mine.star}, prioritised]"), func(name string) ([]byte, error) {
		return os.ReadFile(filepath.Join("testdata", "figure14.star"))
	})
	if err != nil || len(ps) != 2 || ps[0].Name() != "mine.star" {
		t.Errorf("%v, %v", ps, err)
	}
}

func TestAllPoliciesSayWhatTheyDo(t *testing.T) {
	all := prune.All()
	for i, p := range all {
		if p.Does == "" || i > 0 && all[i-1].Name >= p.Name {
			t.Errorf("%s: does %q, behind %s", p.Name, p.Does, all[max(0, i-1)].Name)
		}
		named(t, "["+p.Name+"]")
	}
}

// What the documentation shows is accepted, and prunes.
func TestDocumentedPoliciesWork(t *testing.T) {
	page, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(lang string) string {
		_, rest, ok := strings.Cut(string(page), "```"+lang+"\n")
		text, _, ok2 := strings.Cut(rest, "```")
		if !ok || !ok2 {
			t.Fatalf("no block of %s", lang)
		}
		return text
	}
	star := []byte(block("python"))
	ps, err := prune.Read("p.yaml", []byte(block("yaml")), func(string) ([]byte, error) { return star, nil })
	if err != nil || len(ps) != 5 {
		t.Fatalf("%d policies: %v", len(ps), err)
	}
	brute, _, _ := search(t, 2, crashes)
	runs, _, why := search(t, 2, crashes, ps[4])
	if len(runs) == 0 || len(runs) >= len(brute) {
		t.Errorf("%d runs of %d: %s", len(runs), len(brute), why)
	}
}

// TestLeaderFirst keeps what begins with the leader.
func TestLeaderFirst(t *testing.T) {
	of := func(kinds ...model.PointFaultKind) (c sequence.Candidate) {
		for _, k := range kinds {
			c.Faults = append(c.Faults, model.PointFault{Kind: k})
		}
		return c
	}
	p, err := prune.Read("p.yaml", []byte("policy: [leader-first]"), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := []sequence.Candidate{of(model.PointLeader), of(model.PointCrash), of(model.PointLeader, model.PointCrash), of(model.PointCrash, model.PointLeader)}
	kept, pruned, err := p[0].Prune(level, nil)
	if err != nil || len(kept) != 2 || len(pruned) != 2 || kept[1].Faults[1].Kind != model.PointCrash {
		t.Errorf("%v, %v, %v", kept, pruned, err)
	}
}

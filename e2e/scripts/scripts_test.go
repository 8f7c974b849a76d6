package scripts

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/campaign/script"
	"netsplit/e2e/harness"
	"netsplit/e2e/need"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

func TestMain(m *testing.M) {
	os.Exit(script.Main(func() int {
		harness.Main(m)
		return 0
	}))
}

// Lines of the listings in the paper, their comments counted.
var listings = map[string]int{"testDataLoss": 16, "testDoubleDequeue": 14}

func TestListingsAreNoLonger(t *testing.T) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "listings_test.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || listings[fn.Name.Name] == 0 {
			continue
		}
		found++
		n := files.Position(fn.End()).Line - files.Position(fn.Pos()).Line + 1
		t.Logf("%s has %d lines, the paper's %d", fn.Name.Name, n, listings[fn.Name.Name])
		if n > listings[fn.Name.Name] {
			t.Errorf("%s has %d lines, the paper's listing %d", fn.Name.Name, n, listings[fn.Name.Name])
		}
	}
	if found != len(listings) {
		t.Errorf("%d of %d listings found", found, len(listings))
	}
}

// play plays a Go script once on Redis and returns its summary.
func play(t *testing.T, c script.Config, f func(*script.Script)) (model.RunSummary, script.Result) {
	t.Helper()
	c.Name, c.Target, c.RunsDir = t.Name(), "redis-sentinel", t.TempDir()
	c.Step = func(st model.ScriptStep) { t.Log(script.StepLine(st)) }
	r, err := script.Play(t.Context(), c, 1, f)
	if err != nil {
		t.Fatal(err)
	}
	return r.Runs[0], r
}

// Both listings fail on Redis with Sentinels as they do in the paper on
// Elasticsearch and ActiveMQ, and for the same reasons.
func TestListings(t *testing.T) {
	on := func(s *script.Script) neat {
		return neat{Script: s, s1: "n1", s2: "n2", obj1: "obj1", v1: "v1", obj2: "obj2", v2: "v2", q1: "q1", msg1: "msg1", msg2: "msg2",
			client1: client{Client: s.Client("c1"), s: s, stays: "n1"},
			client2: client{Client: s.Client("c2"), s: s, side: s.Hosts("n2", "n3")}}
	}
	for _, c := range []struct {
		name, quorum, fails string
		play                func(neat)
	}{
		{"data loss", "1", "assertion: s.Equal(s.client2.read(s.obj1), s.v1)", neat.testDataLoss},
		{"double dequeue", "2", "assertion: s.NotEqual(minMsg, majMsg)", neat.testDoubleDequeue},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.LeavesNothing(t)
			sum, r := play(t, script.Config{Set: map[string]string{"quorum": c.quorum}}, func(s *script.Script) { c.play(on(s)) })
			if sum.Verdict.Value != model.VerdictFail || len(sum.Verdict.Failures) != 1 || sum.Verdict.Failures[0].Signature != c.fails {
				t.Fatalf("want one failure, %s: %+v", c.fails, sum.Verdict)
			}
			proved(t, sum)
			recorded(t, filepath.Join(r.Dir, sum.Run))
		})
	}
}

// proved checks that what the script cut was in force, and that packets bumped
// into it.
func proved(t *testing.T, sum model.RunSummary) {
	t.Helper()
	p := sum.Proof
	if p == nil || p.Wanted == 0 || p.Dropped != p.Wanted || p.Leaked != 0 || !p.LeakKnown || p.InForceAt <= p.CutAt || p.HealAt <= p.InForceAt {
		t.Errorf("proof %+v", p)
	}
}

// recorded checks that the steps are in the record in one order, operations with
// their answers, and that the report shows them.
func recorded(t *testing.T, dir string) {
	t.Helper()
	events, _, err := rundir.ReadLines[model.Event](dir, rundir.EventsFile)
	if err != nil {
		t.Fatal(err)
	}
	steps, ops, last := 0, 0, model.Event{}
	for _, e := range events {
		if e.Kind != model.EventStep {
			continue
		}
		steps++
		if e.Step.Num != steps || e.Step.Began < last.At || !strings.HasPrefix(e.Step.Where, "listings_test.go:") && !strings.HasPrefix(e.Step.Where, "scripts_test.go:") {
			t.Errorf("step %+v at %v after %v", e.Step, e.At, last.At)
		}
		if e.Step.Do == "op" {
			ops++
		}
		last = e
	}
	history, _, err := rundir.ReadLines[record.Entry](dir, rundir.HistoryFile)
	if err != nil || len(history) != 2*ops || ops == 0 {
		t.Fatalf("%d steps are operations, %d lines of history: %v", ops, len(history), err)
	}
	for i := 0; i < len(history); i += 2 {
		if ask, answer := history[i], history[i+1]; ask.Type != model.OpInvoke || answer.Type != model.OpOK || answer.F != ask.F || answer.Workload != ask.Workload || answer.Time < ask.Time {
			t.Errorf("operation %+v answered by %+v", ask, answer)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, rundir.ReportFile))
	if err != nil || !strings.Contains(string(page), "<h2>The script</h2>") || !strings.Contains(string(page), "The script healed it.") {
		t.Errorf("the report shows no script: %v", err)
	}
}

// Processes are crashed, paused and started again, and what a script does to
// them is no failure of theirs.
func TestNodes(t *testing.T) {
	harness.LeavesNothing(t)
	sum, r := play(t, script.Config{}, func(s *script.Script) {
		c := s.Client("c1")
		set := func(n script.Host, v string) script.Op { return c.Do("set", string(n), "x", v) }
		s.True(set("n1", "1").OK(), "a write is taken")
		s.Pause("n1", "redis")
		s.Equal(set("n1", "2").Type, model.OpInfo, "a paused server does not answer")
		s.Resume("n1")
		s.Crash("n3", "redis")
		s.Equal(set("n3", "3").Type, model.OpFail, "a crashed server refuses")
		s.Start("n3")
		s.Restart("n2", "redis")
		s.Await(4*s.Period("demotion"), "replicated")
		cut := s.Simplex(s.Hosts("c1"), s.Hosts("n1"))
		s.Equal(set("n1", "4").Type, model.OpInfo, "an answer is lost")
		s.Heal(cut)
	})
	if sum.Verdict.Value != model.VerdictPass {
		t.Fatalf("%+v", sum.Verdict)
	}
	proved(t, sum)
	var verbs []model.NodeVerb
	events, _, err := rundir.ReadLines[model.Event](filepath.Join(r.Dir, sum.Run), rundir.EventsFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Node != nil {
			verbs = append(verbs, e.Node.Verb)
		}
	}
	for _, v := range []model.NodeVerb{model.NodePause, model.NodeResume, model.NodeKill, model.NodeStart, model.NodeStop} {
		if !slices.Contains(verbs, v) {
			t.Errorf("no %s in the record: %v", v, verbs)
		}
	}
}

// A script that cannot go on, one that asserts nothing and one whose cut nobody
// bumps into are no passes, and the network is whole after each.
func TestWhatIsNoPass(t *testing.T) {
	for _, c := range []struct {
		name  string
		want  model.VerdictValue
		why   string
		steps func(*testing.T, *script.Script)
	}{
		{"stuck", model.VerdictUnknown, "could not be done, scripts_test.go:", func(_ *testing.T, s *script.Script) {
			s.Isolate("n1", "c1")
			s.True(true, "all is well")
			s.AwaitRole(s.Period("down-after")/10, "master", "c1")
			s.True(false, "the script went on")
		}},
		{"nothing asserted", model.VerdictUnknown, "the script asserts nothing", func(_ *testing.T, s *script.Script) { s.SleepPeriods(0.1, "down-after") }},
		{"vacuous", model.VerdictVacuous, "no packet wanted to cross cut 1", func(_ *testing.T, s *script.Script) {
			s.Heal(s.Partial(s.Hosts("c1"), s.Hosts("c2")))
			s.True(true, "all is well")
		}},
		{"vacuous beside another cut's proof", model.VerdictVacuous, "no packet wanted to cross cut 1", func(_ *testing.T, s *script.Script) {
			one := s.Partial(s.Hosts("c1"), s.Hosts("c2"))
			two := s.Partial(s.Hosts("c1"), s.Hosts("c2"))
			s.Heal(one)
			s.Heal(two)
			s.True(true, "all is well")
		}},
		{"given up", model.VerdictUnknown, "the script gave up before its end", func(_ *testing.T, s *script.Script) { runtime.Goexit() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.LeavesNothing(t)
			sum, _ := play(t, script.Config{}, func(s *script.Script) { c.steps(t, s) })
			if sum.Verdict.Value != c.want || !strings.Contains(sum.Verdict.Reason, c.why) {
				t.Errorf("want %s, %s: %+v", c.want, c.why, sum.Verdict)
			}
		})
	}
}

// Single messages are lost, kept and let go by the steps of a script, on connections that
// were there before. A cut meanwhile is one for what is kept, too: nothing leaks.
func TestMessageFaults(t *testing.T) {
	const ack = "resp REPLCONF ACK"
	match := func(from, to model.NodeID) model.MessageMatch {
		return model.MessageMatch{Type: ack, From: from, To: to}
	}
	t.Run("shipped", func(t *testing.T) {
		harness.LeavesNothing(t)
		text, err := os.ReadFile(filepath.Join(shipped, "lost-acknowledgement.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		without := filepath.Join(t.TempDir(), "without.yaml") // the message fault
		if err := os.WriteFile(without, regexp.MustCompile(`(?m)^  - (fault|await: \{fault|end).*\n(    why.*\n)?`).ReplaceAll(text, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		for file, want := range map[string]string{filepath.Join(shipped, "lost-acknowledgement.yaml"): ": 0 of 1 plays failed (1 pass)", without: ": 1 of 1 plays failed (1 fail)"} {
			if res := harness.Run(t, "script", "run", file, "--runs-dir", t.TempDir()); !strings.Contains(res.Stdout, want) {
				t.Errorf("want %s: %s", want, res)
			}
		}
	})
	t.Run("cut meanwhile", func(t *testing.T) {
		harness.LeavesNothing(t)
		sum, _ := play(t, script.Config{}, func(s *script.Script) {
			s.AwaitMessage(s.Period("failover"), match("n3", "master")) // by the mirror port
			first := s.Partial(s.Hosts("n2"), s.Hosts("n1"))            // of all that the gate is to hold
			s.Sleep(time.Second)
			late := s.Fault("late", model.MessageFault{Kind: model.FaultDelay, For: time.Second, Every: 1, Match: match("n2", "n1")})
			s.Heal(first)
			lost := s.Fault("lost", model.MessageFault{Kind: model.FaultLose, Match: match("n3", "master")})
			s.AwaitFault(s.Period("failover"), lost, 1)
			s.End(lost)
			s.AwaitFault(s.Period("failover"), late, 1)
			cut := s.Partial(s.Hosts("n2"), s.Hosts("n1"))
			s.Sleep(1200 * time.Millisecond) // what is kept comes due
			s.Heal(cut)
			s.End(late)
			s.Await(4*s.Period("demotion"), "replicated")
			s.True(s.Client("c1").Do("set", "n1", "x", "1").OK(), "a write is taken")
		})
		if sum.Verdict.Value != model.VerdictPass {
			t.Fatalf("%+v", sum.Verdict)
		}
		proved(t, sum)
		if p := sum.Faults; len(p) != 2 || p[0].Cut == 0 || p[0].Wrong+p[1].Wrong != 0 || !p[0].Known || p[1].Lost != 1 || p[1].Hits[0].From != "n3" || sum.Scenario.Fault(p[1].Fault).Match.ToRole != "master" {
			t.Errorf("%+v of %+v", p, sum.Scenario.Steps)
		}
	})
	t.Run("vacuous", func(t *testing.T) {
		harness.LeavesNothing(t)
		sum, _ := play(t, script.Config{}, func(s *script.Script) {
			s.Fault("", model.MessageFault{Kind: model.FaultLose, Match: model.MessageMatch{Type: "resp NOSUCH", From: "c1"}})
			s.True(s.Client("c1").Do("set", "n1", "x", "1").OK(), "a write is taken")
		})
		if sum.Verdict.Value != model.VerdictVacuous || !strings.Contains(sum.Verdict.Reason, "never met its message") {
			t.Errorf("%+v", sum.Verdict)
		}
	})
}

const shipped = "../../deploy/targets/redis-sentinel/scripts"

// The command as a user has it: a failure and its control, the exit codes, and
// the record judged again.
func TestCommand(t *testing.T) {
	t.Run("failure and control", func(t *testing.T) {
		harness.LeavesNothing(t)
		dir := t.TempDir()
		res := harness.Run(t, "script", "run", filepath.Join(shipped, "split-brain.yaml"), "--runs-dir", dir)
		if res.Code != 0 || !strings.Contains(res.Stdout, "split-brain: 1 of 1 plays failed (1 fail)") || !strings.Contains(res.Stdout, "script, documented") {
			t.Fatal(res)
		}
		runs := glob(t, dir, rundir.SummaryFile)
		var sum model.RunSummary
		if err := rundir.ReadJSON(runs[0], &sum); err != nil {
			t.Fatal(err)
		}
		proved(t, sum)
		was, err := os.ReadFile(runs[0])
		if err != nil {
			t.Fatal(err)
		}
		again := harness.Run(t, "judge", filepath.Dir(runs[0]))
		is, err := os.ReadFile(runs[0])
		if err != nil || again.Code != 0 || string(was) != string(is) {
			t.Errorf("judged again: %v\n%s\nwas %s\nis %s", again, err, was, is)
		}
		res = harness.Run(t, "script", "run", filepath.Join(shipped, "split-brain.yaml"), "--runs-dir", dir, "--set", "min_replicas=1")
		if res.Code != 0 || !strings.Contains(res.Stdout, "split-brain: 0 of 1 plays failed (1 pass)") || !strings.Contains(res.Stdout, "refused: NOREPLICAS") {
			t.Error(res)
		}
	})
	t.Run("broken", func(t *testing.T) { // what is not documented is exit status 3
		text, err := os.ReadFile(filepath.Join(shipped, "double-dequeue.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "mine.yaml")
		if err := os.WriteFile(file, regexp.MustCompile(`(?m)^(class|quote): .*\n`).ReplaceAll(text, nil), 0o644); err != nil {
			t.Fatal(err)
		}
		if res := harness.Run(t, "script", "run", file, "--quiet", "--runs-dir", t.TempDir()); res.Code != 3 || !strings.Contains(res.Stdout, `it gave "msg1"`) {
			t.Error(res)
		}
	})
	t.Run("wrong file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "wrong.yaml")
		if err := os.WriteFile(file, []byte("name: x\ntarget: redis-sentinel\nsteps:\n  - cut: {name: a, shape: partal, groups: [[n1], [n9]]}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		res := harness.Run(t, "script", "run", file, "--runs-dir", t.TempDir())
		if res.Code != 2 || !strings.Contains(res.Stderr, `wrong.yaml:4: steps[0].cut.groups[1][0]: no host "n9"`) || !strings.Contains(res.Stderr, `unknown shape "partal"`) {
			t.Error(res)
		}
	})
	t.Run("check", func(t *testing.T) {
		files, err := filepath.Glob("../../deploy/targets/*/scripts/*.yaml")
		if err != nil || len(files) < 3 {
			t.Fatalf("%v %v", files, err)
		}
		if res := harness.Run(t, append([]string{"script", "check"}, files...)...); res.Code != 0 || strings.Count(res.Stdout, "\n") != len(files) {
			t.Error(res)
		}
	})
}

// TestShippedScripts plays those that no other test does. Each shows its failure in most
// plays (make scripts-soak counts); here it is enough that a play can be judged.
func TestShippedScripts(t *testing.T) {
	need.Program(t, "tarantool", "tarantool")
	harness.LeavesNothing(t)
	for _, file := range []string{"redis-sentinel/scripts/partial.yaml", "tarantool/scripts/dirty-read.yaml"} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			res := harness.Run(t, "script", "run", "../../deploy/targets/"+file, "--quiet", "--runs-dir", t.TempDir())
			if judged := regexp.MustCompile(`: [01] of 1 plays failed \(1 (pass|fail)\)`); res.Code != 0 || !judged.MatchString(res.Stdout) {
				t.Error(res)
			}
		})
	}
}

func glob(t *testing.T, dir, file string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*", file))
	if err != nil || len(found) == 0 {
		t.Fatalf("no %s below %s: %v", file, dir, err)
	}
	return found
}

// What a test prints when the script fails, as go test shows it.
type reported struct {
	*testing.T
	errors []string
}

func (t *reported) Errorf(format string, args ...any) {
	b, _ := json.Marshal(args)
	t.errors = append(t.errors, format+string(b))
}

// Test is for go test: it fails where an assertion does not hold, and only there.
func TestFailsTheTest(t *testing.T) {
	harness.LeavesNothing(t)
	ft := &reported{T: t}
	dir := t.TempDir()
	script.Test(ft, script.Config{Target: "redis-sentinel", RunsDir: dir}, func(s *script.Script) {
		s.Equal(s.Client("c1").Do("get", "n1", "nothing").Value, "something", "there is something")
		s.True(true, "and this holds")
	})
	if all := strings.Join(ft.errors, "\n"); !strings.Contains(all, "there is something") || strings.Contains(all, "and this holds") {
		t.Errorf("it was told %q", ft.errors)
	}
}

// TestADaemonPlaysAScript that came by REST, several at once, and replays a play.
func TestADaemonPlaysAScript(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	d := harness.Serve(t, "--runs-dir", dir, "--listen", "127.0.0.1:0", "--openflow", "127.0.0.1:0")
	ended := func(spec wire.CampaignSpec) wire.Campaign {
		t.Helper()
		var c wire.Campaign
		d.Call("POST", "/v1/campaigns", spec, &c)
		harness.Until(t, 3*time.Minute, "campaign "+c.ID+" ends", func() error {
			d.Call("GET", "/v1/campaigns/"+c.ID, nil, &c)
			if c.Ended == nil {
				return errors.New(c.State)
			}
			return nil
		})
		if c.State != string(model.CampaignDone) {
			t.Fatalf("%+v", c)
		}
		return c
	}
	c := ended(wire.CampaignSpec{Runs: 2, Labs: 2, Script: &wire.ScriptFile{Name: "mine.yaml", Text: `name: mine
target: redis-sentinel
steps:
  - do: {on: c1, call: [set, n1, x, v1], expect: ok}
  - cut: {name: split, shape: isolate, groups: [[n3]]}
  - sleep: 1s
  - heal: split
  - assert: {on: c1, call: [get, n1, x], gives: v2, words: nobody wrote v2}
`}})
	runs := harness.Records(t, dir, c.ID)
	if len(runs) != 2 || c.Findings != 1 || c.Spec.Strategy != string(model.StrategyScripted) || c.Spec.Target != "redis-sentinel" {
		t.Fatalf("%d runs, %+v", len(runs), c)
	}
	for _, r := range runs {
		if len(r.Verdict.Failures) != 1 || r.Verdict.Failures[0].Signature != "assertion: nobody wrote v2" {
			t.Errorf("%+v", r.Verdict)
		}
		proved(t, r.RunSummary)
	}
	again := ended(wire.CampaignSpec{Replay: runs[1].Run, Runs: 1})
	if again.Reproduced != 1 {
		t.Errorf("%+v", again)
	}
	d.Signal(t, syscall.SIGTERM)
	if r := d.Wait(t, time.Minute); r.Code != 0 {
		t.Errorf("%s", r)
	}
}

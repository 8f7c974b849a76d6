package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/wire"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

// cleanRuns writes the records of two clean runs of a target: see recordPair. The second run has
// one point more.
func cleanRuns(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	recordPair(t, root, pairRun{campaign: "c-1", n: 1})
	recordPair(t, root, pairRun{campaign: "c-1", n: 2, late: true})
	return root
}

// pairRun is a run of the target pair.
type pairRun struct {
	campaign string
	n        int
	late     bool // n2 says late, too
	release  string
	args     map[string]string
	lost     bool // its copy is lost, by the one fault of a sequence, and made again
	missed   bool // the same, but the fault did not occur
	started  time.Time
}

// lostCopy is the fault of pairRun.lost.
func lostCopy() model.PointFault {
	return model.PointFault{Kind: model.PointLose, Place: model.PlaceBefore,
		Point: model.Point{Side: model.SideSend, Node: "n1", Peer: "n2", Type: "copy", Port: 7000, After: "write", Nth: 1}}
}

// recordPair writes the record of a run: a client writes, n1 copies to n2, and the nodes ping each
// other all the time.
func recordPair(t *testing.T, root string, r pairRun) {
	t.Helper()
	run := fmt.Sprintf("%s-r%04d", r.campaign, r.n)
	dir := filepath.Join(root, r.campaign, run)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	meta := model.RunMeta{Campaign: r.campaign, Run: run, Target: "pair", Started: r.started, Scenario: model.Scenario{Strategy: model.StrategyClean}}
	var result model.RunResult
	if r.lost || r.missed {
		meta.Scenario.Strategy, meta.Scenario.Sequence = model.StrategySequences, []model.PointFault{lostCopy()}
		result.Steps = []model.StepResult{{Step: 1}}
	}
	if r.lost {
		result.Steps[0].By = model.ReasonMessage
	}
	target := model.Target{Name: "pair", Release: r.release, Nodes: []model.NodeID{"n1", "n2"}, Protocols: []model.Protocol{{Port: 7000}}, Args: map[string]model.TargetArg{}}
	for k, v := range r.args {
		target.Args[k] = model.TargetArg{Default: v}
	}
	for file, v := range map[string]any{rundir.MetaFile: meta, rundir.TargetFile: target, rundir.TestbedFile: model.Testbed{}, rundir.EvidenceFile: record.Evidence{Result: result},
		rundir.SummaryFile: model.RunSummary{RunMeta: meta, Release: r.release, Result: result, Verdict: model.Verdict{Value: model.VerdictPass}}} {
		if err := rundir.WriteJSON(filepath.Join(dir, file), v); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	num, msgs := 0, 0
	event := func(at time.Duration, kind model.EventKind, msg string) {
		num++
		lines = append(lines, fmt.Sprintf(`{"n":%d,"t":%d,"k":%q%s}`, num, at, kind, msg))
	}
	decided := ""
	for at := time.Duration(0); at < 12*time.Second; at += 500 * time.Millisecond {
		say := func(from, to, typ string) {
			msgs++
			event(at, model.EventMessage, fmt.Sprintf(`,"msg":{"num":%d,"at":%d,"from":%q,"to":%q,"fromPort":50000,"toPort":7000,"type":%q}`, msgs, at, from, to, typ))
		}
		say("n1", "n2", "ping")
		switch {
		case at == 3*time.Second:
			event(at, model.EventWorkload, "")
		case at == 4*time.Second:
			say("c1", "n1", "write")
			say("n1", "n2", "copy")
			if r.lost {
				event(at, model.EventTick, "")
				decided = fmt.Sprintf(`{"event":%d,"t":%d,"fault":1,"message":%d,"reason":"fault"}`+"\n", num, at, msgs)
			}
		case at == 5*time.Second && r.late:
			say("n2", "c1", "late")
		case at == 5*time.Second && r.lost:
			say("n1", "n2", "copy")
			say("n2", "n1", "copied")
		case at == 6*time.Second:
			event(at, model.EventStop, "")
		}
	}
	for file, text := range map[string]string{rundir.EventsFile: strings.Join(lines, "\n") + "\n", rundir.DecisionsFile: decided} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPointsOfCleanRuns(t *testing.T) {
	root := cleanRuns(t)
	file := filepath.Join(t.TempDir(), "mine.yaml") // of a target of that name
	b, err := os.ReadFile("../../e2e/targets/gossip/target.yaml")
	if err == nil {
		err = os.WriteFile(file, regexp.MustCompile(`(?m)^name: .*$`).ReplaceAll(b, []byte("name: pair")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"c-1", "pair", filepath.Join(root, "c-1"), file} {
		code, out, errs := cli(t, "points", of, "--runs-dir", root, "--fault", "crash")
		if code != 0 {
			t.Fatalf("status %d: %s", code, errs)
		}
		for _, want := range []string{
			`2/2   crash before receive c1>n1 "write" :7000, number 1`,
			`2/2   crash before send n1>n2 "copy" :7000 after "write", number 1`,
			`1/2   crash after send n2>c1 "late" :7000 after "copy", number 1`,
			"pair: read from 2 clean runs", "periodic, no point: ping, every 500ms",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("points %s lacks %q:\n%s", of, want, out)
			}
		}
		if strings.Contains(out, `"ping"`) || strings.Contains(out, "isolate") {
			t.Errorf("points %s:\n%s", of, out)
		}
	}
}

// TestPointsOfEveryKindThatASearchKnows, and of a policy that is asked about them.
func TestPointsOfEveryKindThatASearchKnows(t *testing.T) {
	root := cleanRuns(t)
	for kind, want := range map[string]string{
		"power-cut-all": `2/2   power-cut-all after send n1>n2 "copy"`,
		"silence":       `2/2   silence before send n1>n2 "copy"`,
		"neat":          `2/2   lose-answer before send n1>n2 "copy"`,
	} {
		if code, out, errs := cli(t, "points", "pair", "--runs-dir", root, "--fault", kind); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: status %d, lacks %q:\n%s%s", kind, code, want, out, errs)
		}
	}
	file := filepath.Join(root, "p.yaml")
	if err := os.WriteFile(file, []byte("policy: [first-only]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := cli(t, "policy", "try", file, "--on", "pair", "--runs-dir", root, "--fault", "crash-all")
	if code != 0 || !strings.Contains(out, "crash-all after send") {
		t.Errorf("status %d:\n%s%s", code, out, errs)
	}
}

// TestPointsAreNarrowed by what the user asks for, and told apart by the keys of the target.
func TestPointsAreNarrowed(t *testing.T) {
	root := cleanRuns(t)
	code, out, errs := cli(t, "points", "pair", "--runs-dir", root, "--fault", "crash", "--only", "type=wr*,type=late", "--only", "place=before", "--keys", "side,type,node")
	if code != 0 || strings.Contains(out, "copy") || strings.Contains(out, "crash after") || !strings.Contains(out, `crash before send n2 "late"`) || !strings.Contains(out, `"write"`) {
		t.Errorf("status %d:\n%s%s", code, out, errs)
	}
}

// TestADaemonReadsRecords where --api names it, and not by NETSPLIT_API alone.
func TestADaemonReadsRecords(t *testing.T) {
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, r.URL.RequestURI()+" "+string(body))
		answer := `{"target":"pair","runs":2,"items":[{"id":"f-1","text":"crash before send","runs":2}],"kept":1,"periodic":[]}`
		if strings.HasSuffix(r.URL.Path, "/query") {
			answer = `{"columns":["n"],"rows":[[9007199254740993]],"truncated":true}`
		}
		switch {
		case strings.HasSuffix(r.URL.Path, "/pairs"):
			answer = `{"items":[{"a":"role@n1","b":"role@n2","kept":"weak","why":"equal in 9 samples"}],"cleanRuns":3,"kept":1,"points":2,"rejected":0,"scarce":0,"torn":["c-1-r0002: no end"]}`
		case strings.HasSuffix(r.URL.Path, "/account"):
			answer = `{"why":"the budget is spent","cleanRuns":3,"faultRuns":2,"levels":[{"depth":1,"candidates":9,"kept":2,"run":2,"failed":1,"vacuous":0,"by":{"prioritised":7}}]}`
		}
		fmt.Fprint(w, answer)
	}))
	defer srv.Close()
	t.Setenv("NETSPLIT_TOKEN", "sixteen-characters")
	policy := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(policy, []byte("policy: [first-only]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, asked, want string
		code              int
	}{
		{"points c-1 --fault crash --only type=a", `/v1/campaigns/c-1/points {"faults":["crash"],"only":{"type":["a"]}}`, "crash before send", 0},
		{"policy try " + policy + " --on c-1", `/v1/campaigns/c-1/points {"policies":{"name":"p.yaml","text":"policy: [first-only]\n"},"seed":1}`, "1 of 1 single faults would be run", 0},
		{"query c-1-r0001 values(1)", `/v1/runs/c-1-r0001/query {"sql":"values(1)","limit":10000}`, "9007199254740993", 0},
		{"invariants why c-1 --about role", "/v1/campaigns/c-1/pairs?about=role ", "weak   equal in 9 samples\n3 clean runs; 1 pairs kept, 2 if", 0},
		{"policy report c-1", "/v1/campaigns/c-1/account ", "with 1 fault: 9 sequences, 2 kept, 2 run with all faults, of which 1 failed, 7 out by prioritised", 0},
		{"policy report c-1 -o json", "/v1/campaigns/c-1/account ", `"faultRuns": 2`, 0},
		{"query c-1-r0001 --db x.db", "", "--db is for records on this machine", 2},
	} {
		asked = nil
		code, out, errs := cli(t, append(strings.Fields(c.args), "--api", srv.URL)...)
		if got := strings.Join(asked, "\n"); code != c.code || got != c.asked || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: status %d, asked %s, want %s\n%s%s", c.args, code, got, c.asked, out, errs)
		}
	}
	t.Setenv("NETSPLIT_API", srv.URL)
	asked = nil
	if code, _, errs := cli(t, "points", "c-1", "--runs-dir", t.TempDir()); code != 2 || len(asked) > 0 {
		t.Errorf("status %d, asked %v: %s", code, asked, errs)
	}
}

// TestWordsOfExplore are what the campaign is asked for; nothing is run.
func TestWordsOfExplore(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{"p.yaml": "policy: [{file: mine.star}]\n", "mine.star": "def filter(s):\n  return True\n", "bad.star": "def filter(s):\n  return random()\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string][]string{
		"--explore cofi":        {`"strategy":"cofi"`},
		"--explore random":      {`"strategy":"random"`},
		"--explore brute-force": {`"strategy":"sequences"`},
		"--explore prioritised --only type=a --keys side,type": {`"strategy":"sequences"`, `"prioritised":true`, `"only":{"type":["a"]}`, `"keys":["side","type"]`},
		"--explore policies --policy p.yaml":                   {`"files":{"mine.star":"def filter(s):\n  return True\n"}`},
		"--explore policies":                                   {"needs --policy"},
		"--explore brute-force --policy p.yaml":                {"runs all sequences"},
		"--explore anything":                                   {"use cofi, random, brute-force"},
		"--explore cofi --strategy random":                     {"in place of --strategy"},
		"--explore policies --policy bad.star":                 {"bad.star:2:10"},
	} {
		spec := wire.CampaignSpec{}
		var f exploreFlags
		c := &cobra.Command{}
		f.register(c, &spec)
		if err := c.ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		if f.policy != "" {
			f.policy = filepath.Join(dir, f.policy)
		}
		got := ""
		if err := f.apply(c, &spec); err != nil {
			got = err.Error()
		} else {
			b, err := json.Marshal(spec)
			if err != nil {
				t.Fatal(err)
			}
			got = string(b)
		}
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %s, want %s", args, got, w)
			}
		}
	}
}

func TestPolicyTry(t *testing.T) {
	root := cleanRuns(t)
	file := filepath.Join(root, "p.yaml")
	star := filepath.Join(root, "mine.star")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "policy: [crash-before-send, {file: mine.star}]\n")
	write(star, "def filter(s):\n  print('asked')\n  return s[0]['failure'] == 'crash'\ndef key(s):\n  return s[0]['node']\n")
	code, out, errs := cli(t, "policy", "try", file, "--on", "pair", "--runs-dir", root)
	if code != 0 || !strings.Contains(out, "2 of 12 single faults would be run") || !strings.Contains(errs, "mine.star:2:8: asked") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
	for _, want := range []string{"crash-before-send: a crash after send", "mine.star: filter returns False"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	write(star, "def filter(s):\n  return s[0]['colour'] == 'red'\n")
	if code, _, errs := cli(t, "policy", "try", file, "--on", "pair", "--runs-dir", root); code != exitUsage || !strings.Contains(errs, `mine.star:2:14: a fit has no key "colour"`) {
		t.Errorf("status %d: %s", code, errs)
	}
}

func TestPointsAndPoliciesRefuse(t *testing.T) {
	root := cleanRuns(t)
	file := filepath.Join(root, "p.yaml")
	if err := os.WriteFile(file, []byte("policy:\n  - nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"points nobody":                      "is no campaign below",
		"points pair --keys stack":           `no key "stack"`,
		"points pair --keys type":            "lack side or type",
		"points pair --only type":            "want KEY=VALUE",
		"points pair --only colour=red":      `no key "colour"`,
		"points pair --fault fire":           `no fault "fire"`,
		"points pair --fault isolate-leader": "the target has no role leader",
		"policy try " + file:                 "needs --on",
		"policy try " + file + " --on pair":  "p.yaml:2: no policy has the name",
		"policy try " + file + "x --on pair": "no such file",
	} {
		code, _, errs := cli(t, append(strings.Fields(args), "--runs-dir", root)...)
		if code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d: %s", args, code, errs)
		}
	}
}

func TestNamedPoliciesAreListed(t *testing.T) {
	if code, out, _ := cli(t, "policy", "list"); code != 0 || !strings.Contains(out, "crash-before-send") || !strings.Contains(out, "PreFail Figure 14") {
		t.Errorf("status %d: %s", code, out)
	}
}

// TestPolicyReport tells what became of the sequences of a campaign that has ended.
func TestPolicyReport(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "c-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	a := model.Account{Why: "all were run", CleanRuns: 3, FaultRuns: 2, Faults: []model.FaultAccount{{ID: "f-1", Fault: "crash before a", Asked: 3, Occurred: 1, Other: 2}},
		Levels: []model.LevelAccount{{Depth: 1, Candidates: 2, Kept: 1, Run: 1, By: map[string]int{"only": 1}, Sequences: []model.SequenceAccount{
			{IDs: model.Sequence{"f-1"}, Faults: []string{"crash before a"}, Fate: "passed"}, {IDs: model.Sequence{"f-2"}, Faults: []string{"lose b"}, Fate: "only", Why: "not asked for", Like: model.Sequence{"f-1"}}}}}}
	if err := rundir.WriteJSON(filepath.Join(root, "c-1", rundir.AccountFile), a); err != nil {
		t.Fatal(err)
	}
	code, out, errs := cli(t, "policy", "report", "c-1", "--runs-dir", root)
	for _, want := range []string{"passed", "not asked for, run instead: f-1", "with 1 fault: 2 sequences, 1 kept, 1 run with all faults, of which 0 failed, 1 out by only", "3 clean runs, 2 fault runs: all were run"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("status %d, no %q:\n%s%s", code, want, out, errs)
		}
	}
	b := model.Account{Why: "the budget is spent", Pairs: []model.PairAccount{{Invariant: "a == b", Node: "n1", Runs: 3, Elsewhere: 2, Fate: "explored", Why: "all classes met"}}}
	if err := rundir.WriteJSON(filepath.Join(root, "c-1", rundir.AccountFile), b); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := cli(t, "policy", "report", "c-1", "--runs-dir", root); code != 0 || !strings.Contains(out, "explored") || !strings.Contains(out, "a == b") || !strings.Contains(out, "all classes met; 2 of the runs on nodes that stand for these") || strings.Contains(out, "IDS") {
		t.Errorf("status %d:\n%s", code, out)
	}
	if code, _, errs := cli(t, "policy", "report", "c-2", "--runs-dir", root); code != exitUsage || !strings.Contains(errs, "no account of") {
		t.Errorf("status %d: %s", code, errs)
	}
}

package redis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
	"netsplit/explorer/engine"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

// TestMain: the umask of whoever starts netsplit keeps no server from its files.
func TestMain(m *testing.M) {
	unix.Umask(0o077)
	harness.Main(m)
}

// TestCampaign is the main job as a user has it: one command, and then all
// that can be asked of what it left.
func TestCampaign(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	res := harness.Run(t, "campaign", "redis-sentinel", "--runs-dir", dir, "--clean", "3", "--faults", "6", "--labs", "3",
		"--seed", "7", "--progress", "plain")
	if res.Code != 0 && res.Code != 3 {
		t.Fatal(res)
	}
	id := harness.CampaignID(t, res)
	runs := harness.Judged(t, harness.Records(t, dir, id))
	// A clean run more is made while none of the invariants can be told from chance.
	if clean := cleanRuns(runs); clean < 3 || len(runs)-clean != 6 {
		t.Errorf("want 3 clean runs or more, and 6 fault runs: %s", harness.Verdicts(runs))
	}
	for _, r := range runs {
		if r.Verdict.Value == model.VerdictUnknown {
			t.Errorf("%s could not be judged: %s", r.Run, r.Verdict.Reason)
		}
	}
	if cut := harness.CheckProofs(t, runs); cut < 1 {
		t.Errorf("%d of 6 runs cut something: %s", cut, harness.Verdicts(runs))
	}
	t.Run("finds lost writes", func(t *testing.T) {
		// Redis documents the loss, so it is no reason for exit status 3. What costs more
		// may stand above it: with some luck the cuts split the Sentinels.
		if !regexp.MustCompile(`(?m)^(?: *\d+\. )?data \(documented\): \d+ of \d+ acknowledged writes lost`).MatchString(res.Stdout) || !strings.Contains(res.Stdout, "lost-acknowledged-writes") {
			t.Error(res)
		}
		if broken := strings.Contains(res.Stdout, "(broken)"); broken != (res.Code == 3) {
			t.Errorf("something broken: %v, but: %s", broken, res)
		}
	})
	t.Run("mines invariants", func(t *testing.T) { mined(t, dir, runs) })
	t.Run("says why", func(t *testing.T) { why(t, filepath.Join(dir, id), cleanRuns(runs)) })
	t.Run("record", func(t *testing.T) {
		for _, r := range runs {
			complete(t, r)
			numbered(t, r)
			replaysByteForByte(t, r)
		}
		packets(t, runs)
	})
	t.Run("judge", func(t *testing.T) { judged(t, dir, runs) })
	t.Run("report", func(t *testing.T) { reports(t, res, dir, id) })
	t.Run("replay", func(t *testing.T) { replayed(t, res) })
	t.Run("control", func(t *testing.T) { withoutCut(t, dir, runs) })
}

func cleanRuns(runs []harness.Record) (n int) {
	for _, r := range runs {
		if r.Clean() {
			n++
		}
	}
	return n
}

// mined checks that invariants were mined and that equality of what two
// Sentinels hold the master to be is among them.
func mined(t *testing.T, dir string, runs []harness.Record) {
	res := harness.Run(t, "invariants", "--runs-dir", dir)
	if res.Code != 0 {
		t.Fatal(res)
	}
	if !regexp.MustCompile(`sentinel_master@n\d == sentinel_master@n\d`).MatchString(res.Stdout) {
		t.Errorf("no equality of two Sentinels' masters: %s", res)
	}
	clean := strconv.Itoa(cleanRuns(runs))
	for _, line := range strings.Split(strings.TrimSpace(res.Stdout), "\n")[1:] {
		f := strings.Fields(line)
		if len(f) != 11 {
			t.Fatalf("want 11 columns: %q", line)
		}
		a, b, nr, like := f[3], f[5], f[8], f[9]
		support, err1 := strconv.Atoi(f[6])
		chance, err2 := strconv.ParseFloat(f[10], 64)
		if err1 != nil || err2 != nil || support < 3 || nr != clean && like == "0" || chance > 0.05 || a == b || f[4] != "==" {
			t.Errorf("no invariant for this list: %q", line)
		}
		an, _, _ := strings.Cut(a, "@")
		bn, _, _ := strings.Cut(b, "@")
		if strings.HasSuffix(an, "epoch") != strings.HasSuffix(bn, "epoch") {
			t.Errorf("compares different kinds: %q", line)
		}
	}
	// Every run observed them, and what triggered is one of them.
	for _, r := range runs {
		if r.Clean() {
			continue
		}
		if len(r.Scenario.Observe) == 0 {
			t.Errorf("%s observed no invariant", r.Run)
		}
		if w := r.Scenario.Waits(); w != nil && !strings.Contains(res.Stdout, w.When.State.Invariant.ID) {
			t.Errorf("%s cut for %s, which is not listed", r.Run, &w.When.State.Invariant)
		}
	}
}

// why checks that each pair of variables has a reason, and that those of the Sentinels' masters
// are invariants.
func why(t *testing.T, dir string, clean int) {
	res := harness.Run(t, "invariants", "why", dir, "--about", "sentinel_master", "-o", "json")
	var p wire.MinedPairs
	if err := json.Unmarshal([]byte(res.Stdout), &p); err != nil || res.Code != 0 {
		t.Fatal(res, err)
	}
	if p.CleanRuns != clean || p.Kept == 0 || p.Kept+p.Rejected != len(p.Items) || p.Points < p.Kept {
		t.Errorf("%+v", p)
	}
	for i, x := range p.Items {
		if !strings.Contains(x.A+x.B, "sentinel_master") || x.Why == "" || (x.Kept == "no") != (i >= p.Kept) {
			t.Errorf("pair %d: %+v", i, x)
		}
	}
}

// complete checks that a record has all its files and that they belong
// together.
func complete(t *testing.T, r harness.Record) {
	t.Helper()
	want := []string{rundir.MetaFile, rundir.TargetFile, rundir.TestbedFile, rundir.EventsFile, rundir.HistoryFile,
		rundir.PacketsFile, rundir.EvidenceFile, rundir.SummaryFile, rundir.ReportFile}
	if r.Result.Reached {
		want = append(want, rundir.DecisionsFile, rundir.RulesFile)
	}
	for _, n := range []string{"n1", "n2", "n3"} {
		want = append(want, "logs/"+n+"-redis.log", "logs/"+n+"-sentinel.log")
	}
	for _, f := range want {
		if fi, err := os.Stat(filepath.Join(r.Dir, f)); err != nil || fi.Size() == 0 {
			t.Errorf("%s: %s is missing or empty: %v", r.Run, f, err)
		}
	}
	history, cut, err := rundir.ReadLines[record.Entry](r.Dir, rundir.HistoryFile)
	if err != nil || cut {
		t.Fatalf("%s: %v, cut off: %v", r.Run, err, cut)
	}
	acked, read, failovers := 0, 0, 0
	for _, h := range history {
		switch {
		case h.F == "write" && h.Type == model.OpOK:
			acked++
		case strings.HasPrefix(h.F, "final") && h.Type == model.OpOK:
			read++
		case h.F == "failover":
			failovers++
		}
	}
	if acked == 0 || read == 0 || failovers == 0 {
		t.Errorf("%s: %d acknowledged writes, %d final reads, %d failover entries", r.Run, acked, read, failovers)
	}
}

// numbered checks that each number up to the end of the workload is of one thing that is
// kept: an event, an operation, a line or an exit.
func numbered(t *testing.T, r harness.Record) {
	t.Helper()
	var ev record.Evidence
	if err := rundir.ReadJSON(filepath.Join(r.Dir, rundir.EvidenceFile), &ev); err != nil {
		t.Fatal(err)
	}
	events, _, err := rundir.ReadLines[model.Event](r.Dir, rundir.EventsFile)
	history, _, err2 := rundir.ReadLines[record.Entry](r.Dir, rundir.HistoryFile)
	lines, _, err3 := rundir.ReadLines[record.LogLine](r.Dir, rundir.LinesFile)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	times, end := map[uint64]int{}, uint64(0)
	for _, e := range events {
		if times[e.Num]++; e.Kind == model.EventStop {
			end = e.Num
		}
	}
	for _, h := range history {
		times[h.Num]++
	}
	for _, l := range lines {
		times[l.Num]++
	}
	for _, x := range ev.Exits {
		times[x.Num]++
	}
	if times[0] > 0 {
		t.Errorf("%s: %d operations, lines or exits have no number", r.Run, times[0])
	}
	for n := uint64(1); n <= end; n++ {
		if times[n] != 1 {
			t.Errorf("%s: number %d is of %d things, want 1", r.Run, n, times[n])
			return
		}
	}
	if end == 0 || len(history) == 0 || len(lines) == 0 {
		t.Errorf("%s: workload ends at number %d, %d operations, %d lines", r.Run, end, len(history), len(lines))
	}
	if ev.CPUWait <= 0 || ev.CPUWait >= 1 {
		t.Errorf("%s: what was ready to run waited for %v of the run", r.Run, ev.CPUWait)
	}
}

// replaysByteForByte steps the core with the recorded log and compares what
// it decides with what was recorded.
func replaysByteForByte(t *testing.T, r harness.Record) {
	t.Helper()
	var meta model.RunMeta
	if err := rundir.ReadJSON(filepath.Join(r.Dir, rundir.MetaFile), &meta); err != nil {
		t.Fatal(err)
	}
	events, cut, err := rundir.ReadLines[model.Event](r.Dir, rundir.EventsFile)
	if err != nil || cut {
		t.Fatalf("%s: %v, cut off: %v", r.Run, err, cut)
	}
	engine := engine.New(meta.Scenario)
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	for i, e := range events { // operations, lines and exits have the numbers between
		if i > 0 && e.Num <= events[i-1].Num {
			t.Fatalf("%s: event %d comes after event %d", r.Run, e.Num, events[i-1].Num)
		}
		for _, d := range engine.Step(e) {
			// Plain passes while nothing is cut are not recorded.
			if d.Cut || d.Heal || d.Action != "" && d.Reason != model.ReasonOpen {
				if err := enc.Encode(d); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	want, err := os.ReadFile(filepath.Join(r.Dir, rundir.DecisionsFile))
	if err != nil && r.Result.Reached {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s: from the record the core decides\n%s\nand decided\n%s", r.Run, got.String(), want)
	}
	if reached := engine.Result().Reached; reached != r.Result.Reached {
		t.Errorf("%s: reached %v from the record, %v in the run", r.Run, reached, r.Result.Reached)
	}
}

// packets checks that captures open in tshark, and that the verdicts in the
// comments are those of the decisions.
func packets(t *testing.T, runs []harness.Record) {
	t.Helper()
	refused := 0
	for _, r := range runs {
		out := harness.Output(t, "tshark", "-r", filepath.Join(r.Dir, rundir.PacketsFile), "-T", "fields", "-e", "frame.number", "-e", "frame.comment", "-E", "separator=|")
		decided, _, err := rundir.ReadLines[model.Decision](r.Dir, rundir.DecisionsFile)
		if err != nil {
			t.Fatal(err)
		}
		verdicts := map[uint64]string{}
		for _, d := range decided {
			if d.Frame != 0 && d.Action != "" {
				verdicts[d.Frame] = string(d.Action) + ": " + d.Reason
			}
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		typed := 0
		for _, line := range lines {
			num, comment, _ := strings.Cut(line, "|")
			n, err := strconv.ParseUint(num, 10, 64)
			if err != nil {
				t.Fatalf("%s: %q", r.Run, line)
			}
			if strings.Contains(comment, "; m") {
				typed++
			}
			if r.Clean() {
				if !strings.HasPrefix(comment, "mirror") {
					t.Fatalf("%s: packet %d of a clean run: %q", r.Run, n, comment)
				}
				continue
			}
			want, ok := verdicts[n]
			if !ok && strings.HasPrefix(comment, "mirror") { // read along: the gate does not hold it
				continue
			}
			if !ok {
				want = "pass: " + model.ReasonOpen
			}
			if !strings.HasPrefix(comment, want) {
				t.Fatalf("%s: packet %d: comment %q, decided %q", r.Run, n, comment, want)
			}
			if strings.HasPrefix(comment, "drop") {
				refused++
			}
			delete(verdicts, n)
		}
		if len(verdicts) > 0 {
			t.Errorf("%s: decided frames are not in the capture: %v", r.Run, verdicts)
		}
		if len(lines) < 500 || typed < 200 {
			t.Errorf("%s: %d packets, %d of them with messages", r.Run, len(lines), typed)
		}
	}
	dropped := 0
	for _, r := range runs {
		if r.Proof != nil {
			dropped += r.Proof.Dropped
		}
	}
	if refused < dropped {
		t.Errorf("captures show %d packets refused, the proofs %d", refused, dropped)
	}
}

// judged checks that a run's verdict is found again offline: without network,
// Redis or Open vSwitch.
func judged(t *testing.T, dir string, runs []harness.Record) {
	for _, r := range runs {
		summary := filepath.Join(r.Dir, rundir.SummaryFile)
		if err := os.Remove(summary); err != nil {
			t.Fatal(err)
		}
		res := harness.RunCommand(t, "unshare", "--net", "env", "PATH=/nowhere", harness.Bin("netsplit"), "judge", r.Run, "--runs-dir", dir)
		if res.Code != 0 && res.Code != 3 && res.Code != 4 || !strings.Contains(res.Stdout, string(r.Verdict.Value)) {
			t.Errorf("%s was %s: %s", r.Run, r.Verdict.Value, res)
			continue
		}
		var again model.RunSummary
		if err := rundir.ReadJSON(summary, &again); err != nil {
			t.Fatal(err)
		}
		if a, b := fmt.Sprintf("%+v", again.Verdict), fmt.Sprintf("%+v", r.Verdict); a != b {
			t.Errorf("%s: judged again\n%s\nwas\n%s", r.Run, a, b)
		}
	}
}

var replayLine = regexp.MustCompile(`replay: \S+ (replay .*)`)

// replayed runs the replay command that the campaign printed, for two runs.
func replayed(t *testing.T, campaign harness.Result) {
	m := replayLine.FindStringSubmatch(campaign.Stdout)
	if m == nil {
		t.Fatalf("no replay command in %s", campaign)
	}
	args := strings.Fields(strings.Replace(m[1], "-n 10", "-n 2", 1))
	res := harness.Run(t, append(args, "--labs", "2", "--progress", "plain")...)
	k := regexp.MustCompile(`(?m)^([0-2])/2 replays of `).FindStringSubmatch(res.Stdout)
	if res.Code != 0 || k == nil {
		t.Fatal(res)
	}
	// Writes are lost at every failover here, with or without a cut.
	if k[1] != "2" {
		t.Errorf("only %s of 2: %s", k[1], res)
	}
}

// withoutCut repeats a run that cut something and lost writes, without its cut: they
// are lost then, too.
func withoutCut(t *testing.T, dir string, runs []harness.Record) {
	const lost = "acknowledged writes lost at a forced failover"
	i := slices.IndexFunc(runs, func(r harness.Record) bool {
		return r.Proof != nil && slices.ContainsFunc(r.Verdict.Failures, func(f model.Failure) bool { return f.Signature == lost })
	})
	if i < 0 {
		t.Fatalf("no run that cut something lost writes: %s", harness.Verdicts(runs))
	}
	res := harness.Run(t, "replay", runs[i].Run, "-n", "1", "--without-cut", "--runs-dir", dir, "--progress", "plain")
	if want := "/1 replays of " + runs[i].Run + " without its cut failed"; res.Code != 0 || !strings.Contains(res.Stdout, want) ||
		!regexp.MustCompile(`(?m)^  1/1: data, .*`+lost+`$`).MatchString(res.Stdout) {
		t.Fatalf("want %q, and 1/1: data, … %s: %s", want, lost, res)
	}
	_, where, _ := strings.Cut(res.Stdout, "records: ")
	again := harness.Records(t, dir, filepath.Base(strings.TrimSpace(where)))
	if len(again) != 1 || again[0].Proof != nil || !again[0].Clean() || again[0].Scenario.Seed != runs[i].Scenario.Seed {
		t.Errorf("the control is %+v", again)
	}
}

// reports checks that the reports are there, need nobody else, and name the
// finding.
func reports(t *testing.T, res harness.Result, dir, id string) {
	whole, err := os.ReadFile(filepath.Join(dir, id, rundir.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?s)lost-acknowledged-writes: .*?report: (\S+report\.html)`).FindStringSubmatch(res.Stdout)
	if m == nil {
		t.Fatalf("no path of a report in %s", res)
	}
	one, err := os.ReadFile(m[1])
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range map[string][]byte{"campaign": whole, "run": one} {
		if !bytes.Contains(page, []byte("acknowledged writes lost")) {
			t.Errorf("the report of the %s does not name the finding", name)
		}
		if m := regexp.MustCompile(`(?i)(src|href)\s*=\s*["']?(https?:)?//[^"'> ]*`).Find(page); m != nil {
			t.Errorf("the report of the %s needs %s", name, m)
		}
	}
}

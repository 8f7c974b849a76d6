package harness

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"netsplit/model"
	"netsplit/record/rundir"
)

// Record is a finished run on the disk.
type Record struct {
	Dir string
	model.RunSummary
}

var campaignID = regexp.MustCompile(`\bc-\d{8}-\d{6}-\d+\b`)

// CampaignID finds the id of the campaign in what netsplit printed.
func CampaignID(tb testing.TB, r Result) string {
	tb.Helper()
	id := campaignID.FindString(r.Stdout)
	if id == "" {
		tb.Fatalf("no campaign id in %s", r)
	}
	return id
}

// Records reads the summaries of a campaign's runs, by run number.
func Records(tb testing.TB, runsDir, campaign string) []Record {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(runsDir, campaign, "*", rundir.SummaryFile))
	if err != nil {
		tb.Fatal(err)
	}
	slices.Sort(files)
	var out []Record
	for _, f := range files {
		r := Record{Dir: filepath.Dir(f)}
		if err := rundir.ReadJSON(f, &r.RunSummary); err != nil {
			tb.Fatal(err)
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		tb.Fatalf("campaign %s left no records below %s", campaign, runsDir)
	}
	return out
}

// Failed says whether a check failed in the run.
func (r Record) Failed(check string) bool {
	return slices.ContainsFunc(r.Verdict.Failures, func(f model.Failure) bool { return f.Check == check })
}

// Clean says that nothing was to be cut in the run.
func (r Record) Clean() bool { return r.Scenario.Strategy == model.StrategyClean }

// Judged leaves out runs that netsplit could not judge since the machine was too busy, as it
// says: it made them again. More than one in five is an error.
func Judged(tb testing.TB, rs []Record) (out []Record) {
	tb.Helper()
	for _, r := range rs {
		if r.Verdict.Value != model.VerdictUnknown || !strings.Contains(r.Verdict.Reason, "this machine is too busy") {
			out = append(out, r)
		}
	}
	if left := len(rs) - len(out); 5*left > len(rs) {
		tb.Errorf("%d runs could not be judged: %s", left, Verdicts(rs))
	}
	return out
}

// Verdicts shows what came of runs, for messages.
func Verdicts(rs []Record) string {
	var b strings.Builder
	for _, r := range rs {
		b.WriteString("\n" + r.Run + " " + string(r.Scenario.Strategy) + " " + string(r.Verdict.Value) + ": " + r.Verdict.Reason)
	}
	return b.String()
}

// CheckProofs checks of every run that cut and could be judged: it wanted,
// nothing leaked, and somebody counted. It returns how many cut.
func CheckProofs(tb testing.TB, rs []Record) int {
	tb.Helper()
	cut := 0
	for _, r := range rs {
		if r.Clean() && (r.Result.Reached || r.Proof != nil) {
			tb.Errorf("%s: a clean run cut", r.Run)
		}
		if !r.Result.Reached || r.Verdict.Value == model.VerdictUnknown {
			continue // of what is unknown netsplit claims nothing, and runs it again
		}
		p := r.Proof
		switch {
		case p == nil:
			tb.Errorf("%s: cut without a proof", r.Run)
			continue
		case !p.LeakKnown, p.Leaked != 0:
			tb.Errorf("%s: leaked %d, known %v", r.Run, p.Leaked, p.LeakKnown)
		case p.Wanted == 0 && r.Verdict.Value == model.VerdictPass:
			tb.Errorf("%s: nothing wanted to cross and the verdict is %s", r.Run, r.Verdict.Value)
		case p.Dropped > p.Wanted, p.CutAt <= 0, p.InForceAt < p.CutAt, p.HealAt <= p.CutAt:
			tb.Errorf("%s: proof makes no sense: %+v", r.Run, p)
		}
		if p.Wanted > 0 {
			cut++
		}
		// Whichever node it came about to is the one that was cut off.
		iso := r.Scenario.Cut().Do.Isolate
		for _, l := range p.PerLink {
			if iso != "" && l.Link.Src != iso && l.Link.Dst != iso {
				tb.Errorf("%s: isolates %s, cut %s", r.Run, iso, l.Link)
			}
		}
		if w := r.Scenario.Waits(); w != nil && iso != w.When.State.Invariant.A.Node && iso != w.When.State.Invariant.B.Node {
			tb.Errorf("%s: isolates %s at a state of %s", r.Run, iso, &w.When.State.Invariant)
		}
		wanted, dropped := 0, 0
		for _, l := range p.PerLink {
			wanted, dropped = wanted+l.Wanted, dropped+l.Dropped
		}
		if wanted != p.Wanted || dropped != p.Dropped {
			tb.Errorf("%s: links sum to %d/%d, the proof says %d/%d", r.Run, wanted, dropped, p.Wanted, p.Dropped)
		}
	}
	return cut
}

package check

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"netsplit/model"
)

// tried is a run of a search, with what it did and showed.
type tried struct {
	steps    []model.Step
	began    []time.Duration // of steps; less: the others never did
	failures []model.Failure
	lack     string // a type of message that it has not
	lost     string // one that its first step lost
}

func (r tried) summary(n int) model.RunSummary {
	out := model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: fmt.Sprintf("c-1-r%04d", n), Scenario: model.Scenario{Strategy: model.StrategySequences, Steps: r.steps}},
		Verdict: model.Verdict{Value: model.VerdictPass, Failures: r.failures}, Messages: map[string]int{"ask": 4, "answer": 4, "arp who-has": 1}}
	if r.steps == nil {
		out.Scenario.Strategy = model.StrategyClean
	}
	if r.failures != nil {
		out.Verdict.Value = model.VerdictFail
	}
	delete(out.Messages, r.lack)
	for i := range r.steps {
		res := model.StepResult{Step: i + 1}
		if i < len(r.began) {
			res.By, res.Began = model.ReasonMessage, r.began[i]
		}
		out.Result.Steps = append(out.Result.Steps, res)
	}
	if r.lost != "" {
		out.Faults = []model.FaultProof{{Fault: 1, Acted: 1, Hits: []model.FaultHit{{Type: r.lost}}}}
	}
	return out
}

func causesOf(runs ...tried) []model.Cause {
	var marks []Mark
	for i, r := range runs {
		sum := r.summary(i + 1)
		if m, ok := MarkOf(&sum); ok {
			marks = append(marks, m)
		}
	}
	slices.Reverse(marks)
	return Causes("c-1", marks)
}

var (
	writeLost = model.Failure{Check: "lost-acknowledged-writes", Signature: "acknowledged writes lost", Class: model.Broken, Summary: "1 of 9 lost"}
	writeSlow = model.Failure{Check: "operations", Signature: "write failed with Timeout although all it needs was reached", Class: model.Broken}
	crashN1   = model.Step{Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n1"}}}
	crashN2   = model.Step{Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n2"}}}
	cutN1     = model.Step{Do: model.Fault{Cut: &model.Partition{Shape: model.Complete}, Isolate: "n1"}}
	loseAny   = model.Step{Do: model.Fault{Message: &model.MessageFault{Kind: model.FaultLose, Lose: model.LoseMessage, Match: model.MessageMatch{Type: "*"}}}}
)

// TestFailedRunsAreSortedIntoCauses by the rule that broke, the last fault and what is
// missing; the smallest sequence of each tells it.
func TestFailedRunsAreSortedIntoCauses(t *testing.T) {
	fails := []model.Failure{writeSlow, writeLost} // what costs most is first
	got := causesOf(tried{}, tried{},
		tried{steps: []model.Step{cutN1, crashN1}, began: []time.Duration{1, 5}, failures: fails},            // 3
		tried{steps: []model.Step{crashN2}, began: []time.Duration{9}, failures: fails, lack: "arp who-has"}, // 4: fewer steps
		tried{steps: []model.Step{crashN1}, began: []time.Duration{3}, failures: fails},                      // 5: sooner
		tried{steps: []model.Step{crashN1, cutN1}, began: []time.Duration{3}, failures: fails},               // 6: its cut never began
		tried{steps: []model.Step{crashN1, cutN1}, began: []time.Duration{3, 4}, failures: fails},            // 7: another last fault
		tried{steps: []model.Step{crashN1}, began: []time.Duration{3}, failures: fails, lack: "answer"},
		tried{steps: []model.Step{crashN1}, began: []time.Duration{3}, failures: []model.Failure{writeSlow}},
		tried{steps: []model.Step{loseAny}, began: []time.Duration{3}, failures: fails, lost: "answer"},
		tried{steps: []model.Step{loseAny}, began: []time.Duration{3}, failures: fails, lost: "order"},
		tried{steps: []model.Step{crashN1}, began: []time.Duration{3}},
		tried{steps: []model.Step{{Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskEIO, Host: "n1"}}}}, began: []time.Duration{3}, failures: fails},
	)
	type row struct {
		fault, missing, run string
		seen, first         int
	}
	want := []row{
		{"crash", "[]", "c-1-r0005", 4, 3}, {"isolate", "[]", "c-1-r0007", 1, 7}, {"crash", "[answer]", "c-1-r0008", 1, 8},
		{"lose a message", "[answer]", "c-1-r0010", 1, 10}, {"lose a message", "[order]", "c-1-r0011", 1, 11}, {"disk eio", "[]", "c-1-r0013", 1, 13}, {"crash", "[]", "c-1-r0009", 1, 9},
	}
	var is []row
	ids := map[string]bool{}
	for _, c := range got {
		is = append(is, row{c.Fault, fmt.Sprint(c.Missing), c.Run, c.Seen, c.FirstAfter})
		ids[c.ID] = true
	}
	if !slices.Equal(is, want) || len(ids) != len(want) {
		t.Fatalf("%+v\nwant %+v", is, want)
	}
	if c := got[0]; !slices.Equal(c.Runs, []string{"c-1-r0003", "c-1-r0004", "c-1-r0005", "c-1-r0006"}) || !slices.Equal(c.Steps, []string{"crash n1"}) || c.Rule != "lost-acknowledged-writes: acknowledged writes lost" ||
		c.Severity != model.SeverityData || c.Class != model.Broken || c.Clean || c.Unsure == "" || c.Summary != "1 of 9 lost" || c.CauseID != got[1].CauseID || c.CauseID == got[6].CauseID {
		t.Errorf("%+v", c)
	}
	if got[2].Unsure != "" || got[6].Rank <= got[0].Rank {
		t.Errorf("%+v", got[2])
	}
}

// TestAFaultAfterTheFailureHasNoPartInIt.
func TestAFaultAfterTheFailureHasNoPartInIt(t *testing.T) {
	died := model.Failure{Check: "process-died", Signature: "s on n1 exited", Class: model.Broken, First: 4, Last: 4}
	early := died
	early.First = 2
	got := causesOf(tried{}, tried{steps: []model.Step{loseAny, crashN2}, began: []time.Duration{3, 5}, failures: []model.Failure{died}, lost: "ask"},
		tried{steps: []model.Step{loseAny, crashN2}, began: []time.Duration{3, 5}, failures: []model.Failure{early}, lost: "ask"})
	if len(got) != 2 || got[0].Fault != "lose a message" || fmt.Sprint(got[0].Missing) != "[ask]" || got[1].Fault != "" {
		t.Errorf("%+v", got)
	}
}

// TestCausesSayWhatIsNotKnown: no clean run says what is usual, or the rule breaks without a
// fault, too.
func TestCausesSayWhatIsNotKnown(t *testing.T) {
	fails := []model.Failure{writeLost}
	got := causesOf(tried{steps: []model.Step{crashN1}, began: []time.Duration{3}, failures: fails, lack: "ask"})
	if len(got) != 1 || got[0].Missing != nil || got[0].Unsure != "no run without a fault was judged, so nobody knows which messages are missing" {
		t.Errorf("without clean runs: %+v", got)
	}
	got = causesOf(tried{failures: fails}, tried{steps: []model.Step{crashN1}, began: []time.Duration{3}, failures: fails})
	if len(got) != 2 || !got[0].Clean || !got[1].Clean || got[0].Fault != "" {
		t.Errorf("it breaks without a fault: %+v", got)
	}
	replay := tried{steps: []model.Step{crashN1}, failures: fails}.summary(1)
	replay.ReplayOf = "c-1-r0009"
	if _, ok := MarkOf(&replay); ok {
		t.Error("a replay has a part in the causes")
	}
}

// TestCausesOfARecordOfAnEarlierVersion, which says of its cut by the proof alone.
func TestCausesOfARecordOfAnEarlierVersion(t *testing.T) {
	r := tried{steps: []model.Step{cutN1}, failures: []model.Failure{writeLost}}.summary(1)
	r.Result.Steps, r.Proof = nil, &model.Proof{CutAt: 4}
	m, _ := MarkOf(&r)
	if m.Fault != "isolate" || m.Length != 4 || len(m.Steps) != 1 || m.Clean {
		t.Errorf("%+v", m)
	}
	r.Proof = nil
	if m, _ := MarkOf(&r); m.Fault != "" || !m.Clean {
		t.Errorf("without a cut: %+v", m)
	}
}

// TestWhatRunsThatPassLackIsNotMissing: it tells nothing of a failure.
func TestWhatRunsThatPassLackIsNotMissing(t *testing.T) {
	crash := func(failures []model.Failure, lack string) tried {
		return tried{steps: []model.Step{crashN1}, began: []time.Duration{3}, failures: failures, lack: lack}
	}
	fails := []model.Failure{writeLost}
	if got := causesOf(tried{}, crash(fails, "answer"), crash(fails, ""), crash(nil, "answer")); len(got) != 1 || got[0].Seen != 2 || len(got[0].Missing) != 0 {
		t.Errorf("%+v", got)
	}
	if got := causesOf(tried{}, crash(fails, "answer"), crash(fails, ""), crash(nil, "ask")); len(got) != 2 {
		t.Errorf("%+v", got)
	}
}

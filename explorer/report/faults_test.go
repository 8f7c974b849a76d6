package report

import (
	"testing"
	"time"

	"netsplit/internal/onecut"
	"netsplit/model"
)

// Each message fault is told in a line of its own: what it met, its first
// message, what TCP made of it, and what the receiving hosts counted.
func TestMessageFaultsAreToldOneByOne(t *testing.T) {
	in := failing(t)
	match := model.MessageMatch{Type: "resp *", From: "n1"}
	scn := onecut.Of(in.Summary.Scenario)
	scn.Strategy, scn.Why = model.StrategyRandom, model.WhyRequested
	scn.Faults = []model.MessageFault{
		{Kind: model.FaultDelay, For: 500 * time.Millisecond, Match: match, Nth: 3},
		{Kind: model.FaultDuplicate, Copies: 2, Match: match, Every: 10, Times: 5},
		{Kind: model.FaultLose, Match: match},
		{Kind: model.FaultLose, Match: match},
	}
	in.Summary.Scenario = scn.Model()
	in.Summary.Faults = []model.FaultProof{
		{Fault: 1, Met: 7, Acted: 1, Known: true, Checked: 1, ByPlace: 1, Hits: []model.FaultHit{
			{Message: 46, Request: 45, Type: "resp <b>SET", From: "n1", To: "n2", At: time.Second, Passed: 1505 * time.Millisecond, Stream: "tcp a>b#1", Behind: 2}}},
		{Fault: 2, Met: 40, Acted: 4, Copies: 8, Known: true},
		{Fault: 3, Met: 4},
		{Fault: 4},
	}
	story := section(t, write(t, in), "story")
	wants(t, "story", story, "the requested moment, netsplit cut",
		"<li>Message fault 1 (delay by 500ms: resp * n1&gt;*, number 3) acted on 1 of the 7 messages that it matched. Message 46, resp &lt;b&gt;SET from n1 to n2",
		", the answer to message 45, was delayed", " 1 of them were taken for the answer as the next message back",
		"was delayed by 505 ms; 2 packets of its TCP stream waited behind it, in order",
		"<li>Message fault 2 (duplicate 2×: resp * n1&gt;*, one in 10 from number 1 on, at most 5) acted on 4 of the 40 messages",
		"<li>Message fault 3 (lose: resp * n1&gt;*, number 1) matched 4 messages, but its turn did not come.</li>",
		"<li>Message fault 4 (lose: resp * n1&gt;*, number 1) never met its message.</li>")
}

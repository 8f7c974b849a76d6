package run

import (
	"slices"
	"strings"

	"netsplit/model"
)

// liveKept are the last events that the live state of a run has.
const liveKept = 2000

// lately are the last events of a run, for those who watch it. The session's mu guards it.
type lately struct {
	last uint64            // number of the newest
	ring []model.LiveEvent // event n is at (n-1) % liveKept
}

func (l *lately) add(e model.LiveEvent) {
	l.last++
	e.Num = l.last
	if len(l.ring) < liveKept {
		l.ring = append(l.ring, e)
		return
	}
	l.ring[(e.Num-1)%liveKept] = e
}

// since are the events after the given number that are kept.
func (l *lately) since(after uint64) []model.LiveEvent {
	n := l.last - min(after, l.last)
	n = min(n, uint64(len(l.ring)))
	out := make([]model.LiveEvent, 0, n)
	for num := l.last - n + 1; num <= l.last; num++ {
		out = append(out, l.ring[(num-1)%liveKept])
	}
	return out
}

// messages adds the messages that a packet completed, and what became of it.
func (l *lately) messages(new []model.Message, a model.Action) {
	for i := range new {
		m := &new[i]
		l.add(model.LiveEvent{At: m.At, Kind: model.LiveMessage, From: m.From, To: m.To, Type: m.Type, Bytes: m.Bytes, Action: a})
	}
}

// event adds what is no message.
func (l *lately) event(e model.Event) {
	out := model.LiveEvent{At: e.At}
	switch e.Kind {
	case model.EventWorkload:
		out.Kind, out.Text = model.LivePhase, "the workload begins"
	case model.EventStop:
		out.Kind, out.Text = model.LivePhase, "the workload is over"
	case model.EventInForce:
		out.Kind, out.Name, out.Text = model.LiveInForce, e.Note, "nothing passes any more"
	case model.EventNode:
		out.Kind, out.Host, out.Text = model.LiveServer, e.Node.Host, string(e.Node.Verb)+" "+e.Node.Process
	case model.EventDisk:
		out.Kind, out.Host, out.Text = model.LiveDisk, e.Disk.Host, string(e.Disk.Kind)
	case model.EventFault:
		out.Kind, out.Name, out.Text = model.LiveFault, e.Fault.Name, "it ends"
		if e.Fault.Begin != nil {
			out.Text = e.Fault.Begin.String()
		}
	case model.EventRuleCut:
		out.Kind, out.Name, out.Text = model.LiveHeal, e.RuleCut.Name, e.Note
		if p := e.RuleCut.Partition; p != nil {
			out.Kind, out.Text = model.LiveCutDone, "cut "+p.String()
		}
	default:
		return
	}
	l.add(out)
}

// changed adds what a decision did to a cut or disk.
func (l *lately) changed(d model.Decision, step *model.Step) {
	e := model.LiveEvent{At: d.At, Name: model.StepName(d.Step)}
	switch {
	case d.Reason == model.ReasonScript: // the event told it, by its name
		return
	case d.Cut:
		e.Kind, e.Text = model.LiveCutDone, step.Do.String()
	case d.Heal:
		e.Kind, e.Text = model.LiveHeal, d.Reason
	case d.Disk != "":
		e.Kind, e.Host, e.Text = model.LiveDisk, step.Do.Disk.Host, string(d.Disk)
	default:
		return
	}
	l.add(e)
}

// live is what the run shows now: all of model.LiveState but what the campaign knows. Of its
// events it has those after the given number.
func (s *session) live(after uint64) model.LiveState {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := model.LiveState{At: s.now(), Events: s.lately.since(after), Last: s.lately.last}
	played := s.engine.Scenario().Steps
	for _, r := range s.stepResults(s.engine.Result().Steps) {
		out.Steps = append(out.Steps, model.LiveStep{StepResult: r, Text: played[r.Step-1].String()})
	}
	for _, c := range s.gateCuts {
		if c.on {
			out.Cuts = append(out.Cuts, model.LiveCut{Name: c.name(), Partition: c.partition, InForce: c.proof.InForceAt > 0})
		}
	}
	slices.SortFunc(out.Cuts, func(a, b model.LiveCut) int { return strings.Compare(a.Name, b.Name) })
	return out
}

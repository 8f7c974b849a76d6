package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"netsplit/model"
)

// maxMarked is how many messages that faults acted on are marked in the picture:
// each has a row of its own.
const maxMarked = 8

// part of a message's way that an item shows.
type part uint8

const (
	whole  part = iota
	toGate      // it was kept there
	onward      // it went on from there, or a copy of it did
)

// markFaults gives the messages that faults acted on their marks, and adds what
// went on later: kept messages, and copies. The first are marked; window is the
// time over which their effects spread.
func (t *timeline) markFaults(proofs []model.FaultProof, byNum map[uint64]int) {
	type marked struct {
		fault int
		*model.FaultHit
	}
	if len(proofs) == 0 {
		return
	}
	var hits []marked
	for i := range proofs {
		for k := range proofs[i].Hits {
			hits = append(hits, marked{proofs[i].Fault, &proofs[i].Hits[k]})
		}
	}
	slices.SortStableFunc(hits, func(a, b marked) int { return cmp.Compare(a.At, b.At) })
	for n, h := range hits {
		i, ok := byNum[h.Message]
		if !ok {
			continue
		}
		it := &t.items[i]
		it.fault, it.number = h.fault, n+1
		it.marked = n < maxMarked
		it.dropped = it.dropped || h.Passed == 0
		if it.marked {
			if t.faulty == nil {
				t.faulty = &window{h.At, h.At}
			}
			t.faulty.to = max(t.faulty.to, h.Passed, h.Through)
		}
		later := func(at time.Duration, mark string) {
			c := t.items[i]
			c.at, c.again, c.part, c.mark, c.dropped, c.event = at, true, onward, mark, false, 0
			c.trigger, c.heal = false, false
			t.items = append(t.items, c)
			if it.marked {
				t.faulty.to = max(t.faulty.to, at)
			}
		}
		it = &t.items[i]
		switch {
		case h.Reset:
			it.mark = "lost for good: connection reset"
		case h.Passed == 0 && h.Why == model.ReasonAcross:
			it.mark = "held, then dropped by the cut"
		case h.Passed == 0 && h.Why == model.ReasonAfterReset:
			it.mark = "held, then lost with its connection"
		case h.Passed == 0:
			it.mark = "lost"
		case h.Passed > h.At:
			it.part, it.mark = toGate, "kept"
			later(h.Passed, "held "+span(h.Passed-h.At))
		}
		for k, at := range h.Copies {
			later(at, fmt.Sprintf("copy %d", k+1))
		}
		if len(h.Copies) > 0 && t.items[i].mark == "" {
			t.items[i].mark = "duplicated"
		}
	}
	slices.SortStableFunc(t.items, func(a, b item) int { return cmp.Compare(a.at, b.at) })
}

// faultStory says what the message faults did: of each the first message, and
// the sums.
func faultStory(in *Input) []string {
	var out []string
	scn := &in.Summary.Scenario
	for i := range in.Summary.Faults {
		p := &in.Summary.Faults[i]
		f := scn.Fault(p.Fault)
		if f == nil {
			continue
		}
		s := fmt.Sprintf("Message fault %d (%s)", p.Fault, f)
		switch {
		case p.Acted == 0 && p.Met == 0:
			s += " never met its message."
		case p.Acted == 0:
			s += fmt.Sprintf(" matched %s, but its turn did not come.", model.Count(p.Met, "message", "messages"))
		default:
			s += fmt.Sprintf(" acted on %d of the %s that it matched. ", p.Acted, model.Count(p.Met, "message", "messages"))
			if len(p.Hits) > 0 {
				s += hitWords(f, &p.Hits[0])
			}
			s += sums(f, p) + proofWords(p)
			if p.ByPlace > 0 {
				s += fmt.Sprintf(" %d of them were taken for the answer as the next message back: no answer of their protocol says what it answers.", p.ByPlace)
			}
		}
		out = append(out, clean(s))
	}
	return out
}

func hitWords(f *model.MessageFault, h *model.FaultHit) string {
	s := fmt.Sprintf("Message %d, %s from %s to %s at %s", h.Message, h.Type, h.From, h.To, at(h.At))
	if h.Request > 0 {
		s += fmt.Sprintf(", the answer to message %d", h.Request)
	}
	if n := len(h.With); n > 0 {
		s += fmt.Sprintf(" (with %s in the same packet)", model.Count(n, "other message", "other messages"))
	}
	switch {
	case h.Why == model.ReasonAcross && h.Passed == 0:
		return s + ", was held, and dropped by a cut at its release."
	case h.Why == model.ReasonAfterReset:
		return s + ", was held, and lost when its connection was reset."
	}
	tcp := h.Stream != ""
	switch f.Kind {
	case model.FaultDelay:
		s += ", was delayed by " + span(h.Passed-h.At)
		if tcp {
			s += fmt.Sprintf("; %s of its TCP stream waited behind it, in order", model.Count(h.Behind, "packet", "packets"))
		}
		if h.Returned > 0 {
			s += fmt.Sprintf(", %s of it among them", model.Count(h.Returned, "retransmission", "retransmissions"))
		}
	case model.FaultDuplicate:
		s += fmt.Sprintf(", passed, and %s of it", model.Count(len(h.Copies), "copy", "copies"))
		if tcp {
			s += "; the receiver's TCP discards duplicates"
		}
	case model.FaultReorder:
		switch {
		case h.Why == model.ReasonCameAgain:
			s += ", waited for others to overtake it, and its retransmission came first"
		case h.Behind == 0:
			s += ", waited, and nothing overtook it"
		default:
			s += fmt.Sprintf(", waited %s, and %s overtook it", span(h.Passed-h.At), model.Count(h.Behind, "packet", "packets"))
		}
		if tcp {
			s += "; it was reordered on the wire, and the receiver's TCP restores the order"
		}
	case model.FaultLose:
		switch {
		case h.Reset:
			s += ", was lost for good: its TCP connection was reset at both ends"
			if h.After > 0 {
				s += fmt.Sprintf(", and %s of it lost with it", model.Count(h.After, "packet", "packets"))
			}
		case !tcp:
			s += ", was lost for good"
		case h.Through > 0:
			s += fmt.Sprintf(", was lost and came back by retransmission %s; %d of them lost again; one passed %s after it",
				model.Count(h.Returned, "time", "times"), h.LostAgain, span(h.Through-h.At))
		case h.Returned > 0:
			s += fmt.Sprintf(", was lost and retransmitted %s; every retransmission was lost too", model.Count(h.Returned, "time", "times"))
		default:
			s += ", was lost, and its TCP did not retransmit it"
		}
	}
	switch h.Why {
	case model.ReasonStop:
		s += "; it was released early, at the end of the workload"
	case model.ReasonEnded:
		s += "; it was released early, when the script ended the fault"
	}
	return s + "."
}

func sums(f *model.MessageFault, p *model.FaultProof) string {
	if p.Acted < 2 {
		return ""
	}
	s := ""
	add := func(n int, words string) {
		if n > 0 {
			s += ", " + fmt.Sprintf(words, n)
		}
	}
	add(p.Lost, "%d packets lost")
	add(p.Returned, "%d retransmissions came")
	add(p.Copies, "%d copies sent")
	add(p.Resets, "%d resets")
	add(p.InOrder, "%d that nothing overtook")
	add(p.Early, "%d that went on early")
	add(p.Cut, "%d dropped by the cut")
	add(p.Late, "%d that went on late")
	if s == "" {
		return ""
	}
	return " In all:" + s[1:] + "."
}

func proofWords(p *model.FaultProof) string {
	switch {
	case !p.Known:
		return " It could not be checked what arrived: " + p.Trouble + "."
	case p.Wrong > 0:
		return fmt.Sprintf(" %d of %d DID NOT ARRIVE AS DECIDED: %s.", p.Wrong, p.Checked, p.Trouble)
	case p.Checked > 0:
		return fmt.Sprintf(" The receiving hosts saw %s exactly as often as was decided.", model.Count(p.Checked, "of these packets", "of these packets"))
	}
	return ""
}

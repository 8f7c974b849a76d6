package script

import (
	"fmt"
	"strings"
	"time"

	"netsplit/model"
)

// Fault is a message fault that was begun.
type Fault struct {
	Name string
	// Fault is what was begun, with the roles that it names.
	Fault model.MessageFault
}

// Fault begins a message fault under a name; "" stands for the next number. It acts from
// now on, on messages that come while it does, until End or the end of the script. Its
// Match takes roles in place of hosts; it has no While and no After. What it may be about
// is held at the gate until the script is over.
func (s *Script) Fault(name string, f model.MessageFault) *Fault {
	name = s.named(&s.faults, name)
	out := &Fault{Name: name, Fault: f}
	s.step("fault", fmt.Sprintf("message fault %s: %s", name, &f), func() (string, error) {
		var err error
		out.Fault, err = s.live.Fault(s.ctx, name, f)
		return "", err
	})
	return out
}

// AwaitFault waits until a fault has acted on a number of packets. The script ends if it
// has not within the limit.
func (s *Script) AwaitFault(limit time.Duration, f *Fault, packets int) {
	s.step("await", fmt.Sprintf("await that message fault %s has acted on %d packet(s)", f.Name, packets), func() (string, error) {
		began := s.live.Now()
		acted, met, err := s.live.Acted(s.ctx, f.Name, packets, limit)
		if err == nil && acted < packets {
			err = fmt.Errorf("not within %v: it acted on %d, and met %d message(s) (%s)", limit, acted, met, f.Fault.Match)
		}
		return fmt.Sprintf("after %.3f s", (s.live.Now() - began).Seconds()), err
	})
}

// AwaitMessage waits until a message that matches crosses the switch, from now on. Roles in
// place of hosts are looked up when it has come. The script ends if none has within the limit.
func (s *Script) AwaitMessage(limit time.Duration, match model.MessageMatch) {
	s.step("await", fmt.Sprintf("await message %s", match), func() (string, error) {
		m, ok, err := s.live.AwaitMessage(s.ctx, limit, match)
		switch {
		case err != nil:
			return "", err
		case !ok:
			return "", fmt.Errorf("none came within %v", limit)
		}
		return fmt.Sprintf("message %d, %s from %s to %s at %.3f s", m.Num, m.Type, m.From, m.To, m.At.Seconds()), nil
	})
}

// End ends a fault. What it keeps goes on at once. The step is done when the receiving
// hosts have confirmed what the fault did; the script ends if they do not. A fault that
// acted on nothing makes the run vacuous.
func (s *Script) End(f *Fault) {
	s.step("end", "end of message fault "+f.Name, func() (string, error) {
		p, err := s.live.End(s.ctx, f.Name)
		if err != nil {
			return "", err
		}
		return did(p), nil
	})
}

func did(p model.FaultProof) string {
	if p.Acted == 0 {
		return fmt.Sprintf("VACUOUS: it met %d message(s) and acted on none, so this play shows nothing", p.Met)
	}
	words := []string{fmt.Sprintf("it acted on %d of %d message(s) that it met", p.Acted, p.Met)}
	for _, c := range []struct {
		n    int
		what string
	}{{p.Lost, "packet(s) lost"}, {p.Returned, "sent again by TCP"}, {p.Copies, "copies sent"}, {p.Resets, "connection(s) reset"}, {p.InOrder, "overtaken by nothing"}, {p.Cut, "dropped by a cut"}, {p.Early, "let go early"}} {
		if c.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return strings.Join(words, ", ") + fmt.Sprintf("; the receiving hosts confirm it for %d", p.Checked)
}

package fabric_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/internal/switchtest"
	"netsplit/testbed/fabric"
)

// requested writes down what a switch is asked for: c for the number of its rules, o for
// ours, A for all.
type requested struct {
	mu sync.Mutex
	by strings.Builder
}

func (a *requested) of(m of13.Message) {
	q, ok := m.(*of13.MultipartRequest)
	if !ok {
		return
	}
	f, ok := q.Body.(*of13.FlowStatsRequest)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	what := "o"
	switch {
	case q.Type == of13.MultipartAggregate:
		what = "c"
	case f.CookieMask == 0:
		what = "A"
	}
	if !strings.HasSuffix(a.by.String(), what) { // it is told of each part of an answer
		a.by.WriteString(what)
	}
}

func (a *requested) from(i int) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.by.String()[i:]
}

// foreign is a rule of somebody else; of priority 0 it ranks below ours.
func foreign(cookie uint64, priority uint16, port of13.PortNo) *of13.FlowMod {
	f := of13.NewFlowMod(of13.FlowAdd)
	f.Cookie, f.Priority = cookie, priority
	f.Match = of13.Match{of13.InPort(port)}
	f.Instructions = []of13.Instruction{of13.Apply(of13.Output{Port: of13.PortNormal})}
	return f
}

// TestTheRulesOfOthersAreReadWhenTheyChange, and every tenth time.
func TestTheRulesOfOthersAreReadWhenTheyChange(t *testing.T) {
	var a requested
	r := newRig(t, fabric.Config{}.Every(0, 5*time.Millisecond), 1)
	for i := range 120 {
		r.sw[1].Do(foreign(0xbad, 0, of13.PortNo(1000+i)))
	}
	r.slow(func(m of13.Message) time.Duration { a.of(m); return 0 })
	const brief = "cococococococococo"
	r.until("readings of ours", func() bool { return strings.Contains(a.from(0), "A"+brief+"A"+brief+"A") })

	begin := len(a.from(0))
	r.until("a reading of all", func() bool { return strings.Contains(a.from(begin), "A") })
	before := len(r.reports())
	begin = len(a.from(0))
	r.sw[1].Do(foreign(0xbad1, 1000, 1)) // goes round ours
	r.until("reported", func() bool { return len(r.reports()) > before })
	seen := a.from(begin)
	if n := strings.Count(seen[:strings.Index(seen, "A")], "c"); n > 2 { // one may have been on its way
		t.Errorf("%d readings until what goes round our rules was noticed: %s", n, seen)
	}

	del := foreign(0xbad1, 1000, 1)
	del.Command = of13.FlowDeleteStrict
	before = len(r.reports())
	r.sw[1].Do(del)
	r.sw[1].Do(foreign(0xbad2, 1000, 2)) // as many as before
	r.until("reported though their number is the same", func() bool { return len(r.reports()) > before })
}

func TestBeforeARunIsJudgedAllRulesAreRead(t *testing.T) {
	r := newRig(t, fabric.Config{}.Every(0, time.Hour), 1)
	r.sw[1].Do(foreign(0xbad, 1000, 1))
	if err := r.f.CheckGate(soon(t)); err != nil {
		t.Fatal(err)
	}
	if got := r.reports(); len(got) != 1 || len(got[0].Conflicts) != 1 {
		t.Errorf("reported %v, want the rule that goes round ours", got)
	}
}

func TestASwitchThatDoesNotCountIsReadInFull(t *testing.T) {
	var a requested
	r := newRig(t, fabric.Config{}.Every(0, 5*time.Millisecond), 1)
	r.pipes[1].Close()
	r.until("down", func() bool { return r.c.Switch(1) == nil })
	r.serve(1, switchtest.Config{Datapath: 1, Ports: []uint32{1, 2, 3, 4, 9, gatePort}, Refuse: func(m of13.Message) *of13.Error {
		a.of(m)
		if q, ok := m.(*of13.MultipartRequest); ok && q.Type == of13.MultipartAggregate {
			return &of13.Error{Type: of13.ErrTypeBadRequest, Code: of13.BadRequestBadMultipart}
		}
		return nil
	}}, nil)
	if err := r.f.Ready(soon(t)); err != nil {
		t.Fatal(err)
	}
	r.until("read in full each time", func() bool { return strings.Contains(a.from(0), "cAcAcA") })
}

// TestManyRulesOfOthersAreToldInALine, which names the first.
func TestManyRulesOfOthersAreToldInALine(t *testing.T) {
	var x fabric.Tampering
	for range 10_000 {
		x.Conflicts = append(x.Conflicts, flowrules.Conflict{})
	}
	if s := x.String(); len(s) > 2000 || !strings.HasSuffix(s, "and 9995 rules more of somebody else") {
		t.Errorf("%d bytes: … %s", len(s), s[max(0, len(s)-100):])
	}
}

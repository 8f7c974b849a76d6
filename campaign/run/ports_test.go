package run

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket/layers"

	"netsplit/model"
	"netsplit/record"
)

// TestWhatIsReadOfAPortIsCounted once it reaches its receiver: mirrored, or let through
// by the gate; what a cut drops arrives nowhere.
func TestWhatIsReadOfAPortIsCounted(t *testing.T) {
	s := testSession(t, leftScenario(model.Drop), &fakeGate{})
	s.ports = newPortsRead(&model.Target{Nodes: []model.NodeID{"n1", "n2"},
		Protocols: []model.Protocol{{Port: 7000, Transport: "udp"}, {Port: 7001, Transport: "tcp"}, {Port: 7002, Transport: "udp"}}})
	send := func(from, to model.NodeID, udp *layers.UDP, text string, tap func(*testing.T, []byte)) {
		tap(t, frame(t, from, to, udp, text))
	}
	mirror := func(_ *testing.T, f []byte) { s.Mirror(time.Now(), f) }
	s.Mark(model.EventWorkload)
	send("n3", "n1", &layers.UDP{SrcPort: 9000, DstPort: 7000}, "12345", mirror)
	send("n1", "n3", &layers.UDP{SrcPort: 7000, DstPort: 9000}, "123", mirror)
	send("n1", "n2", &layers.UDP{SrcPort: 7000, DstPort: 7000}, "1", mirror) // one port at both ends
	send("n1", "n2", &layers.UDP{SrcPort: 9000, DstPort: 9001}, "1", mirror) // of no protocol
	gossip(t, s, "n3", "n2", "G n1=NORMAL n2=NORMAL n3=NORMAL")
	gossip(t, s, "n2", "n1", "G n1=LEFT n2=NORMAL n3=NORMAL") // the state: cut
	gossip(t, s, "n2", "n3", "G n1=LEFT n2=NORMAL n3=NORMAL") // dropped
	<-s.gateCuts[0].confirmed
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.ports.result()
	held := int64(len("G n1=NORMAL n2=NORMAL n3=NORMAL"))
	left := int64(len("G n1=LEFT n2=NORMAL n3=NORMAL"))
	if p := got[0]; p.Read != 9+held+left || p.Held != held+left || p.Nodes != 1+left || got[1].Read != 0 || got[2].Read != 0 {
		t.Errorf("%+v; want %d read", got, 9+held+left)
	}
}

// TestWhatArrivedIsKnownOnlyIfEverybodyCounted all of the time.
func TestWhatArrivedIsKnownOnlyIfEverybodyCounted(t *testing.T) {
	before := arrivals{bytes: [][]int64{{10, 0}, {20, 5}}, lost: []uint64{0, 3}}
	for _, c := range []struct {
		after   arrivals
		want    int64
		trouble string
	}{
		{arrivals{bytes: [][]int64{{15, 0}, {120, 5}}, lost: []uint64{0, 3}}, 105, ""},
		{arrivals{bytes: [][]int64{{15, 0}, {120, 5}}, lost: []uint64{0, 4}}, 0, "missed 1 packets"},
		{arrivals{bytes: [][]int64{{15, 0}, {3, 5}}, lost: []uint64{0, 0}}, 0, "started again"},
		{arrivals{err: errors.New("gone")}, 0, "gone"},
	} {
		if n, trouble := before.to(c.after, 0); n != c.want || !strings.Contains(trouble, c.trouble) || (trouble == "") != (c.trouble == "") {
			t.Errorf("%+v: %d, %q; want %d, %q", c.after, n, trouble, c.want, c.trouble)
		}
	}
	if _, trouble := (arrivals{}).to(before, 0); trouble == "" {
		t.Error("nobody counted at first, and all is known")
	}
}

// TestPortsAreAskedAgain until all that came was read; what stays missing is told.
func TestPortsAreAskedAgain(t *testing.T) {
	before := arrivals{bytes: [][]int64{{0}}, lost: []uint64{0}}
	for _, c := range []struct {
		read, arrived []int64 // at each look
		want          record.PortRead
	}{
		{[]int64{100, 120}, []int64{120, 120}, record.PortRead{Read: 120, Arrived: 120, Known: true}},
		{[]int64{100, 100, 100}, []int64{120, 120, 120}, record.PortRead{Read: 100, Arrived: 120, Known: true}},
		{[]int64{100}, []int64{100}, record.PortRead{Read: 100, Arrived: 100, Known: true}},
	} {
		look := 0
		got := portsArrived(func() []record.PortRead { return []record.PortRead{{Read: c.read[look]}} }, before,
			func() arrivals { return arrivals{bytes: [][]int64{{c.arrived[look]}}, lost: []uint64{0}} },
			func() bool { look++; return look < len(c.read) })
		if got[0] != c.want || look > len(c.read) {
			t.Errorf("read %v of %v: %+v after %d looks", c.read, c.arrived, got, look)
		}
	}
}

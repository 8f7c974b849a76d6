package run

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/gopacket/layers"

	"netsplit/model"
	"netsplit/record/rundir"
)

// stuckDisk is a capture on a disk that does not answer until it is told to go on.
type stuckDisk struct{ goOn chan struct{} }

func (d stuckDisk) Write(model.Frame, string) error { <-d.goOn; return nil }
func (d stuckDisk) Flush() error                    { return nil }
func (d stuckDisk) Close() error                    { return nil }

// TestNoPacketWaitsForTheDisk: what is recorded of one is written behind its back.
func TestNoPacketWaitsForTheDisk(t *testing.T) {
	gate, disk := &fakeGate{}, stuckDisk{make(chan struct{})}
	s := testSession(t, model.Scenario{}, gate)
	s.rec.Capture(disk)
	s.Mark(model.EventWorkload)
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		for i := range 100 {
			gossip(t, s, "n1", "n2", fmt.Sprintf("G n1=%d", i))
		}
	}()
	select {
	case <-passed:
	case <-time.After(time.Minute):
		t.Error("packets wait at the gate for the disk")
	}
	close(disk.goOn)
	<-passed
	if len(gate.released) != 100 {
		t.Errorf("%d packets of 100 were released", len(gate.released))
	}
}

// TestASlowDiskIsToldOf: what had to wait for it is counted in the record.
func TestASlowDiskIsToldOf(t *testing.T) {
	disk := stuckDisk{make(chan struct{})}
	s := testSession(t, model.Scenario{}, &idleGate{})
	s.rec.Capture(disk)
	gossip(t, s, "n1", "n2", "G n1=A") // the disk is stuck from here on
	more := make(chan struct{})
	var taken atomic.Int64
	go func() {
		defer close(more)
		for range 20_000 { // more than the queue takes
			s.rec.Append(rundir.RulesFile, 1)
			taken.Add(1)
		}
	}()
	for n := int64(-1); n < 1000 || n != taken.Load(); time.Sleep(100 * time.Millisecond) { // until it waits
		n = taken.Load()
	}
	if n := taken.Load(); n == 20_000 {
		t.Error("there is no end to what waits")
	}
	close(disk.goOn)
	<-more
	s.written()
	events, _, err := rundir.ReadLines[model.Event](s.rec.Dir, rundir.EventsFile)
	if err != nil || len(events) == 0 || !strings.Contains(events[len(events)-1].Note, "had to wait") || !s.whole() {
		t.Errorf("%d events, the last %+v, %v", len(events), events[max(0, len(events)-1):], err)
	}
}

// fullDisk is a capture on a disk that has no room.
type fullDisk struct{ stuckDisk }

func (fullDisk) Write(model.Frame, string) error { return syscall.ENOSPC }

// TestARunOnAFullDiskIsUnknown, with the reason.
func TestARunOnAFullDiskIsUnknown(t *testing.T) {
	s := testSession(t, model.Scenario{}, &idleGate{})
	s.rec.Capture(fullDisk{})
	gossip(t, s, "n1", "n2", "G n1=A")
	s.written()
	if got := fmt.Sprint(s.incomplete); s.whole() || !strings.Contains(got, "no space left") {
		t.Errorf("the run is incomplete since %s", got)
	}
}

// TestWhatIsWrittenLaterIsAsItWas: what comes behind a packet changes nothing of it.
func TestWhatIsWrittenLaterIsAsItWas(t *testing.T) {
	disk := stuckDisk{make(chan struct{})}
	s := testSession(t, model.Scenario{}, &fakeGate{})
	s.rec.Capture(disk)
	s.Mark(model.EventWorkload)
	gossip(t, s, "n1", "n2", "G n1=0") // the disk is stuck from here on
	seq := uint32(100)
	send := func(flags layers.TCP, text string) {
		flags.SrcPort, flags.DstPort, flags.Window = 4000, 7001, 1000
		s.Gate("n1", time.Now(), frame(t, "n1", "n2", &flags, text))
	}
	send(layers.TCP{Seq: seq, SYN: true}, "")
	for seq++; seq < 400; seq += 10 {
		for range 2 { // twice
			send(layers.TCP{Seq: seq, Ack: 1, ACK: true}, fmt.Sprintf("G n1=A%03d\n", seq))
		}
	}
	close(disk.goOn)
	events := logged(t, s)
	var last uint64 // message
	again := 0
	for i, e := range events {
		if e.Num != uint64(i+1) {
			t.Fatalf("event %d is in place %d", e.Num, i+1)
		}
		switch {
		case e.Message != nil:
			last = e.Message.Num
		case e.Observation != nil && e.Observation.Message != last:
			t.Errorf("event %d tells of message %d what message %d revealed", e.Num, e.Observation.Message, last)
		case e.Packet != nil && len(e.Packet.Again) > 0:
			if again++; len(e.Packet.Again) != 1 || e.Packet.Again[0] != last {
				t.Errorf("event %d carries messages %v once more, want %d", e.Num, e.Packet.Again, last)
			}
		}
	}
	if again != 30 {
		t.Errorf("%d packets carried a message once more, want 30", again)
	}
}

type idleGate struct{ fakeGate }

func (*idleGate) Release([]byte, model.NodeID) error { return nil }

// BenchmarkGate is what it takes to read, decide and record a packet of one message.
func BenchmarkGate(b *testing.B) {
	s := testSession(b, model.Scenario{}, &idleGate{})
	s.Mark(model.EventWorkload)
	f := frame(b, "n1", "n2", &layers.UDP{SrcPort: 7000, DstPort: 7000}, "G n1=NORMAL n2=NORMAL n3=NORMAL "+string(make([]byte, 800)))
	b.ReportAllocs()
	for b.Loop() {
		s.Gate("n1", time.Now(), f)
	}
	s.mu.Lock()
	slices.Sort(s.delays)
	at := func(q float64) float64 { return float64(s.delays[int(q*float64(len(s.delays)-1))].Nanoseconds()) }
	s.mu.Unlock()
	b.ReportMetric(at(.5), "p50-ns")
	b.ReportMetric(at(.99), "p99-ns")
	b.ReportMetric(at(.9999), "p99.99-ns")
}

package run

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"netsplit/model"
)

// toAll is a frame of a host to everybody: UDP to a multicast address, or an ARP
// request.
func toAll(t *testing.T, from model.NodeID, what string) []byte {
	t.Helper()
	src := net.HardwareAddr{2, 0, 0, 0, 0, from[1]}
	eth := &layers.Ethernet{SrcMAC: src, DstMAC: net.HardwareAddr{1, 0, 0x5e, 0, 0, 7}, EthernetType: layers.EthernetTypeIPv4}
	ip := &layers.IPv4{Version: 4, TTL: 1, Protocol: layers.IPProtocolUDP, SrcIP: host(from).IP.AsSlice(), DstIP: net.IPv4(239, 0, 0, 7)}
	udp := &layers.UDP{SrcPort: 7000, DstPort: 7000}
	_ = udp.SetNetworkLayerForChecksum(ip)
	all := []gopacket.SerializableLayer{eth, ip, udp, gopacket.Payload(what)}
	if target := net.ParseIP(what); target != nil {
		eth.DstMAC, eth.EthernetType = net.HardwareAddr{255, 255, 255, 255, 255, 255}, layers.EthernetTypeARP
		all = []gopacket.SerializableLayer{eth, &layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, Operation: layers.ARPRequest,
			SourceHwAddress: src, SourceProtAddress: host(from).IP.AsSlice(), DstHwAddress: make([]byte, 6), DstProtAddress: target.To4()}}
	}
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, all...); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// TestWhatGoesToManyIsDecidedForEach: the message to n2 passes and the one to n3, which
// is cut off, does not, though the host sent both in one packet; the state that cuts is
// met between the two.
func TestWhatGoesToManyIsDecidedForEach(t *testing.T) {
	gate := &fakeGate{}
	s := testSession(t, leftScenario(model.Drop), gate)
	s.Mark(model.EventWorkload)
	say := func(from model.NodeID, what string) {
		t.Helper()
		s.Gate(from, time.Now(), toAll(t, from, what))
	}
	say("n1", "10.0.0.3") // asks for one
	say("n1", "10.0.0.1") // says where it is itself
	say("n1", "10.0.0.9") // asks for nobody there
	gossip(t, s, "n3", "n2", "G n1=NORMAL n2=NORMAL n3=NORMAL")
	say("n2", "G n1=LEFT n2=NORMAL n3=NORMAL") // reveals the state: cut
	say("n2", "G n1=LEFT n2=NORMAL n3=NORMAL") // a seen class to n3
	<-s.gateCuts[0].confirmed
	s.mu.Lock()
	defer s.mu.Unlock()
	want := []string{"n3: ", "n2: ", "n3: ", "n2: ", "n3: ", "n2: G n1=NORMAL n2=NORMAL n3=NORMAL",
		"n1: G n1=LEFT n2=NORMAL n3=NORMAL", "n1: G n1=LEFT n2=NORMAL n3=NORMAL"}
	if got := fmt.Sprint(gate.released); got != fmt.Sprint(want) {
		t.Errorf("released\n%v\nwant\n%v", got, want)
	}
	if s.gateCuts[0].proof.Wanted != 2 || s.gateCuts[0].proof.Dropped != 2 || s.messages["text G"] != 5 || s.frames != 10 {
		t.Errorf("wanted %d, dropped %d; %v messages in %d frames", s.gateCuts[0].proof.Wanted, s.gateCuts[0].proof.Dropped, s.messages, s.frames)
	}
}

// TestAMirrorShowsWhatGoesToMany as one message to each that the tap reads.
func TestAMirrorShowsWhatGoesToMany(t *testing.T) {
	s := testSession(t, leftScenario(model.Drop), &fakeGate{})
	s.Mirror(time.Now(), toAll(t, "n2", "G n1=NORMAL"))
	s.Mirror(time.Now(), toAll(t, "n2", "10.0.0.3"))
	is := func(frames uint64, g int) {
		t.Helper()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.messages["text G"] != g || s.messages["arp who-has"] != 1 || s.frames != frames {
			t.Errorf("%v in %d frames; want %d and %d", s.messages, s.frames, g, frames)
		}
	}
	is(3, 2)
	s.gateCuts = []*gateCut{{on: true, links: map[model.Link]*model.LinkProof{{Src: "n2", Dst: "n1"}: {}}, proof: model.Proof{InForceAt: 1}}} // of a run that is no script's
	closed := make(chan struct{})
	close(closed)
	s.gateCuts[0].confirmed = closed
	a := inForce(s, "a", model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{"n2"}, {"n1"}}, Only: []model.Traffic{{Proto: "udp"}}})
	inForce(s, "b", model.Partition{Shape: model.Simplex, Groups: [][]model.NodeID{{"n2"}, {"n3"}}}) // n2 reaches n3
	s.Mirror(time.Now(), toAll(t, "n2", "G n1=NORMAL"))
	is(4, 3)
	s.endCut(a, "a")
	s.Mirror(time.Now(), toAll(t, "n2", "G n1=NORMAL"))
	is(6, 5)
	s.beginCut("c", model.Isolate("n2", testNodes, model.Drop)) // its rules are not in force yet
	s.Mirror(time.Now(), toAll(t, "n2", "G n1=NORMAL"))
	is(8, 7)
}

// TestCopiesBehindTheEnd go to their receivers, too.
func TestCopiesBehindTheEnd(t *testing.T) {
	gate := &fakeGate{}
	s := testSession(t, leftScenario(model.Drop), gate)
	s.Mark(model.EventWorkload)
	s.Mark(model.EventStop)
	s.flush()
	s.Gate("n2", time.Now(), toAll(t, "n2", "G n1=NORMAL"))
	if got := fmt.Sprint(gate.released); got != "[n1: G n1=NORMAL n3: G n1=NORMAL]" {
		t.Error(got)
	}
}

// TestCopiesAreLookedForAtTheirReceivers: a multicast that is lost to one receiver has
// arrived at the other all the same, and that is no contradiction; nor is one that the
// other got before.
func TestCopiesAreLookedForAtTheirReceivers(t *testing.T) {
	s := testSession(t, messageScenario(model.MessageFault{Kind: model.FaultLose, Match: model.MessageMatch{Type: "text A", To: "n3"}}), &fakeGate{})
	s.Mark(model.EventWorkload)
	s.Gate("n1", time.Now(), toAll(t, "n1", "A"))
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults.watched) != 1 {
		t.Fatalf("watched: %v", s.faults.watched)
	}
	for a, w := range s.faults.watched {
		if a.to != "n3" || w.passes != 0 || w.blur {
			t.Errorf("looked for at %s, %d passed, blurred %v", a.to, w.passes, w.blur)
		}
		w.known = true // nothing arrived there
	}
	if p := s.faultProofs(s.engine.Result().Faults)[0]; p.Checked != 1 || p.Wrong != 0 || !p.Known {
		t.Errorf("%+v", p)
	}
	var streams []string
	for _, to := range s.receivers("n1", toAll(t, "n1", "B"), true) {
		streams = append(streams, s.step(model.Frame{Num: 9, Host: "n1", To: to, Data: toAll(t, "n1", "B")}).New[0].Stream)
	}
	if want := "[udp 10.0.0.1:7000>239.0.0.7:7000 to n2 udp 10.0.0.1:7000>239.0.0.7:7000 to n3]"; fmt.Sprint(streams) != want {
		t.Errorf("%v, want %s", streams, want)
	}
}

// inForce puts a script's cut in force.
func inForce(s *session, name string, p model.Partition) *gateCut {
	c, at := s.beginCut(name, p)
	s.mu.Lock()
	defer s.mu.Unlock()
	c.proof.InForceAt = at
	return c
}

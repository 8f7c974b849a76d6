package judge

import (
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"netsplit/explorer/check"
	"netsplit/inference/packet"
	"netsplit/inference/pcap"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

// TestLateKeysAreSeenToCross: a key that the final reads lack, and that a node
// sends another one before the second look, is found in the packets; not where
// a client is asked for it, not within a longer key, and not in what the second
// look itself makes nodes say.
func TestLateKeysAreSeenToCross(t *testing.T) {
	path := filepath.Join(t.TempDir(), rundir.PacketsFile)
	w, err := pcap.Create(path, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	ips := map[model.NodeID]netip.Addr{"n1": netip.MustParseAddr("10.0.0.1"), "n2": netip.MustParseAddr("10.0.0.2"), "c1": netip.MustParseAddr("10.0.0.3")}
	num, seq := uint64(0), map[model.Link]uint32{}
	say := func(ms int, from, to model.NodeID, text string) {
		l := model.Link{Src: from, Dst: to}
		tcp := &layers.TCP{SrcPort: 7000, DstPort: 7000, Seq: 100 + seq[l], Ack: 1, ACK: true, Window: 999}
		seq[l] += uint32(len(text))
		ip := &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: net.IP(ips[from].AsSlice()), DstIP: net.IP(ips[to].AsSlice())}
		_ = tcp.SetNetworkLayerForChecksum(ip)
		b, err := packet.Make(&layers.Ethernet{SrcMAC: make(net.HardwareAddr, 6), DstMAC: make(net.HardwareAddr, 6), EthernetType: layers.EthernetTypeIPv4}, ip, tcp, gopacket.Payload(text))
		if err != nil {
			t.Fatal(err)
		}
		num++
		w.Write(model.Frame{Num: num, At: time.Duration(ms) * time.Millisecond, Data: b}, "")
	}
	say(1000, "n1", "n2", "put map-1 put map-2 ") // before the reads
	say(8000, "n2", "c1", "map-3 map-1 ")         // to the reader
	say(8100, "n1", "n2", "set map-12 set ma")    // another key; and one in two packets
	say(8200, "n1", "n2", "p-2 ")
	say(21000, "n1", "n2", "get map-1 get map-3 ") // asked for by the second look
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	f := &runFiles{meta: model.RunMeta{Started: time.Unix(1, 0)}, target: model.Target{Nodes: []model.NodeID{"n1", "n2"}, Checks: []model.CheckSpec{{Name: "lost-acknowledged-writes", Class: model.Broken}}}}
	for _, h := range []model.NodeID{"n1", "n2", "c1"} {
		f.testbed.Hosts = append(f.testbed.Hosts, model.TestbedHost{Name: h, IP: ips[h]})
	}
	add := func(look int, at time.Duration, fn, key string) {
		f.history = append(f.history, record.Entry{Workload: "w", Look: look, Operation: model.Operation{Type: model.OpOK, F: fn, Key: key, Time: at}})
	}
	for _, k := range []string{"map-1", "map-2", "map-3", "map-12"} {
		add(0, time.Second, "write", k)
	}
	add(1, 7*time.Second, "final-read", "map-12")
	add(1, 7*time.Second, "final-read-done", "")
	f.evidence.Looks = []record.Look{{From: 6 * time.Second, To: 7 * time.Second}, {From: 20 * time.Second, To: 22 * time.Second}}
	rec := f.checkRecord()
	got, err := f.crossed(path, &rec)
	want := []check.Crossed{{Key: "map-2", At: 8200 * time.Millisecond, Link: model.Link{Src: "n1", Dst: "n2"}}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%#v, %v; want %#v", got, err, want)
	}

	// A record of an older version: from its last final read to its end.
	f.evidence.Looks = nil
	if got, err = f.crossed(path, &rec); err != nil || len(got) != 3 {
		t.Errorf("%#v, %v", got, err)
	}
}

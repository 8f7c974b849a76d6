package agent

import (
	"encoding/hex"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"netsplit/model"
)

func addr(s string) [16]byte { return netip.MustParseAddr(s).As16() }

func set(ss ...string) map[[16]byte]bool {
	out := map[[16]byte]bool{}
	for _, s := range ss {
		out[addr(s)] = true
	}
	return out
}

func TestTallyForgetsTheOldestAndSaysSo(t *testing.T) {
	ta := tally{limit: 4, since: 100}
	for at := int64(101); at <= 106; at++ {
		ta.add(arrival{at: at, src: addr("10.0.0.1"), dst: addr("10.0.0.2"), length: 60})
	}
	src, own := set("10.0.0.1"), set("10.0.0.2")
	for _, c := range []struct {
		from, to   int64
		want       int
		incomplete bool
	}{
		{103, 107, 4, false}, // 101 and 102 are forgotten
		{102, 107, 4, true},
		{104, 106, 2, false}, // from is in, to is not
		{107, 200, 0, false},
	} {
		got := ta.count(wanted{sources: src, own: own}, c.from, c.to)
		if got.Packets != c.want || got.Incomplete != c.incomplete {
			t.Errorf("[%d, %d): %+v", c.from, c.to, got)
		}
	}
}

func TestTallyMissedWindows(t *testing.T) {
	ta := tally{limit: 10}
	ta.miss(window{10, 20})
	ta.miss(window{20, 30}) // grows the first
	ta.miss(window{50, 60})
	if len(ta.missed) != 2 {
		t.Errorf("%v", ta.missed)
	}
	for _, c := range []struct {
		from, to int64
		want     bool
	}{{0, 10, false}, {0, 11, true}, {30, 40, true}, {31, 50, false}, {31, 51, true}, {61, 70, false}} {
		if got := ta.count(wanted{}, c.from, c.to).Incomplete; got != c.want {
			t.Errorf("[%d, %d): %v", c.from, c.to, got)
		}
	}
	for i := int64(0); i < 5000; i++ { // bounded, and never fewer windows than there were
		ta.miss(window{100 + 10*i, 105 + 10*i})
	}
	if len(ta.missed) > 1000 || !ta.count(wanted{}, 50101, 50102).Incomplete == false {
		t.Errorf("%d windows", len(ta.missed))
	}
	if !ta.count(wanted{}, 50090, 50100).Incomplete {
		t.Error("a window was lost")
	}
}

func TestParse(t *testing.T) {
	const eth = "020000000002" + "020000000001"
	v4 := eth + "0800" + "4500001c0000000040110000" + "0a000001" + "0a000002" + "0000000000000000"
	v6 := eth + "86dd" + "60000000" + "0008" + "11" + "40" + "fe80000000000000000000000000000a" + "fe80000000000000000000000000000b" + "0000000000000000"
	arp := eth + "0806" + "0001080006040001" + "020000000001" + "0a000001" + "000000000000" + "0a000002"
	ns := eth + "86dd" + "60000000" + "0018" + "3a" + "ff" + "fe80000000000000000000000000000a" + "ff0200000000000000000001ff00000b" +
		"8700000000000000" + "fe80000000000000000000000000000b"
	for _, c := range []struct {
		name, frame, src, dst string
		length                int32
	}{
		{"ipv4", v4, "10.0.0.1", "10.0.0.2", 42},
		{"ipv6", v6, "fe80::a", "fe80::b", 62},
		{"arp", arp, "10.0.0.1", "10.0.0.2", 42},
		{"neighbour solicitation", ns, "fe80::a", "fe80::b", 78},
	} {
		f, err := hex.DecodeString(c.frame)
		if err != nil {
			t.Fatal(err)
		}
		got, _, ok := parse(f)
		if !ok || got.src != addr(c.src) || got.dst != addr(c.dst) || got.length != c.length {
			t.Errorf("%s: %+v, %v", c.name, got, ok)
		}
		for n := range f {
			if a, _, ok := parse(f[:n]); ok && (a.src != got.src) {
				t.Errorf("%s cut to %d bytes: %+v", c.name, n, a)
			}
		}
	}
	for _, s := range []string{"", eth, eth + "88cc0000", eth + "0800" + strings.Repeat("ff", 40), eth + "0806" + strings.Repeat("00", 28)} {
		f, _ := hex.DecodeString(s)
		if a, _, ok := parse(f); ok {
			t.Errorf("%s: %+v", s, a)
		}
	}
}

// TestTrafficIsCountedApart: by protocol, port and who opens a connection, from
// the bytes of frames; by hardware address where the address is not known.
func TestTrafficIsCountedApart(t *testing.T) {
	const eth = "020000000002" + "020000000001"
	v4 := func(proto, frag, l4 string) string {
		return eth + "0800" + "4500003000000" + frag + "40" + proto + "0000" + "0a000001" + "0a000002" + l4
	}
	v6 := func(proto, l4 string) string {
		return eth + "86dd" + "60000000" + "0018" + proto + "40" + "fe80000000000000000000000000000a" + "0a0000020000000000000000000000ff" + l4
	}
	syn, ack := "9c401b580000000100000000500200000000", "9c401b580000000100000000501000000000"
	ta := tally{limit: 100}
	var frames [][]byte
	for i, f := range []string{
		v4("06", "000", syn+"0000"), v4("06", "000", ack+"0000"), v4("06", "000", "1b589c400000000100000000501200000000"+"0000"),
		v6("06", syn+"0000"), v4("11", "000", "9c40003500080000"), v4("11", "064", "9c40003500080000"), v4("01", "000", "0800000000000000"),
		v6("3a", "8000000000000000"), v6("3a", "8800000000000000"+"fe80000000000000000000000000000b"),
		eth + "0806" + "0001080006040001" + "020000000001" + "0a000001" + "000000000000" + "0a000002",
	} {
		b, err := hex.DecodeString(f)
		if err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		a, _, ok := parse(b)
		if !ok {
			t.Fatalf("frame %d is not read", i)
		}
		a.at = int64(i + 1)
		ta.add(a)
		frames = append(frames, b)
	}
	own := set("10.0.0.2", "a00:2::ff")
	for only, want := range map[string]int{"": 10, "tcp": 4, "tcp-opening": 2, "tcp/7000": 4, "tcp/7000-opening": 2, "tcp/80": 0, "udp": 2, "udp/53": 1, "icmp": 2, "arp": 2} {
		w := wanted{mac: [6]byte{2, 0, 0, 0, 0, 1}, own: own}
		if only != "" {
			tr, err := model.ParseTraffic(only)
			if err != nil {
				t.Fatal(err)
			}
			w.only = []model.Traffic{tr}
		}
		if only != "" {
			n := 0
			for _, f := range frames {
				n += map[bool]int{true: 1}[Of(f, w.only)]
				for _, tags := range []string{"81000005", "88a80005", "91000005", "88a8000581000006", "9100000581000006", "8100000581000006"} {
					tag, _ := hex.DecodeString(tags)
					if tagged := slices.Insert(slices.Clone(f), 12, tag...); Of(tagged, w.only) != Of(f, w.only) || Digest(tagged) != Digest(f) {
						t.Errorf("%q: tags %s make a difference for %x", only, tags, f)
					}
				}
			}
			if n != want {
				t.Errorf("%q: %d frames are of it, want %d", only, n, want)
			}
		}
		if got := ta.count(w, 0, 100); got.Packets != want {
			t.Errorf("%q: %+v, want %d packets", only, got, want)
		}
	}
	if got := ta.count(wanted{mac: [6]byte{2, 0, 0, 0, 0, 9}, own: own}, 0, 100); got.Packets+got.Group != 0 {
		t.Errorf("of another sender: %+v", got)
	}
}

// TestBroadcastsAreCountedApart: what a host sends to all or many arrives, though it
// is for no address of the receiver; what it sends to another host, and comes here
// all the same, does not.
func TestBroadcastsAreCountedApart(t *testing.T) {
	from, udp := "020000000001", "9c40003500080000"
	v4 := func(to, ip string) string {
		return to + from + "0800" + "4500001c0000000040110000" + "0a000001" + ip + udp
	}
	ask := "0806" + "0001080006040001" + from + "0a000001" + "000000000000"
	ta := tally{limit: 100}
	for i, f := range []struct {
		hex string
		way way
	}{
		{v4("ffffffffffff", "0a0000ff"), toOther},
		{v4("01005e000001", "e0000001"), toOther},
		{"3333000000fb" + from + "86dd" + "60000000" + "0008" + "11" + "40" + "fe80000000000000000000000000000a" + "ff0200000000000000000000000000fb" + udp, toOther},
		{"ffffffffffff" + from + ask + "0a000003", toOther}, // who has somebody else's address
		{"ffffffffffff" + from + ask + "0a000002", toOther}, // who has ours
		{v4("020000000002", "0a000002"), toHost},
		{v4("020000000002", "ac110005"), toHost}, // of a container
		{v4("020000000003", "0a000003"), toOther},
	} {
		b, err := hex.DecodeString(f.hex)
		if err != nil {
			t.Fatal(err)
		}
		a, _, ok := parse(b)
		if !ok {
			t.Fatalf("frame %d is not read", i)
		}
		if a.at = int64(i + 1); f.way != toOther {
			a.way = f.way // which the kernel says
		}
		ta.add(a)
	}
	w := wanted{mac: [6]byte{2, 0, 0, 0, 0, 1}, own: set("10.0.0.2")}
	for only, want := range map[string][2]int{"": {3, 4}, "udp": {2, 3}, "udp/53": {2, 3}, "udp/54": {0, 0}, "tcp": {0, 0}, "arp": {1, 1}} {
		w.only = nil
		if only != "" {
			tr, err := model.ParseTraffic(only)
			if err != nil {
				t.Fatal(err)
			}
			w.only = []model.Traffic{tr}
		}
		if got := ta.count(w, 0, 100); got.Packets != want[0] || got.Group != want[1] {
			t.Errorf("%q: %+v, want %v", only, got, want)
		}
	}
	for _, c := range []struct{ from, to, first, ofAll int64 }{{1, 5, 0, 1}, {2, 8, 5, 2}, {5, 8, 5, 5}, {8, 9, 0, 0}} {
		if got := ta.count(wanted{mac: w.mac, own: w.own}, c.from, c.to); got.First != c.first || got.first() != c.ofAll {
			t.Errorf("from %d to %d: first %d, with broadcasts %d; want %d and %d", c.from, c.to, got.First, got.first(), c.first, c.ofAll)
		}
	}
}

// TestHeadersOfIPv6ArePassedOver: what is behind extension headers is of its traffic;
// a later fragment is of none.
func TestHeadersOfIPv6ArePassedOver(t *testing.T) {
	const eth = "020000000002" + "020000000001" + "86dd"
	const addrs = "fe80000000000000000000000000000a" + "fe80000000000000000000000000000b"
	const alert, udp = "0502000001", "9c4000350008bad0"
	ip := func(next, rest string) string { return eth + "60000000" + "0000" + next + "ff" + addrs + rest }
	for _, c := range []struct {
		name, frame string
		proto       protocol
		to          uint16
	}{
		{"report of groups", ip("00", "3a00"+alert+"00"+"8f00000000000000"), protoICMP, 0},
		{"solicitation behind options", ip("3c", "3a00"+alert+"00"+"8700000000000000"+"fe80000000000000000000000000000b"), protoARP, 0},
		{"first fragment", ip("2c", "1100000100000007"+udp), protoUDP, 53},
		{"whole, as a fragment", ip("2c", "1100000000000007"+udp), protoUDP, 53},
		{"later fragment", ip("2c", "1100032000000007"+udp), protoOther, 0},
		{"all sorts", ip("00", "2b00"+alert+"00"+"3c00000000000000"+"3300"+alert+"00"+"2c04"+strings.Repeat("00", 22)+"1100000100000007"+udp), protoUDP, 53},
		{"cut short", ip("00", "3a03"+alert+"00"), protoICMP, 0},
		{"cut shorter", ip("00", "3a"), protoOther, 0},
		{"options that lead nowhere", ip("00", "00ff"+alert+"00"), protoOther, 0},
	} {
		f, err := hex.DecodeString(c.frame)
		if err != nil {
			t.Fatal(c.name, err)
		}
		if a, _, ok := parse(f); !ok || a.proto != c.proto || a.to != c.to {
			t.Errorf("%s: %+v, %v", c.name, a, ok)
		}
		for n := range f {
			parse(f[:n])
		}
	}
}

// TestAProbePacketIsToldFromOthersOfItsTraffic: by the end that has the port, and by
// whether it goes to everybody.
func TestAProbePacketIsToldFromOthersOfItsTraffic(t *testing.T) {
	e := ends{srcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, dstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, src: netip.MustParseAddr("10.0.0.1"), dst: netip.MustParseAddr("10.0.0.2")}
	for _, tr := range []model.Traffic{{Proto: "tcp", Port: 7000}, {Proto: "udp", Port: model.ProbePacketPort}, {Proto: "arp"}} {
		var all []model.ProbePacket
		for _, s := range (model.Partition{Only: []model.Traffic{tr}}).ProbePackets() {
			if !s.V6 {
				all = append(all, s)
			}
		}
		for _, s := range all {
			f, err := frameOf(s, e)
			if err != nil {
				t.Fatal(err)
			}
			a, _, ok := parse(f)
			if !ok {
				t.Fatalf("%+v: %x", s, f)
			}
			for _, o := range all {
				w := wanted{sources: set("10.0.0.1"), like: &o}
				if w.has(&a) != (s == o) {
					t.Errorf("%+v arrived and %+v was asked for: %v", s, o, w.has(&a))
				}
			}
		}
		if len(all) != 2 {
			t.Errorf("%s: %d probe packets, want 2", tr, len(all))
		}
	}
}

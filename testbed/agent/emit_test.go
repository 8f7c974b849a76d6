package agent

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"netsplit/model"
)

// every lists probe packets of all kinds of traffic.
func every() []model.ProbePacket {
	var out []model.ProbePacket
	for _, p := range []model.Partition{{Effect: model.Reset}, {Only: []model.Traffic{{Proto: "tcp"}, {Proto: "tcp", Port: 7000}, {Proto: "tcp", Port: 7000, Opening: true},
		{Proto: "udp"}, {Proto: "udp", Port: 7000}, {Proto: "icmp"}, {Proto: "arp"}}}} {
		out = append(out, p.ProbePackets()...)
	}
	return out
}

// TestProbePacketsLookAsWhatTheyStandFor to who reads them as agents do.
func TestProbePacketsLookAsWhatTheyStandFor(t *testing.T) {
	e := ends{srcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, dstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, src: netip.MustParseAddr("10.0.0.1"), dst: netip.MustParseAddr("10.0.0.2")}
	all := every()
	for _, s := range all {
		if s.Past = true; !s.Asks {
			all = append(all, s)
		}
	}
	for _, s := range all {
		to := e
		if s.V6 {
			to.src, to.dst = LinkLocal(e.srcMAC), LinkLocal(e.dstMAC)
		}
		f, err := frameOf(s, to)
		if err != nil {
			t.Errorf("%+v: %v", s, err)
			continue
		}
		a, _, ok := parse(f)
		src, dst := s.Ports()
		aim := to.dst
		if s.Past && s.Proto == "arp" && !s.V6 {
			aim = to.src
		}
		if s.Proto != "tcp" && s.Proto != "udp" {
			src, dst = 0, 0
		}
		if !ok || !a.of([]model.Traffic{s.Traffic}) || a.from != src || a.to != dst || a.opening != s.Opening || a.src != to.src.As16() || a.dst != aim.As16() || (a.way == toGroup) != (s.Asks || s.Past) {
			t.Errorf("%+v is read as %+v, %v: %x", s, a, ok, f)
		}
	}
	if a, want := LinkLocal(e.srcMAC), netip.MustParseAddr("fe80::ff:fe00:1"); a != want {
		t.Errorf("%v, want %v", a, want)
	}
}

// TestNobodyAnswersAProbePacket: they arrive, past the sender's rules or not, the service
// on their port sees none of them, and the kernel says nothing but who has the address
// that is asked for.
func TestNobodyAnswersAProbePacket(t *testing.T) {
	h, ours, theirs := pair(t)
	// Another address of the sender's comes first, and leads there, too.
	ns := h.Exec[1][len("--net=/run/netns/"):]
	sh(t, "ip -n %[1]s addr del %[2]s/24 dev e0; ip -n %[1]s addr add 10.9.%[3]d.77/16 dev e0; ip -n %[1]s addr add %[2]s/24 dev e0", ns, theirs, hostCount)
	c := start(t, h)
	dev, _, err := towards(netip.Addr{}, theirs)
	if err != nil || dev == nil {
		t.Fatal(dev, err)
	}
	here, err := openCapture()
	if err != nil {
		t.Fatal(err)
	}
	defer here.close()
	l, err := net.Listen("tcp", netip.AddrPortFrom(ours, 7000).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ours, 7000)))
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	from := time.Now()
	arrived := func(only ...model.Traffic) int {
		n, err := here.count(&netQuery{Sources: []netip.Addr{theirs}, MAC: mac(t, h), Only: only, From: from.UnixNano(), To: time.Now().UnixNano()})
		if err != nil {
			t.Fatal(err)
		}
		return n.Packets + n.Group
	}
	all := every()
	for _, s := range all {
		if s.Past = true; !s.Asks {
			all = append(all, s)
		}
	}
	for range 2 {
		sent, err := c.Emit(t.Context(), theirs, ours, dev.HardwareAddr, all)
		if err != nil {
			t.Fatal(err)
		}
		for i, is := range sent {
			if !is {
				t.Errorf("%+v was not sent", all[i])
			}
		}
	}
	kinds := map[model.Traffic]int{}
	for _, s := range all {
		kinds[model.Traffic{Proto: s.Proto}] += 2
	}
	for kind, want := range kinds {
		for end := time.Now().Add(20 * time.Second); arrived(kind) < want && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		}
		// The host may ask who has our address, too, and its kernel report groups.
		if n := arrived(kind); n < want || n != want && (kind.Proto == "tcp" || kind.Proto == "udp") {
			t.Errorf("%d of %v arrived, want %d", n, kind, want)
		}
	}
	if n, err := here.count(&netQuery{Sources: []netip.Addr{theirs}, Only: []model.Traffic{{Proto: "tcp"}}, From: from.UnixNano(), To: time.Now().UnixNano()}); err != nil || n.Packets == 0 {
		t.Errorf("%d of tcp came from the address that was given, %v", n.Packets, err)
	}
	time.Sleep(100 * time.Millisecond)
	for _, kind := range []string{"tcp", "udp", "icmp"} {
		n, err := c.CountFrom(t.Context(), Sender{Addrs: []netip.Addr{ours}, MAC: dev.HardwareAddr, Only: []model.Traffic{{Proto: kind}}}, from, time.Now())
		if err != nil || n.Packets != 0 {
			t.Errorf("%s: answered %d times, %v", kind, n.Packets, err)
		}
	}
	_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(50 * time.Millisecond))
	if k, err := l.Accept(); err == nil {
		t.Errorf("a connection from %v", k.RemoteAddr())
	}
	_ = u.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, far, err := u.ReadFrom(make([]byte, 100)); err == nil {
		t.Errorf("a datagram of %d bytes from %v", n, far)
	}
}

// mac is the Ethernet address of the host's end of the pair.
func mac(t *testing.T, h model.TestbedHost) (out net.HardwareAddr) {
	t.Helper()
	inNetns(t, h, func() error {
		ifi, err := net.InterfaceByName("e0")
		if err == nil {
			out = ifi.HardwareAddr
		}
		return err
	})
	return out
}

// TestOverARouter go only probe packets that need no Ethernet address of the receiver.
func TestOverARouter(t *testing.T) {
	h, ours, theirs := pair(t)
	sh(t, "ip netns exec %s ip route add 192.0.2.0/24 via %s", h.Exec[1][len("--net=/run/netns/"):], ours)
	c := start(t, h)
	here, err := openCapture()
	if err != nil {
		t.Fatal(err)
	}
	defer here.close()
	from := time.Now()
	all := model.Partition{}.ProbePackets() // ARP to everybody, TCP, TCP over IPv6
	past := all[1]
	past.Past = true
	sent, err := c.Emit(t.Context(), theirs, netip.MustParseAddr("192.0.2.7"), net.HardwareAddr{2, 0, 0, 0, 0, 7}, append(all, past))
	if err != nil || len(sent) != 4 || sent[0] || !sent[1] || sent[2] || sent[3] {
		t.Fatalf("%v, %v", sent, err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		n, err := here.count(&netQuery{Sources: []netip.Addr{theirs}, Only: []model.Traffic{all[1].Traffic}, From: from.UnixNano(), To: time.Now().UnixNano()})
		if err == nil && n.Packets == 1 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v, %v: want the one of TCP", n, err)
		}
	}
}

// TestWhereProbePacketsLeave: by the test network where the host has another that contains
// it, whichever comes first; from the address that was given, where that is.
func TestWhereProbePacketsLeave(t *testing.T) {
	wide, test, near := &net.Interface{Name: "eth0"}, &net.Interface{Name: "eth1"}, &net.Interface{Name: "eth2"}
	addr := netip.MustParseAddr
	legs := []leg{{wide, netip.MustParsePrefix("10.0.0.1/8")}, {test, netip.MustParsePrefix("10.79.0.1/24")},
		{near, netip.MustParsePrefix("10.79.0.200/28")}, {near, netip.MustParsePrefix("fd00::1/64")}}
	for _, k := range []struct {
		from, to string
		by       *net.Interface
		own      string
	}{
		{"10.79.0.1", "10.79.0.2", test, "10.79.0.1"},
		{"10.79.0.1", "10.79.0.201", test, "10.79.0.1"}, // though the prefix of another is longer
		{"10.79.0.77", "10.79.0.2", test, "10.79.0.1"},  // nobody has that one
		{"10.79.0.77", "10.79.0.201", near, "10.79.0.200"},
		{"10.0.0.1", "10.79.0.2", wide, "10.0.0.1"},
		{"10.79.0.1", "10.80.0.2", wide, "10.0.0.1"},
		{"10.79.0.200", "fd00::2", near, "fd00::1"},
	} {
		for range legs { // in any order
			legs = append(legs[1:], legs[0])
			if l, ok := legTo(legs, addr(k.from), addr(k.to)); !ok || l.ifi != k.by || l.addr.Addr() != addr(k.own) {
				t.Errorf("from %s to %s: by %+v", k.from, k.to, l)
			}
		}
	}
	if l, ok := legTo(legs, addr("10.79.0.1"), addr("192.0.2.1")); ok {
		t.Errorf("to another network by %+v", l)
	}
}

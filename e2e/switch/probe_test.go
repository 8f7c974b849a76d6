package ofswitch

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"netsplit/model"
)

// kinds of probes; each is one frame from one host to another.
var kinds = []string{"tcp", "udp", "icmp", "fragment", "arp request", "arp reply"}

var lastProbe atomic.Uint32

// frame builds a probe of the kind. Its payload is the marker and a number.
func frame(kind string, from, to *host) (uint32, []byte) {
	n := lastProbe.Add(1)
	payload := binary.BigEndian.AppendUint32([]byte(marker), n)
	dst := to.mac
	var typ uint16
	var body []byte
	switch kind {
	case "arp request":
		dst = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		typ, body = 0x0806, append(arp(1, from, to, [6]byte{}), payload...)
	case "arp reply":
		typ, body = 0x0806, append(arp(2, from, to, to.mac), payload...)
	default:
		typ, body = 0x0800, ipv4(kind, from, to, payload)
	}
	f := append(append([]byte{}, dst[:]...), from.mac[:]...)
	f = binary.BigEndian.AppendUint16(f, typ)
	return n, append(f, body...)
}

func arp(op byte, from, to *host, target [6]byte) []byte {
	b := []byte{0, 1, 8, 0, 6, 4, 0, op}
	b = append(append(b, from.mac[:]...), from.ip.AsSlice()...)
	return append(append(b, target[:]...), to.ip.AsSlice()...)
}

func ipv4(kind string, from, to *host, payload []byte) []byte {
	var proto byte
	var l4 []byte
	frag := uint16(0)
	switch kind {
	case "tcp": // a SYN, without a valid checksum: the receiver's kernel drops it
		proto, l4 = 6, []byte{0x9c, 0x40, 0x23, 0x28, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0}
	case "udp": // longer than it is, or the kernel answers with our payload in an ICMP error
		proto, l4 = 17, []byte{0x9c, 0x40, 0x23, 0x28, 1, byte(8 + len(payload)), 0xba, 0xd0}
	case "icmp": // echo reply: nobody answers it
		proto, l4 = 1, []byte{0, 0, 0, 0, 0, 1, 0, 1}
	case "fragment": // a later one, without ports
		proto, frag = 17, 100
	}
	l4 = append(l4, payload...)
	h := []byte{0x45, 0, 0, 0, 0, 1, 0, 0, 64, proto, 0, 0}
	h = append(append(h, from.ip.AsSlice()...), to.ip.AsSlice()...)
	binary.BigEndian.PutUint16(h[2:], uint16(20+len(l4)))
	binary.BigEndian.PutUint16(h[6:], frag)
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(h[i:]))
	}
	sum = sum>>16 + sum&0xffff
	sum += sum >> 16
	binary.BigEndian.PutUint16(h[10:], ^uint16(sum))
	return append(h, l4...)
}

type probe struct {
	kind     string
	from, to *host
	num      uint32
}

func (b *bench) sendAll() []probe {
	b.tb.Helper()
	var out []probe
	for _, from := range b.hosts {
		for _, to := range b.hosts {
			if from == to {
				continue
			}
			for _, k := range b.kinds {
				n, f := frame(k, from, to)
				from.send(b.tb, f)
				out = append(out, probe{k, from, to, n})
			}
		}
	}
	return out
}

// mismatches says where the probes differ from the oracle: p passes if and
// only if pass says so, exactly once; and a broadcast that is not meant for a
// host reaches it only if its sender may reach it.
func (b *bench) mismatches(ps []probe, pass func(from, to model.NodeID) bool) []string {
	var out []string
	for _, p := range ps {
		want := 0
		if pass(p.from.id, p.to.id) {
			want = 1
		}
		if got := p.to.received(p.num); got != want {
			out = append(out, fmt.Sprintf("%s %s>%s: received %d times, want %d", p.kind, p.from.id, p.to.id, got, want))
		}
		for _, o := range b.hosts {
			if o != p.to && o.received(p.num) > 0 && (p.kind != "arp request" || !pass(p.from.id, o.id)) {
				out = append(out, fmt.Sprintf("%s %s>%s: overheard by %s", p.kind, p.from.id, p.to.id, o.id))
			}
		}
	}
	return out
}

// expect sends all probes and waits until what arrived is what pass says; what
// must not pass is given time to arrive.
func (b *bench) expect(what string, pass func(from, to model.NodeID) bool) {
	b.tb.Helper()
	ps := b.sendAll()
	cached := b.appctl("dpctl/dump-flows")
	end := time.Now().Add(3 * time.Second)
	for time.Now().Before(end) && strings.Contains(strings.Join(b.mismatches(ps, pass), "\n"), "received 0 times") {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(150 * time.Millisecond)
	if bad := b.mismatches(ps, pass); len(bad) > 0 {
		b.tb.Errorf("%s: %d of %d probes are wrong:\n%s\n%s\ncached:\n%s", what, len(bad), len(ps), strings.Join(bad, "\n"), b.flows(), cached)
	}
}

func (b *bench) flows() string { return b.ofctl("--no-names", "dump-flows", b.mgmt()) }

// matrix is the oracle: what the partitions leave.
func matrix(ps ...model.Partition) func(from, to model.NodeID) bool {
	cut := map[model.Link]bool{}
	for _, p := range ps {
		for _, l := range p.Links() {
			cut[l] = true
		}
	}
	return func(from, to model.NodeID) bool { return !cut[model.Link{Src: from, Dst: to}] }
}

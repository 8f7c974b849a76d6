package agent

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"netsplit/inference/packet"
	"netsplit/model"
)

// emit sends probe packets at once and says which of them it could send: over a router
// go only those of the receiver's IP version that need not its Ethernet address.
// That they left the host is all that no error says.
func emit(e *emission) (sent []bool, err error) {
	if len(e.MAC) != 6 {
		return nil, fmt.Errorf("%s has no Ethernet address", e.To)
	}
	sent = make([]bool, len(e.ProbePackets))
	ifi, own, err := towards(e.From, e.To)
	if err != nil {
		return nil, err
	}
	var frames [][]byte
	for i, s := range e.ProbePackets {
		sent[i] = e.applies(s, ifi == nil)
		if !sent[i] {
			continue
		}
		to := ends{srcMAC: e.MAC, dstMAC: e.MAC, src: own, dst: e.To}
		if ifi != nil {
			to.srcMAC = ifi.HardwareAddr
		}
		if s.V6 && e.To.Is4() {
			to.src, to.dst = LinkLocal(to.srcMAC), LinkLocal(to.dstMAC)
		}
		f, err := frameOf(s, to)
		if err != nil {
			return nil, err
		}
		frames = append(frames, f)
	}
	if ifi == nil {
		return sent, sendRouted(e.To, frames)
	}
	return sent, sendFrames(ifi, frames)
}

// applies says whether a probe packet can be sent to the address.
func (e *emission) applies(s model.ProbePacket, routed bool) bool {
	if routed {
		return s.Proto != "arp" && !s.Past && s.V6 == e.To.Is6()
	}
	return s.V6 || e.To.Is4()
}

func sendFrames(ifi *net.Interface, frames [][]byte) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("packet socket: %w (it takes CAP_NET_RAW)", err)
	}
	defer unix.Close(fd)
	for _, f := range frames {
		if err := unix.Sendto(fd, f, 0, &unix.SockaddrLinklayer{Ifindex: ifi.Index}); err != nil {
			return err
		}
	}
	return nil
}

// sendRouted has the kernel find the way for what is in the frames (raw(7),
// IPPROTO_RAW).
func sendRouted(to netip.Addr, frames [][]byte) error {
	family, sa := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Addr: to.Unmap().As4()})
	if to.Is6() {
		family, sa = unix.AF_INET6, &unix.SockaddrInet6{Addr: to.As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return fmt.Errorf("raw socket: %w (it takes CAP_NET_RAW)", err)
	}
	defer unix.Close(fd)
	for _, f := range frames {
		if err := unix.Sendto(fd, f[packet.EthernetLen:], 0, sa); err != nil {
			return err
		}
	}
	return nil
}

// leg is an address on an Ethernet interface.
type leg struct {
	ifi  *net.Interface
	addr netip.Prefix
}

// legTo is where probe packets to an address on its network leave: by the interface that
// has from, else by the longest prefix, as the kernel routes. They come from from, if
// it is there. false: to is on the network of none.
func legTo(legs []leg, from, to netip.Addr) (best leg, found bool) {
	has := func(l leg) bool {
		return slices.ContainsFunc(legs, func(o leg) bool { return o.ifi == l.ifi && o.addr.Addr() == from })
	}
	for _, l := range legs {
		if l.addr.Contains(to) && (!found || cmp.Or(model.FalseFirst(has(l), has(best)), cmp.Compare(l.addr.Bits(), best.addr.Bits())) > 0) {
			best, found = l, true
		}
	}
	if found && has(best) && from.Is4() == to.Is4() {
		best.addr = netip.PrefixFrom(from, best.addr.Bits())
	}
	return best, found
}

// towards finds the interface on the network of an address, and the address of its
// own to send from: from, if it has that. The interface is nil if a router leads
// there.
func towards(from, to netip.Addr) (*net.Interface, netip.Addr, error) {
	ifis, err := net.Interfaces()
	if err != nil {
		return nil, netip.Addr{}, err
	}
	var legs []leg
	for i := range ifis {
		addrs, err := ifis[i].Addrs()
		if err != nil || len(ifis[i].HardwareAddr) != 6 {
			continue
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				legs = append(legs, leg{&ifis[i], p})
			}
		}
	}
	if l, ok := legTo(legs, from, to); ok {
		return l.ifi, l.addr.Addr(), nil
	}
	// What is never written is never sent: it only tells the address that the
	// kernel would send from.
	c, err := net.Dial("udp", netip.AddrPortFrom(to, model.ProbePacketPort).String())
	if err != nil {
		return nil, netip.Addr{}, fmt.Errorf("no way leads to %s: %w", to, err)
	}
	defer c.Close()
	own, ok := netip.AddrFromSlice(c.LocalAddr().(*net.UDPAddr).IP)
	if !ok {
		return nil, netip.Addr{}, errors.New("no address of this host's own")
	}
	return nil, own.Unmap(), nil
}

package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// closedPort is where packets of no particular port go: nobody listens there.
const closedPort = 9

// openLimit is how long an opening of a connection is left under way: one SYN
// leaves at once, the next would a second later.
const openLimit = 300 * time.Millisecond

// emit sends one packet. It does not wait for an answer; that it left the host is
// all that no error says.
func emit(ctx context.Context, e *emission) error {
	port := e.Traffic.Port
	if port == 0 {
		port = closedPort
	}
	to := netip.AddrPortFrom(e.To, port).String()
	switch e.Traffic.Proto {
	case "tcp":
		d := net.Dialer{Timeout: openLimit}
		go func() {
			if c, err := d.DialContext(ctx, "tcp", to); err == nil {
				c.Close()
			}
		}()
		return nil
	case "udp":
		return sendOne("udp", to, []byte("netsplit"))
	case "icmp":
		network, echo := "ip4:icmp", []byte{8, 0, 0, 0, 'n', 's', 0, 1}
		if e.To.Is6() && !e.To.Is4In6() {
			network, echo[0] = "ip6:ipv6-icmp", 128 // its checksum is the kernel's
		} else {
			binary.BigEndian.PutUint16(echo[2:], checksum(echo))
		}
		return sendOne(network, e.To.String(), echo)
	case "arp":
		return askForAddress(e.To)
	}
	return fmt.Errorf("no packets of %q can be sent: use tcp, udp, icmp or arp", e.Traffic.Proto)
}

// sendOne writes one datagram. That an earlier one was answered with an error says
// nothing of this one.
func sendOne(network, to string, b []byte) error {
	c, err := net.Dial(network, to)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err = c.Write(b); errors.Is(err, unix.ECONNREFUSED) {
		_, err = c.Write(b)
	}
	return err
}

// checksum is the Internet checksum (RFC 1071) of an even number of bytes.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum>>16 + sum)
}

// askForAddress sends an ARP request (RFC 826) from the interface that is on the
// address's network.
func askForAddress(to netip.Addr) error {
	if !to.Is4() {
		return fmt.Errorf("ARP asks for IPv4 addresses, not for %s", to)
	}
	ifi, own, err := towards(to)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("packet socket: %w (it takes CAP_NET_RAW)", err)
	}
	defer unix.Close(fd)
	f := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, ifi.HardwareAddr...)
	f = append(f, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1)
	f = append(append(f, ifi.HardwareAddr...), own.AsSlice()...)
	f = append(append(f, 0, 0, 0, 0, 0, 0), to.AsSlice()...)
	return unix.Sendto(fd, f, 0, &unix.SockaddrLinklayer{Ifindex: ifi.Index})
}

// towards finds the interface on the network of an address, and its own address.
func towards(to netip.Addr) (*net.Interface, netip.Addr, error) {
	ifis, err := net.Interfaces()
	if err != nil {
		return nil, netip.Addr{}, err
	}
	for _, ifi := range ifis {
		addrs, err := ifi.Addrs()
		if err != nil || len(ifi.HardwareAddr) != 6 {
			continue
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Contains(to) {
				return &ifi, p.Addr(), nil
			}
		}
	}
	return nil, netip.Addr{}, fmt.Errorf("no interface is on the network of %s", to)
}

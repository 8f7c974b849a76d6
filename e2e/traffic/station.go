package traffic

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"netsplit/internal/labtest"
	"netsplit/model"
)

// Station is a host that is a network namespace: it sends frames out of an interface
// of it, and sees what its kernel goes on with.
type Station struct {
	Name      model.NodeID
	Netns     string
	Interface string
	mac       [6]byte
	ip        netip.Addr
	out       int // packet socket that sends

	mu  sync.Mutex
	got map[uint32]int // probe number: times received
}

// NewStation has the addresses of a host's interface. The last byte of the MAC tells
// hosts apart.
func NewStation(name model.NodeID, netns, iface string, mac [6]byte, ip netip.Addr) *Station {
	return &Station{Name: name, Netns: netns, Interface: iface, mac: mac, ip: ip, got: map[uint32]int{}}
}

func (h *Station) ID() model.NodeID { return h.Name }
func (h *Station) MAC() [6]byte     { return h.mac }
func (h *Station) IP() netip.Addr   { return h.ip }
func (h *Station) Number() byte     { return h.mac[5] }

// types are those of the oracle's frames, with the outermost VLAN tag off. What the host's
// kernel goes on with is what counts: a socket of all types would see packets that
// are dropped at ingress.
var types = []uint16{0x0800, 0x86dd, 0x0806, 0x1234, 0x8100}

// Open makes the sockets and their readers, until the test ends.
func (h *Station) Open(t *testing.T) {
	t.Helper()
	var fds []int
	err := labtest.In(h.Netns, func() error {
		ifi, err := net.InterfaceByName(h.Interface)
		if err != nil {
			return err
		}
		for _, typ := range append([]uint16{0}, types...) {
			fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			fds = append(fds, fd)
			if err := errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}),
				unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20),
				unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: typ<<8 | typ>>8, Ifindex: ifi.Index})); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("packet sockets on %s: %v", h.Name, err)
	}
	h.out = fds[0]
	ctx, stop := context.WithCancel(context.Background())
	var readers sync.WaitGroup
	for _, fd := range fds[1:] {
		readers.Go(func() { h.read(ctx, fd) })
	}
	t.Cleanup(func() {
		stop()
		readers.Wait()
		for _, fd := range fds {
			unix.Close(fd)
		}
	})
}

func (h *Station) read(ctx context.Context, fd int) {
	buf := make([]byte, 2048)
	for ctx.Err() == nil {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			continue // the time limit, to look at ctx
		}
		if at := strings.Index(string(buf[:n]), Marker); at >= 0 && at+len(Marker)+4 <= n {
			h.mu.Lock()
			h.got[binary.BigEndian.Uint32(buf[at+len(Marker):])]++
			h.mu.Unlock()
		}
	}
}

// Send sends a frame; that it is cut the sender must not be told.
func (h *Station) Send(tb testing.TB, frame []byte) {
	tb.Helper()
	if err := h.write(frame); err != nil {
		tb.Fatalf("%s sends: %v", h.Name, err)
	}
}

func (h *Station) write(frame []byte) error {
	_, err := unix.Write(h.out, frame)
	return err
}

// Received is how often a probe has come.
func (h *Station) Received(probe uint32) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got[probe]
}

package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/inference/packet"
)

// captureBuffer is each packet socket's receive buffer in bytes.
const captureBuffer = 32 << 20

// snapLen is how much of each packet is read: link, network and neighbour
// discovery headers.
const snapLen = 128

// hardwareType is where a socket filter finds the hardware type of the
// interface (linux/filter.h: SKF_AD_OFF + SKF_AD_HATYPE, SKF_AD_OFF = -0x1000).
const hardwareType = 1<<32 - 0x1000 + 28

// capture counts the packets that come into the network namespace.
type capture struct {
	fds  []int // packet sockets, one for each of protocols
	wake int   // eventfd: a drain is wanted, or the end

	mu      sync.Mutex // guards what follows
	tally   tally
	ports   *portBytes
	missed  uint64          // packets that the kernel dropped
	drains  []chan struct{} // closed after the socket was empty once more
	closed  bool
	failure error // why counting ended
	checked int64 // when drops were last asked for

	done chan struct{}
}

// protocols are what parse reads. A socket of one protocol gets a packet after the
// hooks at ingress; one of all protocols would get it before.
var protocols = []uint16{packet.TypeIPv4, packet.TypeIPv6, packet.TypeARP}

// openCapture begins to count. It needs CAP_NET_RAW.
func openCapture() (*capture, error) {
	c := &capture{done: make(chan struct{})}
	fail := func(err error) (*capture, error) {
		for _, fd := range c.fds {
			unix.Close(fd)
		}
		return nil, err
	}
	for _, p := range protocols {
		fd, err := openSocket(p)
		if err != nil {
			return fail(err)
		}
		c.fds = append(c.fds, fd)
	}
	var err error
	if c.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fail(fmt.Errorf("eventfd: %w", err))
	}
	c.checked = time.Now().UnixNano()
	// All its room at once: none of it is used until packets fill it, and growing
	// would leave as much again behind.
	c.tally = tally{ring: make([]arrival, 0, maxPackets), limit: maxPackets, since: c.checked}
	c.ports = new(portBytes)
	go c.loop()
	return c, nil
}

func openSocket(protocol uint16) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("packet socket: %w (it takes CAP_NET_RAW)", err)
	}
	fail := func(what string, err error) (int, error) {
		unix.Close(fd)
		return -1, fmt.Errorf("packet socket: %s: %w", what, err)
	}
	// Incoming only, and nothing of loopback (filter: 0 for its hardware type,
	// else everything). Both are set before packets can come: the socket is
	// bound last.
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return fail("incoming only", err)
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: hardwareType},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 0, Jf: 1, K: unix.ARPHRD_LOOPBACK},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x40000},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &prog); err != nil {
		return fail("filter", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBuffer); err != nil {
		// Without CAP_NET_ADMIN: as large as may be. Drops are told anyhow.
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, captureBuffer); err != nil {
			return fail("buffer", err)
		}
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return fail("timestamps", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol<<8 | protocol>>8}); err != nil { // network order
		return fail("bind", err)
	}
	return fd, nil
}

func (c *capture) loop() {
	defer close(c.done)
	fds := []unix.PollFd{{Fd: int32(c.wake), Events: unix.POLLIN}}
	for _, fd := range c.fds {
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	for {
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			c.end(fmt.Errorf("poll: %w", err))
			return
		}
		var eight [8]byte
		_, _ = unix.Read(c.wake, eight[:])
		c.mu.Lock()
		drains, closed := c.drains, c.closed
		c.drains = nil
		c.mu.Unlock()
		err := c.drain()
		for _, d := range drains {
			close(d)
		}
		if err != nil || closed {
			c.end(err)
			return
		}
	}
}

func (c *capture) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed, c.failure = true, err
	for _, d := range c.drains {
		close(d)
	}
	c.drains = nil
}

// drain reads until the sockets are empty, then asks for drops.
func (c *capture) drain() error {
	for _, fd := range c.fds {
		if err := c.empty(fd); err != nil {
			return err
		}
	}
	return c.checkDrops()
}

func (c *capture) empty(fd int) error {
	var frame [snapLen]byte
	var oob [128]byte
	for {
		n, oobn, _, from, err := unix.Recvmsg(fd, frame[:], oob[:], unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENETDOWN) { // an interface went down
			continue
		}
		if err != nil {
			return fmt.Errorf("packet socket: read: %w", err)
		}
		a, payload, ok := parse(frame[:n])
		if !ok {
			continue
		}
		if a.at = stamp(oob[:oobn]); a.at == 0 {
			a.at = time.Now().UnixNano()
		}
		a.digest = Digest(frame[:n])
		if l, ok := from.(*unix.SockaddrLinklayer); ok && l.Pkttype == unix.PACKET_HOST {
			a.way = toHost
		}
		c.mu.Lock()
		c.tally.add(a)
		c.ports.add(&a, payload)
		c.mu.Unlock()
	}
}

// stamp finds the kernel's time of arrival in control messages.
func stamp(oob []byte) int64 {
	for len(oob) > 0 {
		h, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return 0
		}
		if h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPNS && len(data) >= 16 {
			return int64(binary.NativeEndian.Uint64(data))*1e9 + int64(binary.NativeEndian.Uint64(data[8:]))
		}
		oob = rest
	}
	return 0
}

// checkDrops notes a window in which the kernel dropped packets for want of
// buffer. Asking resets its counter (packet(7), PACKET_STATISTICS).
func (c *capture) checkDrops() error {
	now := time.Now().UnixNano()
	drops := uint32(0)
	for _, fd := range c.fds {
		st, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
		if err != nil {
			return fmt.Errorf("packet socket: statistics: %w", err)
		}
		drops += st.Drops
	}
	c.mu.Lock()
	if drops > 0 {
		c.missed += uint64(drops)
		c.tally.miss(window{from: c.checked, to: now})
	}
	c.checked = now
	c.mu.Unlock()
	return nil
}

// sync returns when every packet that has arrived by now is in the tally.
func (c *capture) sync() error {
	d := make(chan struct{})
	c.mu.Lock()
	if c.closed {
		defer c.mu.Unlock()
		return fmt.Errorf("counting has ended: %w", c.failure)
	}
	c.drains = append(c.drains, d)
	c.mu.Unlock()
	c.poke()
	<-d
	return nil
}

func (c *capture) poke() {
	one := [8]byte{}
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(c.wake, one[:]) // full means a wake-up is pending anyhow
}

func (c *capture) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.poke()
	<-c.done
	for _, fd := range append(c.fds, c.wake) {
		unix.Close(fd)
	}
}

// settleTime is how long after its arrival a packet surely is in the socket.
const settleTime = 2 * time.Millisecond

// count answers a query; see tally.count.
func (c *capture) count(q *netQuery) (wireCount, error) {
	if wait := time.Until(time.Unix(0, q.To)) + settleTime; wait > 0 {
		if wait > time.Minute {
			return wireCount{}, fmt.Errorf("the time to count until lies %v ahead; ask once it is over", wait.Round(time.Second))
		}
		time.Sleep(wait)
	}
	if err := c.sync(); err != nil {
		return wireCount{}, err
	}
	own, err := ownAddresses()
	if err != nil {
		return wireCount{}, err
	}
	w := wanted{sources: map[[16]byte]bool{}, own: own, only: q.Only, like: q.Like}
	for _, a := range q.Sources {
		w.sources[a.As16()] = true
	}
	copy(w.mac[:], q.MAC)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tally.count(w, q.From, q.To), nil
}

// ownAddresses lists the addresses of this network namespace.
func ownAddresses() (map[[16]byte]bool, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("own addresses: %w", err)
	}
	own := map[[16]byte]bool{}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own[p.Addr().As16()] = true
		}
	}
	return own, nil
}

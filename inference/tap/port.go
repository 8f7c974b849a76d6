package tap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// vidMask is the part of a tag that is the VLAN id.
	vidMask = 0xfff
	// flushAfter is how long a written frame may wait for others to go with it.
	flushAfter = 50 * time.Microsecond
	// fullLimit is how long the interface may take no frame because its queue is
	// full. Whoever writes waits, with all that he holds up.
	fullLimit = time.Second
)

// Port reads and writes one interface, the far end of a switch's gate port.
// Every frame has a VLAN tag (IEEE 802.1Q, TPID 0x8100) on top that is no part
// of it: the switch and the reader tell each other by it where a frame came in
// and where it is to leave.
type Port struct {
	r   *Reader
	mtu int

	mu      sync.Mutex // guards the fields below
	out     *outgoing
	gather  bool      // a batch is being handed over: written frames wait for its end
	waiting time.Time // since when the first of those in out has waited
	sent    uint64
	unsent  uint64
}

// PortStats counts frames since OpenPort.
type PortStats struct {
	Stats         // of what was read
	Sent   uint64 // handed to the kernel
	Unsent uint64 // written, and lost with an error of Write or Read
}

// OpenPort opens both directions of the interface, in the named network
// namespace or, if that is "", in the calling thread's. The error says whether
// the namespace, the interface or a privilege is missing. The first call of a
// process raises its GOMAXPROCS by one, for good (see spare).
func OpenPort(iface, namespace string) (*Port, error) {
	r, err := openReader(iface, namespace, lingerFor) // what comes is answered
	if err != nil {
		return nil, err
	}
	spare()
	p := &Port{r: r, out: newOutgoing()}
	_, err = within(namespace, func() (int, error) {
		link, err := net.InterfaceByName(iface)
		if err != nil {
			return 0, err
		}
		if link.Flags&net.FlagUp == 0 {
			return 0, fmt.Errorf("the interface is down: ip link set %s up", iface)
		}
		p.mtu = link.MTU
		return 0, nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tap: %s: %w", r.iface, err), r.Close())
	}
	return p, nil
}

// Read calls f for each frame, in order, with the VLAN id of the tag that was
// on top of it; 0 where there was none. The frame is without that tag, with
// those that were beneath; it is valid during the call only. Frames that f
// writes go out together, before Read waits for the next ones. It ends as
// Reader.Read does, and when a frame written meanwhile could not be sent. Only
// one Read may run at a time.
func (p *Port) Read(ctx context.Context, f func(ts time.Time, vid uint16, frame []byte)) error {
	return p.r.batches(ctx, func(n int) error {
		p.mu.Lock()
		p.gather = true
		p.mu.Unlock()
		for i := range n {
			ts, outer, frame, truncated := p.r.batch.bare(i)
			if truncated {
				p.r.truncated()
			}
			if outer.tpid != unix.ETH_P_8021Q {
				outer.tci = 0
			}
			f(ts, outer.tci&vidMask, frame)
			if i == n-1 {
				break
			}
			if err := p.flush(true); err != nil {
				return err
			}
		}
		return p.flush(false)
	})
}

// flush sends what waits: all of it at the end of a batch, and within a batch
// if the first has waited for long enough.
func (p *Port) flush(gather bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gather = gather
	if p.out.n == 0 || gather && time.Since(p.waiting) < flushAfter {
		return nil
	}
	err := p.send()
	if err != nil {
		p.gather = false // Read ends: nobody flushes what is written from here on
	}
	return err
}

// Write sends a frame with a tag of that VLAN id on top. Frames leave in the
// order of the calls; while Read hands over a batch they gather until its end,
// and Write returns before they are sent. An error may be of those written
// before, too; it says how many were lost. While the interface's queue is full
// Write waits, for about a second at most. The frame may be reused afterwards.
func (p *Port) Write(vid uint16, frame []byte) error {
	if len(frame) < addresses+2 {
		return fmt.Errorf("frame of %d bytes: an Ethernet header has 14", len(frame))
	}
	// A frame may be longer than the MTU by its header and one tag.
	if over := len(frame) - p.mtu - addresses - 2; over > 0 {
		return fmt.Errorf("frame of %d bytes is too long for %s: raise its MTU, and that of the switch's end, by %d or more", len(frame), p.r.iface, over)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out.n == 0 {
		p.waiting = time.Now()
	}
	p.out.add(tag{unix.ETH_P_8021Q, vid & vidMask}, frame)
	if p.gather && p.out.n < batchFrames {
		return nil
	}
	return p.send()
}

// send hands everything in p.out to the kernel; p.mu is held. Where that fails
// the rest is lost.
func (p *Port) send() error {
	first := 0
	defer func() {
		p.unsent += uint64(p.out.n - first)
		p.out.clear()
	}()
	var since time.Time // of being refused without a pause
	for first < p.out.n {
		var n int
		var sysErr error
		err := p.r.socket.Control(func(fd uintptr) {
			if n, sysErr = p.out.send(int(fd), first); sysErr == unix.EAGAIN {
				sendable(fd)
			}
		})
		unsent := p.out.n - first
		switch {
		case err != nil:
			return p.r.failure(fmt.Sprintf("%d frames were not sent: ", unsent), err)
		case sysErr == unix.EINTR:
		case sysErr == unix.EAGAIN || sysErr == unix.ENOBUFS: // the queue is full: of what we sent, or of anybody's
			switch {
			case since.IsZero():
				since = time.Now()
			case time.Since(since) >= fullLimit:
				return fmt.Errorf("tap: %s: the interface took nothing for %v, its queue is full; %d frames were not sent: %w", p.r.iface, fullLimit, unsent, sysErr)
			}
			if sysErr == unix.ENOBUFS {
				time.Sleep(flushAfter)
			}
		case sysErr == unix.ENETDOWN || sysErr == unix.ENXIO || sysErr == unix.ENODEV:
			return fmt.Errorf("tap: %s: the interface went down; %d frames were not sent: %w", p.r.iface, unsent, sysErr)
		case sysErr != nil:
			return fmt.Errorf("tap: %s: %d frames were not sent: %w", p.r.iface, unsent, sysErr)
		default:
			since = time.Time{}
			first += n
			p.sent += uint64(n)
		}
	}
	return nil
}

// Stats reads the counters. It may be called while Read runs.
func (p *Port) Stats() (PortStats, error) {
	s, err := p.r.Stats()
	p.mu.Lock()
	defer p.mu.Unlock()
	return PortStats{s, p.sent, p.unsent}, err
}

// Close ends both directions; a Read that runs returns.
func (p *Port) Close() error { return p.r.Close() }

// outgoing holds what one system call sends.
type outgoing struct {
	n    int
	msgs [batchFrames]message
	iovs [batchFrames]unix.Iovec
	data [batchFrames][]byte
}

func newOutgoing() *outgoing {
	o := &outgoing{}
	for i := range o.msgs {
		o.data[i] = make([]byte, tagSize+maxFrame)
		o.iovs[i].Base = &o.data[i][0]
		o.msgs[i].hdr.Iov = &o.iovs[i]
		o.msgs[i].hdr.SetIovlen(1)
	}
	return o
}

// add copies a frame to the end, a tag put into it. There is room for it.
func (o *outgoing) add(t tag, frame []byte) {
	b := o.data[o.n]
	copy(b, frame[:addresses])
	t.put(b)
	copy(b[addresses+tagSize:], frame[addresses:])
	o.iovs[o.n].SetLen(tagSize + len(frame))
	o.n++
}

func (o *outgoing) clear() { o.n = 0 }

// send sends those from the first on without waiting and returns how many went.
func (o *outgoing) send(fd, first int) (int, error) {
	n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&o.msgs[first])),
		uintptr(o.n-first), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

package tap

import (
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stampsLimit is how long stamped waits for the kernel.
const stampsLimit = 200 * time.Millisecond

// stamped waits until the kernel stamps packets as they arrive. It begins to
// some milliseconds after the first socket has asked for it (netstamp_work of
// net/core/dev.c), and gives what arrived before that the time at which it is
// read. To see whether it does, packets are sent over loopback; where there is
// none, or it takes too long, the wait is all that is done. The kernel goes on
// until done is called, and after it if another socket asks for stamps by then.
func stamped() (done func()) {
	end := time.Now().Add(stampsLimit)
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		time.Sleep(time.Until(end))
		return func() {}
	}
	if raw, err := c.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			// Unlike SO_TIMESTAMPNS this gives no stamp to what has none.
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE)
		})
	}
	control := make([]byte, controlSize)
	for time.Now().Before(end) {
		c.WriteToUDP(nil, c.LocalAddr().(*net.UDPAddr))
		c.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, n, _, _, err := c.ReadMsgUDP(nil, control); err == nil && hasStamp(control[:n]) {
			break
		}
	}
	return func() { c.Close() }
}

// hasStamp says whether the kernel stamped a packet as it arrived: the first of
// the three time stamps of SO_TIMESTAMPING (networking/timestamping.rst §2.1).
func hasStamp(control []byte) bool {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return false
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPING && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			return (*unix.Timespec)(unsafe.Pointer(&m.Data[0])).Nano() != 0
		}
	}
	return false
}

package tap

import (
	"encoding/binary"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	batchFrames = 64
	// maxFrame is the longest frame read whole: an IP packet of 64 KiB, as
	// segmentation offload makes them, with its Ethernet header.
	maxFrame = 65536 + 14
	// tagSize is the room kept before each frame to put a VLAN tag back.
	tagSize = 4
	// addresses is the length of the two addresses a frame begins with.
	addresses = 12
	// controlSize holds a time stamp and the auxiliary data, with headers.
	controlSize = 128
)

// message is struct mmsghdr (recvmmsg(2)).
type message struct {
	hdr unix.Msghdr
	n   uint32
}

// batch holds what one system call receives.
type batch struct {
	msgs    [batchFrames]message
	iovs    [batchFrames]unix.Iovec
	data    [batchFrames][]byte
	control [batchFrames][controlSize]byte
}

func newBatch() *batch {
	b := &batch{}
	for i := range b.msgs {
		b.data[i] = make([]byte, tagSize+maxFrame)
		b.iovs[i].Base = &b.data[i][tagSize]
		b.iovs[i].SetLen(maxFrame)
		h := &b.msgs[i].hdr
		h.Iov = &b.iovs[i]
		h.SetIovlen(1)
		h.Control = &b.control[i][0]
	}
	return b
}

// receive fills the batch without waiting and returns the number of frames.
func (b *batch) receive(fd int) (int, error) {
	for i := range b.msgs {
		b.msgs[i].hdr.SetControllen(controlSize)
	}
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&b.msgs[0])),
		batchFrames, unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// tag is a VLAN tag as it stands in a frame (IEEE 802.1Q-2018 §9.3). The zero
// tag is none: its tpid is no Ethernet type.
type tag struct{ tpid, tci uint16 }

// bare returns the i-th frame of the batch without its outermost VLAN tag,
// that tag, and whether the frame was longer than the buffer.
func (b *batch) bare(i int) (ts time.Time, outer tag, frame []byte, truncated bool) {
	m := &b.msgs[i]
	frame = b.data[i][tagSize : tagSize+min(int(m.n), maxFrame)]
	truncated = m.hdr.Flags&unix.MSG_TRUNC != 0
	control := b.control[i][:min(uint64(m.hdr.Controllen), controlSize)]
	for len(control) >= unix.CmsgLen(0) {
		hdr, data, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			break
		}
		control = rest
		switch {
		case hdr.Level == unix.SOL_SOCKET && hdr.Type == unix.SO_TIMESTAMPNS && len(data) >= int(unsafe.Sizeof(unix.Timespec{})):
			ts = time.Unix((*unix.Timespec)(unsafe.Pointer(&data[0])).Unix())
		case hdr.Level == unix.SOL_PACKET && hdr.Type == unix.PACKET_AUXDATA && len(data) >= int(unsafe.Sizeof(unix.TpacketAuxdata{})):
			aux := (*unix.TpacketAuxdata)(unsafe.Pointer(&data[0]))
			if aux.Status&unix.TP_STATUS_VLAN_VALID != 0 && len(frame) >= addresses {
				outer = tag{unix.ETH_P_8021Q, aux.Vlan_tci}
				if aux.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
					outer.tpid = aux.Vlan_tpid
				}
			}
		}
	}
	return ts, outer, frame, truncated
}

// frame is bare with the outermost VLAN tag put back.
func (b *batch) frame(i int) (ts time.Time, frame []byte, truncated bool) {
	ts, outer, frame, truncated := b.bare(i)
	if outer.tpid != 0 {
		buf := b.data[i][:tagSize+len(frame)]
		copy(buf, frame[:addresses])
		outer.put(buf)
		frame = buf
	}
	return ts, frame, truncated
}

func (t tag) put(frame []byte) {
	binary.BigEndian.PutUint16(frame[addresses:], t.tpid)
	binary.BigEndian.PutUint16(frame[addresses+2:], t.tci)
}

package pcap

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/pcapgo"

	"netsplit/model"
)

// ErrTruncated ends a capture whose last packet is incomplete, as a killed
// writer leaves it. All packets before it have been read.
var ErrTruncated = errors.New("pcap: the capture ends in the middle of a packet")

// Reader reads the frames of a capture.
type Reader struct {
	next  func() ([]byte, gopacket.CaptureInfo, error)
	link  func(gopacket.CaptureInfo) uint16 // of a packet
	start time.Time
	last  time.Time
	num   uint64
}

// NewReader reads the header of a pcap or pcapng capture, which may be packed
// with gzip. Links that are not Ethernet are read as if they were: see doc.go
// for which. A pcap file of any other link is refused here, a pcapng file at its
// first packet of one.
func NewReader(r io.Reader) (rd *Reader, err error) {
	defer recovered(&err)
	br := bufio.NewReaderSize(r, 1<<16)
	magic, err := br.Peek(4)
	if err == nil && magic[0] == 0x1f && magic[1] == 0x8b { // RFC 1952 §2.3.1
		z, zerr := gzip.NewReader(br)
		if zerr != nil {
			return nil, fmt.Errorf("pcap: unpacking: %w", zerr)
		}
		br = bufio.NewReaderSize(z, 1<<16)
		magic, err = br.Peek(4)
	}
	if err != nil {
		return nil, fmt.Errorf("pcap: no capture: %w", noEOF(err))
	}
	rd = &Reader{}
	if binary.BigEndian.Uint32(magic) == blockSectionHeader {
		guard, err := newBlockGuard(br)
		if err != nil {
			return nil, err
		}
		ng, err := pcapgo.NewNgReader(guard, pcapgo.NgReaderOptions{WantMixedLinkType: true})
		if err != nil {
			return nil, fmt.Errorf("pcap: reading the pcapng header: %w", noEOF(err))
		}
		rd.next, rd.link = ng.ReadPacketData, guard.link
	} else {
		head, _ := br.Peek(24)
		p, err := pcapgo.NewReader(br)
		if err != nil {
			return nil, refused(head, err)
		}
		p.SetSnaplen(maxBlock) // writers put longer packets into files than the header says
		link := fileLink(head)
		if err := readable(link); err != nil {
			return nil, fmt.Errorf("pcap: %w", err)
		}
		rd.next, rd.link = p.ReadPacketData, func(gopacket.CaptureInfo) uint16 { return link }
	}
	return rd, nil
}

// refused is what the library's refusal of a file's head means: of the versions
// it knows 2.4 only, which differs from those before it in the order of a packet's
// lengths (libpcap, sf-pcap.c).
func refused(head []byte, err error) error {
	if len(head) < 8 {
		return fmt.Errorf("pcap: neither pcap nor pcapng: %w", err)
	}
	var order binary.ByteOrder = binary.LittleEndian
	if head[0] == 0xa1 {
		order = binary.BigEndian
	}
	switch order.Uint32(head) {
	case 0xa1b2c3d4, 0xa1b23c4d, 0xa1b2cd34: // in microseconds, in nanoseconds, as some kernels patched it
		return fmt.Errorf("pcap: this variant of pcap cannot be read (version %d.%d, first bytes % x): editcap -F pcapng OLD NEW converts it",
			order.Uint16(head[4:]), order.Uint16(head[6:]), head[:4])
	}
	return fmt.Errorf("pcap: neither pcap nor pcapng: %w", err)
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Next returns the next frame, numbered from 1, with its time since the first one
// that has a time; a packet without has that of the one before it. Its Data is the
// caller's. The error is io.EOF at the end of the capture and ErrTruncated if the
// end is missing.
func (r *Reader) Next() (f model.Frame, err error) {
	defer recovered(&err)
	data, ci, err := r.next()
	switch {
	case err == io.EOF:
		return f, io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return f, ErrTruncated
	case err != nil:
		return f, fmt.Errorf("pcap: packet %d: %w", r.num+1, err)
	}
	link := r.link(ci)
	if err := readable(link); err != nil {
		return f, fmt.Errorf("pcap: packet %d: %w", r.num+1, err)
	}
	if ci.Timestamp.IsZero() { // a simple packet block has none
		ci.Timestamp = r.last
	}
	if r.start.IsZero() {
		r.start = ci.Timestamp
	}
	r.last = ci.Timestamp
	r.num++
	return model.Frame{Num: r.num, At: ci.Timestamp.Sub(r.start), Data: ethernet(link, data)}, nil
}

// Start is the time of the first frame that has one; zero before it was read.
func (r *Reader) Start() time.Time { return r.start }

// recovered turns a panic of the library over hostile bytes into an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("pcap: malformed capture: %v", p)
	}
}

package pcap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"netsplit/model"
)

// ErrTruncated ends a capture whose last packet is incomplete, as a killed
// writer leaves it. All packets before it have been read.
var ErrTruncated = errors.New("pcap: the capture ends in the middle of a packet")

// Reader reads the frames of an Ethernet capture.
type Reader struct {
	next  func() ([]byte, gopacket.CaptureInfo, error)
	start time.Time
	num   uint64
}

// NewReader reads the header of a pcap or pcapng capture. The link type must be
// Ethernet.
func NewReader(r io.Reader) (rd *Reader, err error) {
	defer recovered(&err)
	br := bufio.NewReaderSize(r, 1<<16)
	magic, err := br.Peek(4)
	if err != nil {
		return nil, fmt.Errorf("pcap: no capture: %w", noEOF(err))
	}
	var link layers.LinkType
	rd = &Reader{}
	if binary.BigEndian.Uint32(magic) == blockSectionHeader {
		guard, err := newBlockGuard(br)
		if err != nil {
			return nil, err
		}
		ng, err := pcapgo.NewNgReader(guard, pcapgo.DefaultNgReaderOptions)
		if err != nil {
			return nil, fmt.Errorf("pcap: reading the pcapng header: %w", err)
		}
		rd.next, link = ng.ReadPacketData, ng.LinkType()
	} else {
		p, err := pcapgo.NewReader(br)
		if err != nil {
			return nil, fmt.Errorf("pcap: neither pcap nor pcapng: %w", err)
		}
		if p.Snaplen() > maxBlock || p.Snaplen() == 0 {
			p.SetSnaplen(maxBlock)
		}
		rd.next, link = p.ReadPacketData, p.LinkType()
	}
	if link != layers.LinkTypeEthernet {
		return nil, fmt.Errorf("pcap: link type %s: only Ethernet is read; capture on the Ethernet interface", link)
	}
	return rd, nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Next returns the next frame, numbered from 1, with its time since the first
// frame. Its Data is the caller's. The error is io.EOF at the end of the
// capture and ErrTruncated if the end is missing.
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
	if r.num == 0 {
		r.start = ci.Timestamp
	}
	r.num++
	return model.Frame{Num: r.num, At: ci.Timestamp.Sub(r.start), Data: data}, nil
}

// Start is the time of the first frame; zero before it was read.
func (r *Reader) Start() time.Time { return r.start }

// recovered turns a panic of the library over hostile bytes into an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("pcap: malformed capture: %v", p)
	}
}

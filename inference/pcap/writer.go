package pcap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"netsplit/model"
)

// Block types and options of pcapng (draft-ietf-opsawg-pcapng §3.5, §4).
const (
	blockSectionHeader = 0x0a0d0d0a
	blockInterface     = 1
	blockPacket        = 6 // enhanced packet block
	byteOrderMagic     = 0x1a2b3c4d

	optEnd        = 0
	optComment    = 1
	optIfName     = 2
	optIfTsResol  = 9
	optUserAppl   = 4
	maxOption     = 0xffff
	flushAt       = 64 << 10
	blockOverhead = 12
	mirrorName    = "mirror" // interface of frames whose host is not known
)

// Writer writes frames to a pcapng file. Whole blocks are handed to the file,
// never parts, so that a killed process leaves a file that opens. It is not
// safe for concurrent use.
type Writer struct {
	f      *os.File
	start  time.Time
	buf    []byte // whole blocks not yet written
	size   int64  // bytes of whole blocks in the file
	ifaces map[model.NodeID]uint32
	note   []byte // scratch
}

// Create makes the file and writes the section header. start is the moment
// that Frame.At counts from. An existing file is replaced.
func Create(path string, start time.Time) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600) // messages of a system, for their owner
	if err != nil {
		return nil, fmt.Errorf("pcap: %w", err)
	}
	return begin(f, start)
}

func begin(f *os.File, start time.Time) (*Writer, error) {
	w := &Writer{f: f, start: start, ifaces: map[model.NodeID]uint32{}}
	w.section()
	if err := w.Flush(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return w, nil
}

// block appends a block: type, length, body, length.
func (w *Writer) block(typ uint32, body func()) {
	at := len(w.buf)
	w.put32(typ)
	w.put32(0)
	body()
	n := uint32(len(w.buf) - at + 4)
	w.put32(n)
	binary.LittleEndian.PutUint32(w.buf[at+4:], n)
}

func (w *Writer) put16(v uint16) { w.buf = binary.LittleEndian.AppendUint16(w.buf, v) }
func (w *Writer) put32(v uint32) { w.buf = binary.LittleEndian.AppendUint32(w.buf, v) }

func (w *Writer) padded(b []byte) {
	w.buf = append(w.buf, b...)
	for n := len(b); n%4 != 0; n++ {
		w.buf = append(w.buf, 0)
	}
}

// option appends an option; a value that is too long for its length field is
// cut.
func (w *Writer) option(code uint16, v []byte) {
	if len(v) > maxOption {
		v = v[:maxOption]
	}
	w.put16(code)
	w.put16(uint16(len(v)))
	w.padded(v)
}

func (w *Writer) section() []byte {
	w.block(blockSectionHeader, func() {
		w.put32(byteOrderMagic)
		w.put16(1) // version 1.0
		w.put16(0)
		w.put32(0xffffffff) // section length not stated: 64 bits of -1
		w.put32(0xffffffff)
		w.option(optUserAppl, []byte("netsplit"))
		w.option(optEnd, nil)
	})
	return w.buf
}

// iface returns the number of the host's interface block in this section; it
// is written before the first packet that names it.
func (w *Writer) iface(host model.NodeID) uint32 {
	if id, ok := w.ifaces[host]; ok {
		return id
	}
	id := uint32(len(w.ifaces))
	w.ifaces[host] = id
	name := string(host)
	if name == "" {
		name = mirrorName
	}
	w.block(blockInterface, func() {
		w.put16(linkEthernet)
		w.put16(0)
		w.put32(0) // snap length: none
		w.option(optIfName, []byte(name))
		w.option(optIfTsResol, []byte{9}) // 10^-9 s
		w.option(optEnd, nil)
	})
	return id
}

// Write adds a frame with a comment, "" for none. The frame's Host names the
// interface it came from. It is in the file after the next Flush or when enough
// has gathered.
func (w *Writer) Write(f model.Frame, comment string) error {
	id := w.iface(f.Host)
	ns := uint64(w.start.Add(f.At).UnixNano())
	w.block(blockPacket, func() {
		w.put32(id)
		w.put32(uint32(ns >> 32))
		w.put32(uint32(ns))
		w.put32(uint32(len(f.Data)))
		w.put32(uint32(len(f.Data)))
		w.padded(f.Data)
		if comment != "" {
			w.note = append(w.note[:0], comment...)
			w.option(optComment, w.note)
			w.option(optEnd, nil)
		}
	})
	if len(w.buf) < flushAt {
		return nil
	}
	return w.Flush()
}

// Flush hands everything to the file. When that fails (a full disk) the file is
// cut back to its last whole block and what was not written is kept: calling
// Flush again tries again.
func (w *Writer) Flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	if _, err := w.f.WriteAt(w.buf, w.size); err != nil {
		return errors.Join(fmt.Errorf("pcap: writing %s: %w: make room; %d bytes wait to be written", w.f.Name(), err, len(w.buf)),
			w.f.Truncate(w.size))
	}
	w.size += int64(len(w.buf))
	w.buf = w.buf[:0]
	return nil
}

// Close flushes and closes the file.
func (w *Writer) Close() error { return errors.Join(w.Flush(), w.f.Close()) }

package classify

import (
	"hash/crc32"

	"github.com/pierrec/lz4/v4"
)

// Frames of internode messaging from 4.0 on (net.FrameEncoderCrc,
// FrameEncoderLZ4, FrameEncoderUnprotected), which CQL took over in version 5
// (native_protocol_v5.spec §2): a header with a CRC24, up to 128 KiB of
// payload, and a CRC32 of it. A self-contained frame holds whole messages; a
// message too long for one has several frames of its own.

// cassFraming is how a direction is framed.
type cassFraming uint8

const (
	cassUnprotected cassFraming = iota // 6-byte header, no trailer
	cassLZ4                            // 8-byte header, payload may be compressed
	cassCRC                            // 6-byte header
)

// cassFrameMax is the longest frame: header, 17 bits of payload, trailer.
const cassFrameMax = 8 + 1<<17 + 4

// cassFrame is the header of a frame.
type cassFrame struct {
	head, tail int  // bytes of header and trailer
	payload    int  // bytes on the wire
	plain      int  // bytes uncompressed; 0: it is not compressed
	self       bool // self-contained
}

// cassFrameHead reads a frame's header. ok is false if there is none; total is
// 0 if more bytes are needed.
func cassFrameHead(f cassFraming, b []byte) (h cassFrame, total int64, ok bool) {
	if h.head = 6; f == cassLZ4 {
		h.head = 8
	}
	if len(b) < h.head {
		return h, 0, true
	}
	n := h.head - 3
	var v uint64
	for i := n - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	if crc24(b[:n]) != uint32(b[n])|uint32(b[n+1])<<8|uint32(b[n+2])<<16 {
		return h, 0, false
	}
	h.payload = int(v & 0x1ffff)
	bit := 17
	if f == cassLZ4 {
		h.plain = int(v >> 17 & 0x1ffff)
		bit = 34
	}
	h.self = v>>bit&1 == 1
	if h.payload == 0 || v>>(bit+1) != 0 {
		return h, 0, false
	}
	if f != cassUnprotected {
		h.tail = 4
	}
	return h, int64(h.head + h.payload + h.tail), true
}

// content is the payload, uncompressed; nil if it is not all in b or damaged.
func (h cassFrame) content(b []byte) []byte {
	if len(b) < h.head+h.payload {
		if h.plain > 0 {
			return nil
		}
		return b[min(h.head, len(b)):]
	}
	p := b[h.head : h.head+h.payload]
	if h.plain == 0 {
		return p
	}
	return lz4Block(p, h.plain)
}

// lz4Block uncompresses a block of a known length, at most 128 MiB.
func lz4Block(b []byte, n int) []byte {
	if n <= 0 || n > 255*len(b)+64 || n > 1<<27 {
		return nil // no block grows more
	}
	out := make([]byte, n)
	if k, err := lz4.UncompressBlock(b, out); err != nil || k != n {
		return nil
	}
	return out
}

// crc24 is Crc.crc24: polynomial 0x1974F0B, start 0x875060.
func crc24(b []byte) uint32 {
	crc := uint32(0x875060)
	for _, c := range b {
		crc ^= uint32(c) << 16
		for range 8 {
			if crc <<= 1; crc&0x1000000 != 0 {
				crc ^= 0x1974F0B
			}
		}
	}
	return crc & 0xffffff
}

// cassCRC32 is Crc.crc32: the usual one, begun with four fixed bytes.
func cassCRC32(b []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE([]byte{0xFA, 0x2D, 0x55, 0xCA}), crc32.IEEETable, b)
}

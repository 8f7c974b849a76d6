package pcap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/google/gopacket"
)

// maxBlock bounds a packet and a block of pcapng: pcapgo makes room for as many
// bytes as a length field says.
const maxBlock = 16 << 20

// blockGuard passes a pcapng file on, block by whole block, once the lengths in
// the block are known to fit: pcapgo v1.1.19 loops without end where the
// captured length is larger than its block.
type blockGuard struct {
	r     *bufio.Reader
	order binary.ByteOrder // of the section
	snap  uint32           // of the section's first interface: bytes of a simple packet; 0 all
	links []uint16         // link types of the section's interfaces
	block []byte
	rest  []byte // of block, not passed on yet
}

func newBlockGuard(r *bufio.Reader) (*blockGuard, error) {
	if _, err := r.Peek(12); err != nil {
		return nil, fmt.Errorf("pcap: no capture: %w", noEOF(err))
	}
	return &blockGuard{r: r, order: binary.LittleEndian}, nil
}

func (g *blockGuard) Read(p []byte) (int, error) {
	if len(p) > 0 && len(g.rest) == 0 {
		if err := g.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

// next reads and checks a block (draft-ietf-opsawg-pcapng §3.1).
func (g *blockGuard) next() error {
	var head [8]byte
	if _, err := io.ReadFull(g.r, head[:]); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(head[:]) == blockSectionHeader { // reads the same in either order
		if err := g.section(); err != nil {
			return noEOF(err)
		}
	}
	n := int(g.order.Uint32(head[4:]))
	if n < blockOverhead || n > maxBlock || n%4 != 0 {
		return fmt.Errorf("a block of %d bytes: want a multiple of 4 from %d to %d", n, blockOverhead, maxBlock)
	}
	if cap(g.block) < n {
		g.block = make([]byte, n)
	}
	g.block = g.block[:n]
	copy(g.block, head[:])
	if _, err := io.ReadFull(g.r, g.block[8:]); err != nil {
		return noEOF(err)
	}
	if int(g.order.Uint32(g.block[n-4:])) != n {
		return errors.New("a block whose two lengths differ")
	}
	if !g.fits(g.order.Uint32(head[:]), g.block[8:n-4]) {
		return errors.New("a block whose contents are longer than the block")
	}
	g.rest = g.block
	return nil
}

// section begins a section: each has a byte order and interfaces of its own.
func (g *blockGuard) section() error {
	b, err := g.r.Peek(4)
	if err != nil {
		return err
	}
	g.order, g.snap, g.links = binary.LittleEndian, 0, g.links[:0]
	if binary.BigEndian.Uint32(b) == byteOrderMagic {
		g.order = binary.BigEndian
	}
	return nil
}

// link is the link type of a packet that has just been read: a block is passed
// on when those before it were read.
func (g *blockGuard) link(ci gopacket.CaptureInfo) uint16 { return g.links[ci.InterfaceIndex] }

// fits reports whether a block's packet and options end within its body.
func (g *blockGuard) fits(typ uint32, body []byte) bool {
	fixed := 0 // bytes before the options
	switch typ {
	case blockSectionHeader:
		fixed = 16
	case blockInterface:
		fixed = 8
		if len(body) < fixed {
			return false
		}
		if len(g.links) == 0 {
			g.snap = g.order.Uint32(body[4:])
		}
		g.links = append(g.links, g.order.Uint16(body))
	case 5: // interface statistics
		fixed = 12
	case blockPacket, 2: // 2: the obsolete packet block, with the same layout
		if len(body) < 20 {
			return false
		}
		captured := int64(g.order.Uint32(body[12:]))
		if captured > int64(len(body)-20) {
			return false
		}
		fixed = 20 + int(captured+3)&^3
	case 3: // simple packet: as many bytes as the snap length leaves of it, and no options
		if len(body) < 4 {
			return false
		}
		captured := g.order.Uint32(body)
		if g.snap != 0 {
			captured = min(captured, g.snap)
		}
		return int64(captured) <= int64(len(body)-4)
	default:
		return true
	}
	if len(body) < fixed {
		return false
	}
	for o := body[fixed:]; len(o) > 0; {
		if len(o) < 4 {
			return false
		}
		n := 4 + (int(g.order.Uint16(o[2:]))+3)&^3
		if n > len(o) {
			return false
		}
		if g.order.Uint16(o) == optEnd {
			return true
		}
		o = o[n:]
	}
	return true
}

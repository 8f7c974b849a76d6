package pcap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// maxBlock bounds a packet and a block of pcapng: pcapgo makes room for as many
// bytes as a length field says.
const maxBlock = 16 << 20

// blockGuard passes a pcapng file on, block by whole block, once the lengths in
// the block are known to fit: pcapgo v1.1.19 loops without end where the
// captured length is larger than its block.
type blockGuard struct {
	r     io.Reader
	order binary.ByteOrder
	block []byte
	rest  []byte // of block, not passed on yet
}

func newBlockGuard(r *bufio.Reader) (*blockGuard, error) {
	b, err := r.Peek(12)
	if err != nil {
		return nil, fmt.Errorf("pcap: no capture: %w", noEOF(err))
	}
	g := &blockGuard{r: r, order: binary.LittleEndian}
	if binary.BigEndian.Uint32(b[8:]) == byteOrderMagic {
		g.order = binary.BigEndian
	}
	return g, nil
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

// fits reports whether a block's packet and options end within its body.
func (g *blockGuard) fits(typ uint32, body []byte) bool {
	fixed := 0 // bytes before the options
	switch typ {
	case blockSectionHeader:
		fixed = 16
	case blockInterface:
		fixed = 8
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
	default:
		return len(body) >= 4 || typ != 3 // 3: simple packet
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

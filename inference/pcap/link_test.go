package pcap

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// A capture made by hand: pcap with records, or pcapng with blocks.
type order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func file(o order, magic, snap, link uint32, packets ...[]byte) []byte {
	b := o.AppendUint32(nil, magic)
	b = o.AppendUint16(o.AppendUint16(b, 2), 4)
	for _, v := range []uint32{0, 0, snap, link} {
		b = o.AppendUint32(b, v)
	}
	for i, p := range packets {
		for _, v := range []uint32{uint32(i), 0, uint32(len(p)), uint32(len(p))} {
			b = o.AppendUint32(b, v)
		}
		b = append(b, p...)
	}
	return b
}

func block(o order, typ uint32, body []byte) []byte {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	n := uint32(len(body) + blockOverhead)
	b := o.AppendUint32(o.AppendUint32(nil, typ), n)
	return o.AppendUint32(append(b, body...), n)
}

func section(o order) []byte {
	b := o.AppendUint16(o.AppendUint16(o.AppendUint32(nil, byteOrderMagic), 1), 0)
	return block(o, blockSectionHeader, o.AppendUint64(b, 1<<64-1))
}

func iface(o order, link uint16, snap uint32) []byte {
	return block(o, blockInterface, o.AppendUint32(o.AppendUint16(o.AppendUint16(nil, link), 0), snap))
}

func enhanced(o order, iface uint32, seconds uint64, p []byte) []byte {
	us := seconds * 1e6
	var b []byte
	for _, v := range []uint32{iface, uint32(us >> 32), uint32(us), uint32(len(p)), uint32(len(p))} {
		b = o.AppendUint32(b, v)
	}
	return block(o, blockPacket, append(b, p...))
}

func simple(o order, length uint32, p []byte) []byte {
	return block(o, 3, append(o.AppendUint32(nil, length), p...))
}

var (
	le order = binary.LittleEndian
	be order = binary.BigEndian

	v4 = []byte("\x45 four")
	v6 = []byte("\x60 six")
)

const zeros = "000000000000"

func TestOtherLinksAreReadAsEthernet(t *testing.T) {
	to4, to6 := zeros+zeros+"0800"+hex.EncodeToString(v4), zeros+zeros+"86dd"+hex.EncodeToString(v6)
	from4 := zeros + "020000000001" + "0800" + hex.EncodeToString(v4)
	sll := append([]byte{0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0}, v4...)
	sll2 := append([]byte{8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0}, v4...)
	const fcs = 0x24000000 // a frame check sequence of 4 bytes follows each packet
	for _, c := range []struct {
		name string
		link uint32
		b    []byte
		want string
	}{
		{"raw ip", 101, v4, to4},
		{"raw ip of v6", 101, v6, to6},
		{"raw ip of BSD", 12, v4, to4},
		{"ipv4", 228, v4, to4},
		{"ipv6", 229, v6, to6},
		{"loopback", 0, append([]byte{2, 0, 0, 0}, v4...), to4},
		{"loopback of v6", 0, append([]byte{30, 0, 0, 0}, v6...), to6},
		{"loopback of OpenBSD", 108, append([]byte{0, 0, 0, 2}, v4...), to4},
		{"cooked", 113, sll, from4},
		{"cooked v2", 276, sll2, from4},
		{"cooked, cut short", 113, sll[:10], ""},
		{"ethernet with a check sequence", 1 | fcs, []byte("frame"), hex.EncodeToString([]byte("frame"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			captures := [][]byte{file(le, 0xa1b2c3d4, 262144, c.link, c.b), file(be, 0xa1b23c4d, 262144, c.link, c.b)}
			if c.link < 1<<16 {
				captures = append(captures, append(append(section(be), iface(be, uint16(c.link), 0)...), enhanced(be, 0, 1, c.b)...))
			}
			for _, b := range captures {
				frames, err := readAll(t, b)
				if err != io.EOF || len(frames) != 1 {
					t.Fatalf("%d frames, error %v", len(frames), err)
				}
				if got := hex.EncodeToString(frames[0].Data); got != c.want {
					t.Errorf("frame\n%s, want\n%s", got, c.want)
				}
			}
		})
	}
}

// What stands in a capture is read, whichever interface or section it is of, or
// an error says why not.
func TestNothingOfACaptureIsLeftOut(t *testing.T) {
	join := func(bs ...[]byte) []byte { return bytes.Join(bs, nil) }
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(join(section(le), iface(le, 1, 0), enhanced(le, 0, 0, v4))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		b      []byte
		frames int
		err    string
	}{
		{"two links", join(section(le), iface(le, 1, 0), iface(le, 101, 0), enhanced(le, 1, 0, v4), enhanced(le, 0, 0, v4)), 2, ""},
		{"raw ip first", join(section(le), iface(le, 101, 0), iface(le, 1, 0), enhanced(le, 1, 0, v4), enhanced(le, 0, 0, v4)), 2, ""},
		{"a link that is not read", join(section(le), iface(le, 1, 0), iface(le, 105, 0), enhanced(le, 0, 0, v4), enhanced(le, 1, 0, v4)), 1,
			"packet 2: link type 105 is not read"},
		{"link 257 is not Ethernet", join(section(le), iface(le, 257, 0), enhanced(le, 0, 0, v4)), 0, "link type 257"},
		{"a section of the other byte order", join(section(le), iface(le, 1, 0), enhanced(le, 0, 0, v4), section(be), iface(be, 101, 0), enhanced(be, 0, 0, v4)), 2, ""},
		{"no packets, no interfaces", section(le), 0, ""},
		{"packed with gzip", packed.Bytes(), 1, ""},
		{"longer than the header says", file(le, 0xa1b2c3d4, 4, 1, v4), 1, ""},
		{"simple packets, the second cut short", join(section(le), iface(le, 1, 3), simple(le, 2, v4[:2]), simple(le, 9, v4[:3])), 2, ""},
		{"a simple packet of 4 GiB", join(section(le), iface(le, 1, 0), simple(le, 0xffffffff, v4)), 0, "longer than the block"},
	} {
		t.Run(c.name, func(t *testing.T) {
			frames, err := readAll(t, c.b)
			if len(frames) != c.frames {
				t.Errorf("%d frames, want %d (error %v)", len(frames), c.frames, err)
			}
			if c.err == "" && !errors.Is(err, io.EOF) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
		})
	}
}

func TestAPacketWithoutATimeHasThatOfTheOneBefore(t *testing.T) {
	frames, _ := readAll(t, bytes.Join([][]byte{section(le), iface(le, 1, 0), enhanced(le, 0, 10, v4), enhanced(le, 0, 11, v4), simple(le, 2, v4[:2]), enhanced(le, 0, 12, v4)}, nil))
	var got []float64
	for _, f := range frames {
		got = append(got, f.At.Seconds())
	}
	if len(got) != 4 || got[1] != 1 || got[2] != 1 || got[3] != 2 {
		t.Errorf("times %v, want [0 1 1 2]", got)
	}
}

// TestTheClockStartsAtTheFirstTime: packets without a time before it are at 0.
func TestTheClockStartsAtTheFirstTime(t *testing.T) {
	b := bytes.Join([][]byte{section(le), iface(le, 1, 0), simple(le, 2, v4[:2]), simple(le, 2, v4[:2]), enhanced(le, 0, 10, v4), enhanced(le, 0, 11, v4)}, nil)
	frames, err := readAll(t, b)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	var got []time.Duration
	for _, f := range frames {
		got = append(got, f.At)
	}
	if want := []time.Duration{0, 0, 0, time.Second}; !slices.Equal(got, want) {
		t.Errorf("times %v, want %v", got, want)
	}
	r, err := NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for range frames {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if want := time.Unix(10, 0); !r.Start().Equal(want) {
		t.Errorf("start %v, want %v", r.Start(), want)
	}
}

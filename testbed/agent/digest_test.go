package agent

import (
	"encoding/hex"
	"testing"
)

// A datagram of 4 bytes, 10.9.1.1 to 10.9.1.2.
const datagram = "020000000002" + "020000000001" + "0800" +
	"45000020000040004011260c0a0901010a090102" + "1b581b58000c0000" + "41203120"

func TestAPacketIsKnownAgain(t *testing.T) {
	f, err := hex.DecodeString(datagram)
	if err != nil {
		t.Fatal(err)
	}
	want := Digest(f)
	padded := append(append([]byte{}, f...), make([]byte, 14)...)
	if got := Digest(padded); got != want {
		t.Errorf("padded to the least length of a frame: %x, want %x", got, want)
	}
	if Digest(f[:13]) != 0 {
		t.Error("no frame has a digest")
	}
	for i := 12; i < len(f); i++ {
		g := append([]byte{}, f...)
		g[i] ^= 1
		if i != 17 && Digest(g) == want { // its last bit of the length is another cut
			t.Errorf("byte %d changed, and the digest has not", i)
		}
	}
}

func TestTheTallyTellsWhenPacketsArrived(t *testing.T) {
	ta := tally{limit: 4, since: 100}
	for i, d := range []uint64{7, 8, 7, 9, 7, 8} {
		ta.add(arrival{at: int64(101 + i), digest: d})
	}
	got := ta.arrivals(&digestQuery{Digests: []uint64{7, 5, 8}, From: 103})
	if got.Incomplete || len(got.At) != 3 || len(got.At[0]) != 2 || got.At[0][0] != 103 || got.At[0][1] != 105 || got.At[1] != nil || len(got.At[2]) != 1 || got.At[2][0] != 106 {
		t.Errorf("%+v", got)
	}
	if got := ta.arrivals(&digestQuery{Digests: []uint64{7}, From: 102}); !got.Incomplete {
		t.Errorf("from before what it remembers: %+v", got)
	}
	ta.miss(window{from: 104, to: 105})
	if got := ta.arrivals(&digestQuery{Digests: []uint64{7}, From: 103}); !got.Incomplete {
		t.Errorf("some were missed: %+v", got)
	}
}

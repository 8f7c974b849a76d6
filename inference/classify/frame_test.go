package classify

import (
	"encoding/binary"
	"math/rand"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// toy is "AB", a 4-byte length of the whole message, a kind, the rest. A
// message of kind '2' consists of two units.
type toy struct{}

func (toy) size(_ int, b []byte) int64 {
	for i := range min(len(b), 2) {
		if b[i] != "AB"[i] {
			return -1
		}
	}
	if len(b) < 6 {
		return 0
	}
	n := int64(binary.BigEndian.Uint32(b[2:]))
	if n < 7 {
		return -1
	}
	return n
}

func (t toy) starts(dir int, b []byte) (ok, more bool) {
	n := t.size(dir, b)
	return n > 0 && n < 1<<20, n == 0
}

func (toy) read(_ int, h frameHead) []Unit {
	if len(h.b) < 7 {
		return nil
	}
	if h.b[6] == '2' {
		return []Unit{{Bytes: 8, Type: "toy first"}, {Type: "toy second"}}
	}
	return []Unit{{Type: "toy " + string(h.b[6])}}
}

func toyBytes(kind byte, n int) string {
	b := append([]byte("AB\x00\x00\x00\x00"), kind)
	binary.BigEndian.PutUint32(b[2:], uint32(n))
	return string(b) + strings.Repeat("x", n-7)
}

func TestFramer(t *testing.T) {
	long := toyBytes('l', 3*frameKeep)
	for _, c := range []struct {
		name  string
		steps []step
		want  []string
	}{
		{"messages", []step{{b: []byte(toyBytes('a', 9) + toyBytes('b', 7))}}, []string{"toy a 9", "toy b 7"}},
		{"two units in one", []step{{b: []byte(toyBytes('2', 20) + toyBytes('2', 7))}}, []string{"toy first 8", "toy second 12", "toy first 7"}},
		{"long", []step{{b: []byte(long + toyBytes('b', 7))}}, []string{"toy l 65536", "toy l end 131072", "toy b 7"}},
		{"gap inside", []step{{b: []byte(toyBytes('a', 90)[:20])}, {gap: 70}, {b: []byte(toyBytes('b', 7))}}, []string{"toy a 90 cut", "toy b 7"}},
		{"gap inside a head", []step{{b: []byte(long[:20])}, {gap: 70000}, {b: []byte(long[70020:] + toyBytes('b', 7))}}, []string{"toy l 65536 cut", "toy l end 131072", "toy b 7"}},
		{"gap behind a head", []step{{b: []byte(long[:70000])}, {gap: 20}, {b: []byte(long[70020:] + toyBytes('b', 7))}}, []string{"toy l 65536", "toy l end 131072 cut", "toy b 7"}},
		{"gap over the end", []step{{b: []byte(toyBytes('a', 90)[:20])}, {gap: 71}, {b: []byte(toyBytes('c', 8)[1:] + toyBytes('b', 7))}}, []string{"toy a 20 cut", "unknown 7", "toy b 7"}},
		{"gap over the end of a long one", []step{{b: []byte(long[:70000])}, {gap: 1 << 20}, {b: []byte(toyBytes('b', 7))}}, []string{"toy l 65536", "toy l end 4464 cut", "toy b 7"}},
		{"behind a gap more is asked", []step{{b: []byte(toyBytes('a', 9))}, {gap: 5}, {b: []byte("AB\x00\x10\x00\x00zzz" + toyBytes('b', 7))}}, []string{"toy a 9", "unknown 9", "toy b 7"}},
		{"nonsense", []step{{b: []byte("AAABAB" + toyBytes('b', 7) + "AB\x00\x00\x00\x00" + toyBytes('c', 8))}}, []string{"unknown 6", "toy b 7", "unknown 6", "toy c 8"}},
		{"much nonsense", []step{{b: []byte(strings.Repeat("n", 70000) + "AB")}}, []string{"unknown 65536", "unknown 4466"}},
		{"cut off", []step{{b: []byte(toyBytes('a', 90)[:20])}}, []string{"toy a 20 cut"}},
		{"cut off early", []step{{b: []byte("AB\x00")}}, []string{"unknown 3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			us := run(t, newFramedPair(toy{}), c.steps, nil)
			covered(t, 0, us[0], c.steps)
			var got []string
			for _, u := range us[0] {
				s := u.Type + " " + strconv.Itoa(u.Bytes)
				if len(u.Fields) > 0 {
					s += " cut"
				}
				got = append(got, s)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("units (-want +got):\n%s", diff)
			}
			rng := rand.New(rand.NewSource(1))
			for range 20 {
				if cut := run(t, newFramedPair(toy{}), c.steps, rng); !reflect.DeepEqual(us, cut) {
					t.Fatalf("other segments, other units:\n%s", cmp.Diff(us, cut))
				}
			}
		})
	}
}

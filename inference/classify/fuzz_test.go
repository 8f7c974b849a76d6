package classify

import (
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

// A step of a fuzzed conversation: bytes of a direction, or a gap.
type step struct {
	dir int
	b   []byte
	gap int
}

// steps reads a conversation from fuzz input: lines that start with '>' or
// '<' switch the direction, '%' inserts a gap of the next byte's size; "~n"
// repeats the text before it on the line to grow past the bounds.
func steps(in string) []step {
	var out []step
	dir := 0
	for len(in) > 0 {
		switch in[0] {
		case '>', '<':
			dir = strings.IndexByte("><", in[0])
			in = in[1:]
		case '%':
			n := 1
			if len(in) > 1 {
				n += int(in[1]) * 3
				in = in[1:]
			}
			out = append(out, step{dir: dir, gap: n})
			in = in[1:]
		}
		i := strings.IndexAny(in, "><%")
		if i < 0 {
			i = len(in)
		}
		// RESP3 needs these bytes inside messages: an escape keeps them.
		text := strings.NewReplacer("\x01", ">", "\x02", "%", "\x03", strings.Repeat("0123456789abcde\n", 5000)).Replace(in[:i])
		if text != "" && len(text) < 1<<20 {
			out = append(out, step{dir: dir, b: []byte(text)})
		}
		in = in[i:]
	}
	return out
}

// run plays steps; with rng it cuts the bytes of each step at random.
func run(t *testing.T, d Dissector, ss []step, rng *rand.Rand) [2][]Unit {
	t.Helper()
	var us [2][]Unit
	var off [2]uint64
	add := func(u Unit) { us[u.Dir] = append(us[u.Dir], u) }
	scratch := make([]byte, 0, 1<<16)
	for _, s := range ss {
		if s.gap > 0 {
			d.Gap(s.dir, off[s.dir], uint64(s.gap), add)
			off[s.dir] += uint64(s.gap)
			continue
		}
		for b := s.b; len(b) > 0; {
			k := len(b)
			if rng != nil {
				k = 1 + rng.Intn(min(len(b), 1+rng.Intn(3000)))
			}
			scratch = append(scratch[:0], b[:k]...)
			d.Data(s.dir, off[s.dir], scratch, add)
			for i := range scratch {
				scratch[i] = 0xAA // b is only valid during the call
			}
			off[s.dir] += uint64(k)
			b = b[k:]
		}
	}
	d.Close(0, add)
	d.Close(1, add)
	return us
}

// covered checks that units of a direction are in order, do not overlap and
// leave out nothing but gaps.
func covered(t *testing.T, dir int, us []Unit, ss []step) {
	t.Helper()
	var end uint64
	lost := map[uint64]uint64{} // start of a gap -> its end
	for _, s := range ss {
		if s.dir != dir {
			continue
		}
		if s.gap > 0 {
			lost[end] = end + uint64(s.gap)
		}
		end += uint64(len(s.b) + s.gap)
	}
	var pos uint64
	skipGaps := func(to uint64) {
		for pos < to {
			next, ok := lost[pos]
			if !ok {
				t.Fatalf("dir %d: bytes %d to %d are in no unit", dir, pos, to)
			}
			pos = next
		}
	}
	for _, u := range us {
		if u.Bytes <= 0 || u.Type == "" || u.Dir != dir {
			t.Fatalf("bad unit %+v", u)
		}
		skipGaps(u.Offset)
		if u.Offset != pos {
			t.Fatalf("dir %d: unit at %d overlaps, %d expected", dir, u.Offset, pos)
		}
		pos += uint64(u.Bytes)
	}
	skipGaps(end)
	if pos != end {
		t.Fatalf("dir %d: units end at %d, stream at %d", dir, pos, end)
	}
}

func check(t *testing.T, name, in string, seed int64) {
	t.Helper()
	rules(t, model.Protocol{Dissector: name}, steps(in), seed, fuzzCuts)
}

// fuzzCuts is how often a fuzz test cuts a conversation into other segments.
const fuzzCuts = 3

// rules checks those of the package on a conversation: units that cover every byte,
// bounded, and the same in whatever segments it comes.
func rules(t *testing.T, p model.Protocol, ss []step, seed int64, cuts int) [2][]Unit {
	t.Helper()
	fresh := func() Dissector {
		d, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	want := run(t, fresh(), ss, nil)
	for dir := range want {
		covered(t, dir, want[dir], ss)
		for _, u := range want[dir] {
			if len(u.Type) > 160 {
				t.Fatalf("type of %d bytes: %q", len(u.Type), u.Type)
			}
			if !CanGive([]model.Protocol{p}, u.Type) {
				t.Fatalf("type %q: types of %s begin with one of %v", u.Type, p.Dissector, Begins([]model.Protocol{p}))
			}
			for _, f := range u.Fields {
				if len(f.Value) > max(respText, pbText)+8 || f.Name == "" {
					t.Fatalf("field %q of %d bytes", f.Name, len(f.Value))
				}
			}
		}
	}
	rng := rand.New(rand.NewSource(seed))
	for range cuts {
		if got := run(t, fresh(), ss, rng); !reflect.DeepEqual(want, got) {
			t.Fatalf("%s: other segments, other units (-whole +cut):\n%s", p.Dissector, cmp.Diff(want, got))
		}
	}
	return want
}

func seeds(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "seed", "*"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b), int64(1))
	}
}

func FuzzRESP(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in string, seed int64) { check(t, NameRESP, in, seed) })
}

func FuzzText(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in string, seed int64) { check(t, NameText, in, seed) })
}

func FuzzFallback(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in string, seed int64) { check(t, NameFallback, in, seed) })
}

func FuzzDatagram(f *testing.F) {
	f.Add("PING x=1\n")
	f.Add("*1\r\n$4\r\nPING\r\n")
	f.Add(`{"type":"a","n":[1,{"k":null}]}`)
	f.Fuzz(func(t *testing.T, in string) {
		for _, name := range []string{NameRESP, NameText, NameJSON, NameFallback} {
			u := Datagrams(model.Protocol{Transport: "udp", Dissector: name})(0, []byte(in))
			if u.Bytes != len(in) || u.Type == "" {
				t.Fatalf("%s: %+v", name, u)
			}
		}
	})
}

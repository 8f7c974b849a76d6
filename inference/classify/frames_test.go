package classify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

// small is a protocol with a length of three bytes that does not count its head
// of four, a kind, and a sequence number in messages that are long enough.
func small() model.Protocol {
	return model.Protocol{Port: 7, Transport: "tcp", Dissector: NameFrames, Frames: &model.Framing{
		Length: &model.Place{At: 0, Size: 3, Order: "little", Plus: 4},
		Type:   []model.Place{{At: 4}, {At: 5, Mask: "0x1c"}},
		Fields: map[string]model.Place{"seq": {At: 6, Size: 2}, "id": {At: 8, Size: 3, As: "hex"}, "name": {At: 8, Size: 4, As: "text"}},
	}}
}

func smallBytes(body string) string { return string([]byte{byte(len(body)), 0, 0, 9}) + body }

// reported are the units as "type bytes field=value ..".
func reported(us []Unit) (out []string) {
	for _, u := range us {
		s := fmt.Sprintf("%s %d", u.Type, u.Bytes)
		for _, f := range u.Fields {
			s += " " + f.Name + "=" + f.Value
		}
		out = append(out, s)
	}
	return out
}

// TestFramesOfATargetFile: messages are found where both sides speak at once and
// where segments hold several, and their types come from where the file says.
func TestFramesOfATargetFile(t *testing.T) {
	beat, vote := smallBytes("\x03\x04"), smallBytes("\x08\xff\x00\x11ab\x00\x00")
	for _, c := range []struct {
		name  string
		steps []step
		want  []string // of direction 0
	}{
		{"several in a segment", []step{{b: []byte(beat + vote + smallBytes("\x03") + beat)}},
			[]string{"frame 0x3 0x1 6", "frame 0x8 0x7 12 id=616200 name=ab seq=17", "frame 0x3 5", "frame 0x3 0x1 6"}},
		{"no turns", []step{{b: []byte(beat)}, {b: []byte(beat)}, {dir: 1, b: []byte(vote)}, {b: []byte(beat[:3])}, {dir: 1, b: []byte(vote)}, {b: []byte(beat[3:])}},
			[]string{"frame 0x3 0x1 6", "frame 0x3 0x1 6", "frame 0x3 0x1 6"}},
		{"behind a loss", []step{{b: []byte(beat + vote)}, {gap: 40}, {b: []byte("\x00\x00\x00\x00\x00" + beat + vote + beat)}},
			[]string{"frame 0x3 0x1 6", "frame 0x8 0x7 12 id=616200 name=ab seq=17", "unknown 5", "frame 0x3 0x1 6", "frame 0x8 0x7 12 id=616200 name=ab seq=17", "frame 0x3 0x1 6"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			us := rules(t, small(), c.steps, 1, 20)
			if diff := cmp.Diff(c.want, reported(us[0])); diff != "" {
				t.Errorf("units (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFramesOfAnswers: the side that was connected to may have another layout.
func TestFramesOfAnswers(t *testing.T) {
	p := small()
	p.Frames.Fields, p.Frames.Answer = nil, &[]model.Place{}
	d, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	us := run(t, d, []step{{b: []byte(smallBytes("\x03\x04"))}, {dir: 1, b: []byte(smallBytes("\x77"))}}, nil)
	if diff := cmp.Diff([]string{"frame 0x3 0x1 6", "frame answer 5"}, reported(append(us[0], us[1]...))); diff != "" {
		t.Error(diff)
	}
}

// TestATypeThatIsAnIdIsNoType: who names the wrong place gets no type for each message.
func TestATypeThatIsAnIdIsNoType(t *testing.T) {
	d, err := New(small())
	if err != nil {
		t.Fatal(err)
	}
	var v Vocabulary
	types := map[string]bool{}
	for i := range 300 {
		d.Data(0, uint64(6*i), []byte(smallBytes(string([]byte{byte(i), byte(i / 64 * 4)}))), func(u Unit) { types[v.Type(&u)] = true })
	}
	if len(types) != vocabularyMost+1 || !types["frame"] {
		t.Errorf("%d types", len(types))
	}
}

func TestFramesOfDatagrams(t *testing.T) {
	p := small()
	p.Transport, p.Frames.Length, p.Frames.Answer = "udp", nil, &[]model.Place{{At: 5}}
	if _, err := New(p); err != nil {
		t.Fatal(err)
	}
	read, payload := Datagrams(p), []byte(smallBytes("\x08\xff\x00\x11ab\x00\x00"))
	want := []string{"frame 0x8 0x7 12 id=616200 name=ab seq=17", "frame answer 0xff 12 id=616200 name=ab seq=17"}
	if diff := cmp.Diff(want, reported([]Unit{read(0, payload), read(1, payload)})); diff != "" {
		t.Error(diff)
	}
}

// TestASearchForFramesMakesNoGarbage: behind a loss it looks at every byte, while the
// packet is held.
func TestASearchForFramesMakesNoGarbage(t *testing.T) {
	d, err := New(small())
	if err != nil {
		t.Fatal(err)
	}
	ignore := func(Unit) {}
	seen := []byte(smallBytes("\x03\x04"))
	d.Data(0, 0, seen, ignore)
	d.Gap(0, uint64(len(seen)), 40, ignore)
	off, data := uint64(len(seen)+40), []byte(strings.Repeat("\x09\x00\x00\xfe", 350))
	if n := testing.AllocsPerRun(50, func() {
		d.Data(0, off, data, ignore)
		off += uint64(len(data))
	}); n > 5 {
		t.Errorf("%g allocations for a packet of %d bytes", n, len(data))
	}
}

// TestATextHasTheLengthThatItHas: words at the end of a message are shorter or longer.
func TestATextHasTheLengthThatItHas(t *testing.T) {
	p := greeted()
	p.Frames.Fields = map[string]model.Place{"text": {At: 5, Size: 8, As: "text"}, "id": {At: 5, Size: 8, As: "hex"}}
	d, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	us := run(t, d, []step{{b: []byte("Q\x00\x00\x00\x08SHO\x00Q\x00\x00\x00\x0eTIMELINE 2X\x00\x00\x00\x04")}}, nil)
	if diff := cmp.Diff([]string{"frame 0x51 9 text=SHO", "frame 0x51 15 id=54494d454c494e45 text=TIMELINE", "frame 0x58 5"}, reported(us[0])); diff != "" {
		t.Errorf("units (-want +got):\n%s", diff)
	}
}

// TestFramesThatCannotBe are told with what to write.
func TestFramesThatCannotBe(t *testing.T) {
	for want, change := range map[string]func(p *model.Protocol){
		"write frames: {length:":                                 func(p *model.Protocol) { p.Frames = nil },
		"frames goes with dissector frames, not with text":       func(p *model.Protocol) { p.Dissector = NameText },
		"frames.length is missing: give the place":               func(p *model.Protocol) { p.Frames.Length = nil },
		"frames.length: a datagram is one message":               func(p *model.Protocol) { p.Transport = "udp" },
		`frames.length: unknown order "net": use big or little`:  func(p *model.Protocol) { p.Frames.Length.Order = "net" },
		"frames.type[1]: a number has 8 bytes at most, not 9":    func(p *model.Protocol) { p.Frames.Type[1].Size = 9 },
		`frames.type[0]: mask "1c": want the bits that count`:    func(p *model.Protocol) { p.Frames.Type[0].Mask = "1c" },
		"frames.type: as goes with fields":                       func(p *model.Protocol) { p.Frames.Type[0].As = "text" },
		"frames.fields.far: want a place within the first 4096 ": func(p *model.Protocol) { p.Frames.Fields["far"] = model.Place{At: 4096} },
		`frames.fields.x: unknown as "uuid": use number, hex or`: func(p *model.Protocol) { p.Frames.Fields["x"] = model.Place{As: "uuid"} },
	} {
		p := small()
		change(&p)
		if _, err := New(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func FuzzFrames(f *testing.F) {
	seeds(f)
	f.Add(">"+smallBytes("\x03\x04")+smallBytes("\x08\xff\x00\x11ab\x00\x00")+"%\x09"+strings.Repeat(smallBytes("\x03\x04"), 4)+"<"+smallBytes("\x03"), int64(1))
	f.Fuzz(func(t *testing.T, in string, seed int64) { rules(t, small(), steps(in), seed, fuzzCuts) })
}

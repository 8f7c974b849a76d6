package of13

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// msg is a message with the given type and body and a right header.
func msg(typ MsgType, body string) []byte {
	b := []byte{Version, byte(typ), 0, 0, 0, 0, 0, 9}
	b = append(b, body...)
	be.PutUint16(b[2:], uint16(len(b)))
	return b
}

// flowModWith is the body of a flow-mod up to its match, and then tail.
func flowModWith(tail string) []byte { return msg(TypeFlowMod, strings.Repeat("\x00", 40)+tail) }

const anyMatch = "\x00\x01\x00\x04\x00\x00\x00\x00"

func TestParseErrors(t *testing.T) {
	withOXM := func(oxm string) []byte { // a match with these bytes of fields
		n := 4 + len(oxm)
		return flowModWith(string([]byte{0, 1, 0, byte(n)}) + oxm + strings.Repeat("\x00", pad8(n)))
	}
	withIns := func(ins string) []byte { return flowModWith(anyMatch + ins) }
	packetOutWith := func(actions string) []byte {
		return msg(TypePacketOut, "\xff\xff\xff\xff\x00\x00\x00\x01"+string([]byte{0, byte(len(actions))})+
			"\x00\x00\x00\x00\x00\x00"+actions)
	}
	for _, c := range []struct {
		what   string
		b      []byte
		typ    ErrorType
		code   ErrorCode
		offset int
	}{
		{"nothing", nil, ErrTypeBadRequest, BadRequestBadLen, 0},
		{"half a header", []byte{4, 0, 0, 8}, ErrTypeBadRequest, BadRequestBadLen, 0},
		{"length too large", []byte{4, 0, 0, 9, 0, 0, 0, 9}, ErrTypeBadRequest, BadRequestBadLen, 2},
		{"length too small", []byte{4, 0, 0, 7, 0, 0, 0, 9}, ErrTypeBadRequest, BadRequestBadLen, 2},
		{"version 1.0", []byte{1, 2, 0, 8, 0, 0, 0, 9}, ErrTypeBadRequest, BadRequestBadVersion, 0},
		{"version 0", []byte{0, 0, 0, 8, 0, 0, 0, 9}, ErrTypeBadRequest, BadRequestBadVersion, 0},
		{"error cut off", msg(TypeError, "\x00\x01\x00"), ErrTypeBadRequest, BadRequestBadLen, 10},
		{"experimenter error cut off", msg(TypeError, "\xff\xff\x00\x01\x00"), ErrTypeBadRequest, BadRequestBadLen, 12},
		{"experimenter cut off", msg(TypeExperimenter, "\x00\x00\x23\x20\x00\x00\x00"), ErrTypeBadRequest, BadRequestBadLen, 12},
		{"barrier with a body", msg(TypeBarrierRequest, "x"), ErrTypeBadRequest, BadRequestBadLen, 8},
		{"features too short", msg(TypeFeaturesReply, strings.Repeat("x", 23)), ErrTypeBadRequest, BadRequestBadLen, 28},
		{"features too long", msg(TypeFeaturesReply, strings.Repeat("x", 25)), ErrTypeBadRequest, BadRequestBadLen, 32},
		{"config too long", msg(TypeSetConfig, "12345"), ErrTypeBadRequest, BadRequestBadLen, 12},
		{"role too short", msg(TypeRoleReply, "1234567890"), ErrTypeBadRequest, BadRequestBadLen, 16},
		{"async config too short", msg(TypeSetAsync, strings.Repeat("x", 23)), ErrTypeBadRequest, BadRequestBadLen, 28},
		{"meter band cut off", msg(TypeMeterMod, "\x00\x00\x00\x01\x00\x00\x00\x05\x00\x01\x00\x0c\x00\x00\x00\x01\x00\x00\x00\x00"),
			ErrTypeBadRequest, BadRequestBadLen, 16},
		{"meter band of length 8", msg(TypeMeterMod, "\x00\x00\x00\x01\x00\x00\x00\x05\x00\x01\x00\x08"+strings.Repeat("\x00", 12)),
			ErrTypeBadRequest, BadRequestBadLen, 20},
		{"drop band too long", msg(TypeMeterMod, "\x00\x00\x00\x01\x00\x00\x00\x05\x00\x01\x00\x18"+strings.Repeat("\x00", 20)),
			ErrTypeBadRequest, BadRequestBadLen, 32},
		{"port status too short", msg(TypePortStatus, strings.Repeat("x", 71)), ErrTypeBadRequest, BadRequestBadLen, 76},
		{"flow removed without match", msg(TypeFlowRemoved, strings.Repeat("x", 40)), ErrTypeBadMatch, BadMatchBadLen, 48},
		{"flow removed with more", msg(TypeFlowRemoved, strings.Repeat("x", 40)+anyMatch+"x"), ErrTypeBadRequest, BadRequestBadLen, 56},

		{"no match", flowModWith(""), ErrTypeBadMatch, BadMatchBadLen, 48},
		{"match of type 0", flowModWith("\x00\x00\x00\x04\x00\x00\x00\x00"), ErrTypeBadMatch, BadMatchBadType, 48},
		{"match length below 4", flowModWith("\x00\x01\x00\x03\x00\x00\x00\x00"), ErrTypeBadMatch, BadMatchBadLen, 48},
		{"match beyond the message", flowModWith("\x00\x01\x00\x10\x00\x00\x00\x00"), ErrTypeBadMatch, BadMatchBadLen, 48},
		{"match without its padding", flowModWith("\x00\x01\x00\x09\x80\x00\x14\x01\x06"), ErrTypeBadMatch, BadMatchBadLen, 48},
		{"field header cut off", withOXM("\x80\x00\x00"), ErrTypeBadMatch, BadMatchBadLen, 55},
		{"field cut off", withOXM("\x80\x00\x00\x04\x00\x00\x00"), ErrTypeBadMatch, BadMatchBadLen, 56},
		{"field of the wrong size", withOXM("\x80\x00\x00\x03\x00\x00\x00"), ErrTypeBadMatch, BadMatchBadField, 52},
		{"odd value and mask", withOXM("\x00\x01\x01\x03\x00\x00\x00"), ErrTypeBadMatch, BadMatchBadLen, 52},
		{"experimenter field without id", withOXM("\xff\xff\x54\x02\x00\x00"), ErrTypeBadMatch, BadMatchBadLen, 52},

		{"instruction cut off", withIns("\x00\x01\x00\x08"), ErrTypeBadInstruction, BadInstructionBadLen, 56},
		{"instruction of length 0", withIns("\x00\x01\x00\x00\x00\x00\x00\x00"), ErrTypeBadInstruction, BadInstructionBadLen, 56},
		{"instruction of length 12", withIns("\x00\x01\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x00"), ErrTypeBadInstruction, BadInstructionBadLen, 56},
		{"instruction beyond the message", withIns("\x00\x01\x00\x10\x00\x00\x00\x00"), ErrTypeBadInstruction, BadInstructionBadLen, 56},
		{"goto too long", withIns("\x00\x01\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), ErrTypeBadInstruction, BadInstructionBadLen, 64},
		{"metadata too short", withIns("\x00\x02\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), ErrTypeBadInstruction, BadInstructionBadLen, 72},
		{"clear with actions", withIns("\x00\x05\x00\x10\x00\x00\x00\x00\x00\x12\x00\x08\x00\x00\x00\x00"), ErrTypeBadInstruction, BadInstructionBadLen, 64},
		{"action in it cut off", withIns("\x00\x04\x00\x10\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x01"), ErrTypeBadAction, BadActionBadLen, 64},

		{"action of length 0", packetOutWith("\x00\x12\x00\x00\x00\x00\x00\x00"), ErrTypeBadAction, BadActionBadLen, 24},
		{"action of length 9", packetOutWith("\x00\x12\x00\x09\x00\x00\x00\x00\x00"), ErrTypeBadAction, BadActionBadLen, 24},
		{"actions not a multiple of 8", packetOutWith("\x00\x12\x00\x08\x00\x00\x00\x00\x00\x00"), ErrTypeBadAction, BadActionBadLen, 32},
		{"output of length 8", packetOutWith("\x00\x00\x00\x08\x00\x00\x00\x01"), ErrTypeBadAction, BadActionBadLen, 32},
		{"pop_vlan of length 16", packetOutWith("\x00\x12\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), ErrTypeBadAction, BadActionBadLen, 32},
		{"set_field with too much padding", packetOutWith("\x00\x19\x00\x10\x80\x00\x14\x00\x00\x00\x00\x00\x00\x00\x00\x00"), ErrTypeBadAction, BadActionBadSetLen, 28},
		{"set_field of the wrong size", packetOutWith("\x00\x19\x00\x10\x80\x00\x08\x05\x02\x00\x00\x00\x01\x00\x00\x00"), ErrTypeBadAction, BadActionBadSetLen, 28},
		{"set_field cut off", packetOutWith("\x00\x19\x00\x08\x80\x00\x16\x04"), ErrTypeBadAction, BadActionBadLen, 32},
		{"actions beyond the message", msg(TypePacketOut, "\xff\xff\xff\xff\x00\x00\x00\x01\x00\x08\x00\x00\x00\x00\x00\x00"), ErrTypeBadRequest, BadRequestBadLen, 24},

		{"packet-in cut off", msg(TypePacketIn, strings.Repeat("\x00", 16)+anyMatch+"\x00"), ErrTypeBadRequest, BadRequestBadLen, 8},
		{"packet-in match type", msg(TypePacketIn, strings.Repeat("\x00", 16)+"\x00\x00\x00\x04\x00\x00\x00\x00"+"\x00\x00"), ErrTypeBadMatch, BadMatchBadType, 24},
		{"packet-in match too long", msg(TypePacketIn, strings.Repeat("\x00", 16)+"\x00\x01\x00\x0c\x00\x00\x00\x00"+"\x00\x00"), ErrTypeBadMatch, BadMatchBadLen, 26},
		{"packet-in match too short", msg(TypePacketIn, strings.Repeat("\x00", 16)+"\x00\x01\x00\x03\x00\x00\x00\x00"+"\x00\x00"), ErrTypeBadMatch, BadMatchBadLen, 26},
		{"packet-in field cut off", msg(TypePacketIn, strings.Repeat("\x00", 16)+"\x00\x01\x00\x0c\x80\x00\x00\x05\x00\x00\x00\x03"+"\x00\x00\x00\x00\x00\x00"), ErrTypeBadMatch, BadMatchBadLen, 28},

		{"packet-in without padding behind the match", msg(TypePacketIn, strings.Repeat("\x00", 16)+"\x00\x01\x00\x0c\x80\x00\x00\x04\x00\x00\x00\x03"+"\x00\x00\x00\x00"), ErrTypeBadMatch, BadMatchBadLen, 26},

		{"multipart header cut off", msg(TypeMultipartReply, "\x00\x01\x00\x00"), ErrTypeBadRequest, BadRequestBadLen, 12},
		{"desc request with a body", msg(TypeMultipartRequest, "\x00\x00\x00\x00\x00\x00\x00\x00x"), ErrTypeBadRequest, BadRequestBadLen, 16},
		{"flow entry of length 0", msg(TypeMultipartReply, "\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), ErrTypeBadRequest, BadRequestBadLen, 18},
		{"flow entry beyond the message", msg(TypeMultipartReply, "\x00\x01\x00\x00\x00\x00\x00\x00\x00\x60\x00\x00"), ErrTypeBadRequest, BadRequestBadLen, 18},
		{"flow entry cut off", msg(TypeMultipartReply, "\x00\x01\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00"), ErrTypeBadRequest, BadRequestBadLen, 20},
		{"half a table", msg(TypeMultipartReply, "\x00\x03\x00\x00\x00\x00\x00\x00"+strings.Repeat("\x00", 12)), ErrTypeBadRequest, BadRequestBadLen, 24},
		{"half a port", msg(TypeMultipartReply, "\x00\x0d\x00\x00\x00\x00\x00\x00"+strings.Repeat("\x00", 32)), ErrTypeBadRequest, BadRequestBadLen, 48},
		{"desc too short", msg(TypeMultipartReply, "\x00\x00\x00\x00\x00\x00\x00\x00"+strings.Repeat("\x00", 1000)), ErrTypeBadRequest, BadRequestBadLen, 816},
	} {
		t.Run(c.what, func(t *testing.T) {
			m, xid, err := Parse(c.b)
			if err == nil {
				t.Fatalf("accepted as %v", m)
			}
			var p *ParseError
			if !errors.As(err, &p) {
				t.Fatalf("%T is not a *ParseError", err)
			}
			if p.Type != c.typ || p.Code != c.code || p.Offset != c.offset {
				t.Errorf("%v\ngot  %v at %d\nwant %v at %d", err, errorName(p.Type, p.Code), p.Offset,
					errorName(c.typ, c.code), c.offset)
			}
			if len(c.b) >= HeaderLen && xid != 9 {
				t.Errorf("xid %d, want 9", xid)
			}
			reply := p.Reply(c.b)
			if b, err := Append(nil, reply, xid); err != nil {
				t.Errorf("reply does not encode: %v", err)
			} else if back := roundTrip(t, b).(*Error); string(back.Data) != string(c.b) || !errors.Is(back, reply) {
				t.Errorf("reply came back as %v", back)
			}
		})
	}
}

func TestReplyToTheLargestMessageFits(t *testing.T) {
	p := &ParseError{Type: ErrTypeBadRequest, Code: BadRequestBadLen}
	b, err := Append(nil, p.Reply(make([]byte, MaxLen)), 1)
	if err != nil || len(b) != MaxLen {
		t.Errorf("%d bytes, error %v", len(b), err)
	}
}

func TestEncodeErrors(t *testing.T) {
	big := make([]byte, MaxLen)
	tooBig := "does not fit the 16-bit length field"
	for _, c := range []struct {
		msg  Message
		want string
	}{
		{&EchoRequest{Data: big}, tooBig},
		{NewPacketOut(1, big), tooBig},
		{&PacketIn{OXMs: big}, tooBig},
		{&Hello{Elements: []HelloElement{{1, big}}}, tooBig},
		{rule(nil, Apply(ActionExperimenter{1, make([]byte, 1<<16)})), tooBig},
		{rule(nil, RawInstruction{9, make([]byte, 1<<16+4)}), tooBig},
		{rule(Match(make([]OXM, 20000))), tooBig},
		{&FlowMod{HardTimeout: 1500 * time.Millisecond}, "hard timeout 1.5s: want whole seconds"},
		{&FlowMod{IdleTimeout: 65536 * time.Second}, "idle timeout 18h12m16s: want whole seconds from 0 to 65535"},
		{&FlowMod{IdleTimeout: -time.Second}, "idle timeout -1s"},
		{&FlowRemoved{HardTimeout: 1}, "hard timeout 1ns"},
		{&FlowRemoved{IdleTimeout: 1}, "idle timeout 1ns"},
		{rule(Match{IPv4Src(ip6A)}), "ipv4_src: value of 16 bytes: the field has 4"},
		{rule(Match{IPv6Dst(ip4A)}), "ipv6_dst: value of 4 bytes: the field has 16"},
		{rule(Match{{Class: ClassNXM1, HasMask: true, Value: []byte{1}}}), "mask of 0 bytes for a value of 1"},
		{rule(Match{{Class: ClassNXM1, Mask: []byte{1}}}), "mask of 1 bytes for a value of 0"},
		{rule(Match{{Class: ClassNXM1, Field: 128}}), "more than 7 bits"},
		{rule(Match{{Class: ClassNXM1, Value: make([]byte, 256)}}), "do not fit its 8-bit length"},
		{rule(Match{{Class: ClassExperimenter, Value: make([]byte, 252)}}), "do not fit its 8-bit length"},
		{rule(Match{{Class: ClassNXM1, Experimenter: 1}}), "experimenter id in class 0x0001"},
		{rule(nil, nil), "instruction 0 is nil"},
		{rule(nil, Apply(PopVLAN{}, nil)), "instruction 0: action 1 is nil"},
		{rule(nil, Apply(RawAction{Type: 99})), "type 99: length 4 is not a multiple of 8"},
		{rule(nil, InstructionExperimenter{Data: []byte{1}}), "not a multiple of 8"},
		{rule(nil, Apply(SetField{IPv4Dst(ip6A)})), "set_field: ipv4_dst"},
		{&Error{Type: ErrTypeBadMatch, Experimenter: 1}, "experimenter id 0x1 in an error of type OFPET_BAD_MATCH"},
		{&PortStatus{Port: Port{No: 2, Name: "a name of 17 byte"}}, "name of port 2: text of 17 bytes"},
		{&PortStatus{Port: Port{No: 2, Name: "a\x00b"}}, "holds a NUL byte"},
		{&MultipartReply{Type: MultipartDesc, Body: &DescReply{SerialNumber: strings.Repeat("x", 33)}}, "text of 33 bytes"},
		{&MultipartReply{Type: MultipartDesc, Body: PortDescReply{}}, "body of13.PortDescReply in a multipart message of type DESC"},
		{&MultipartRequest{Type: MultipartFlow, Body: FlowStatsReply{}}, "body of13.FlowStatsReply"},
		{&MultipartRequest{Type: MultipartPortStats, Body: &FlowStatsRequest{}}, "body *of13.FlowStatsRequest"},
		{&MultipartReply{Type: MultipartFlow, Body: FlowStatsReply{{HardTimeout: 1}}}, "rule 0: hard timeout"},
		{&MultipartReply{Type: MultipartFlow, Body: FlowStatsReply{{}, {IdleTimeout: 1}}}, "rule 1: idle timeout"},
		{&MultipartReply{Type: MultipartPortDesc, Body: PortDescReply{{Name: "a\x00"}}}, "NUL"},
	} {
		b, err := Append([]byte("kept"), c.msg, 1)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: error %v, want one with %q", c.msg, err, c.want)
		}
		if string(b) != "kept" {
			t.Errorf("%T: destination came back with %d bytes", c.msg, len(b))
		}
	}
}

func TestDecodeWantsAPacketIn(t *testing.T) {
	p := PacketIn{Cookie: 5}
	xid, err := p.Decode(msg(TypeBarrierReply, ""))
	if xid != 9 || err == nil || !strings.Contains(err.Error(), "BARRIER_REPLY where PACKET_IN is expected") {
		t.Errorf("xid %d, error %v", xid, err)
	}
	if _, err := p.Decode([]byte{1, 10, 0, 8, 0, 0, 0, 9}); err == nil {
		t.Error("version 1 accepted")
	}
	if diff := cmp.Diff(PacketIn{Cookie: 5}, p); diff != "" {
		t.Errorf("struct changed:\n%s", diff)
	}
}

func TestPacketInAccessors(t *testing.T) {
	for _, c := range []struct {
		oxms string
		ok   bool
	}{
		{"\x80\x00\x00\x04\x00\x00\x00\x03", true},
		{"\x00\x01\x3e\x01\x05\x80\x00\x00\x04\x00\x00\x00\x03", true}, // behind a Nicira field
		{"", false},
		{"\x80\x00\x00\x02\x00\x03", false}, // too short
		{"\x80\x00\x00\x00", false},         // empty
		{"\x80\x00\x01\x08\x00\x00\x00\x03\xff\xff\xff\xff", false}, // with a mask
		{"\x80\x00\x02\x04\x00\x00\x00\x03", false},                 // in_phy_port
		{"\x00\x01\x00\x04\x00\x00\x00\x03", false},                 // reg0
		{"\x80\x00\x00\x04\x00\x00", false},                         // cut off
		{"\x80\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x03", false}, // metadata
	} {
		p := PacketIn{OXMs: []byte(c.oxms)}
		if port, ok := p.InPort(); ok != c.ok || ok && port != 3 {
			t.Errorf("%x: in_port %v %v", c.oxms, port, ok)
		}
	}
}

// TestParseKeepsNoReference: the caller may reuse its buffer after Parse, not
// after Decode.
func TestParseKeepsNoReference(t *testing.T) {
	for _, s := range samples() {
		b := mustAppend(t, s.msg, 1)
		m, _, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		want := bytes.Clone(b)
		for i := range b {
			b[i] ^= 0xff
		}
		if got := mustAppend(t, m, 1); !bytes.Equal(got, want) {
			t.Errorf("%s changed with the buffer it was read from", s.name)
		}
	}
	b := mustAppend(t, packetIn(Match{InPort(3)}, frame), 1)
	var p PacketIn
	if _, err := p.Decode(b); err != nil || &p.Data[0] != &b[len(b)-len(frame)] {
		t.Errorf("Decode copies the packet, error %v", err)
	}
}

func TestPaddingIsIgnored(t *testing.T) {
	b := flowModWith("\x00\x01\x00\x0c\x80\x00\x00\x04\x00\x00\x00\x03\xaa\xbb\xcc\xdd" + // in_port=3
		"\x00\x04\x00\x18\xaa\xaa\xaa\xaa\x00\x00\x00\x10\x00\x00\x00\x02\x00\x00\xbb\xbb\xbb\xbb\xbb\xbb") // output:2
	m := roundTrip(t, b).(*FlowMod)
	if want := "in_port=3 apply_actions(output:2)"; !strings.HasSuffix(m.String(), want) {
		t.Errorf("%v, want …%s", m, want)
	}
}

func TestReadFrame(t *testing.T) {
	long := msg(TypeEchoRequest, strings.Repeat("x", 5000))
	stream := string(msg(TypeBarrierReply, "")) + string(long) + string(msg(TypeEchoReply, "ok"))
	for _, one := range []bool{false, true} {
		var r io.Reader = strings.NewReader(stream)
		if one {
			r = &oneByte{r}
		}
		var buf []byte
		var got []string
		for {
			f, err := ReadFrame(r, buf)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(f))
			buf = f
		}
		if strings.Join(got, "") != stream || len(got) != 3 {
			t.Errorf("%d frames: %.80q", len(got), got)
		}
	}
	for _, cut := range []int{1, 7, 8, 9} {
		if _, err := ReadFrame(strings.NewReader(string(long[:cut])), nil); err != io.ErrUnexpectedEOF {
			t.Errorf("cut after %d bytes: error %v", cut, err)
		}
	}
	var p *ParseError
	if _, err := ReadFrame(strings.NewReader("\x04\x00\x00\x07\x00\x00\x00\x00"), nil); !errors.As(err, &p) {
		t.Errorf("length 7: error %v", err)
	}
	if _, err := PeekLength(make([]byte, 7)); !errors.As(err, &p) {
		t.Errorf("header of 7 bytes: error %v", err)
	}
}

// oneByte hands out one byte at a time.
type oneByte struct{ r io.Reader }

func (o *oneByte) Read(b []byte) (int, error) { return o.r.Read(b[:min(1, len(b))]) }

func ExampleParse() {
	b, err := Append(nil, NewPacketOut(PortController, []byte("frame"), Output{Port: 2}), 7)
	if err != nil {
		fmt.Println(err)
	}
	m, xid, err := Parse(b)
	fmt.Println(m, xid, err)
	// Output: PACKET_OUT in_port CONTROLLER actions output:2 len 5 7 <nil>
}

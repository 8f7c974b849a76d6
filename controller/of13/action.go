package of13

import (
	"fmt"
	"strings"
)

// Action is one action of a packet-out, an instruction or a bucket (7.2.5).
// All implementations are values of this package.
type Action interface {
	fmt.Stringer
	// appendAction appends the whole action, type and length included.
	appendAction(b []byte) ([]byte, error)
}

// Action types on the wire (7.2.5, ofp_action_type).
const (
	actOutput       = 0
	actCopyTTLOut   = 11
	actCopyTTLIn    = 12
	actSetMPLSTTL   = 15
	actDecMPLSTTL   = 16
	actPushVLAN     = 17
	actPopVLAN      = 18
	actPushMPLS     = 19
	actPopMPLS      = 20
	actSetQueue     = 21
	actGroup        = 22
	actSetNWTTL     = 23
	actDecNWTTL     = 24
	actSetField     = 25
	actPushPBB      = 26
	actPopPBB       = 27
	actExperimenter = 0xffff
)

// Output sends the packet to a port.
type Output struct {
	Port   PortNo
	MaxLen uint16 // bytes that go to PortController; MaxLenNoBuffer for all
}

// ToController sends the whole packet to the controller.
func ToController() Output { return Output{Port: PortController, MaxLen: MaxLenNoBuffer} }

// Group hands the packet to a group.
type Group struct{ ID GroupID }

// SetQueue chooses the port's queue.
type SetQueue struct{ Queue uint32 }

// SetMPLSTTL sets the TTL of the outermost label.
type SetMPLSTTL struct{ TTL uint8 }

// DecMPLSTTL decrements the TTL of the outermost label.
type DecMPLSTTL struct{}

// PushVLAN adds a VLAN tag with this Ethernet type (0x8100, 0x88a8).
type PushVLAN struct{ EthType uint16 }

// PopVLAN removes the outermost VLAN tag.
type PopVLAN struct{}

// PushMPLS adds an MPLS label with this Ethernet type (0x8847, 0x8848).
type PushMPLS struct{ EthType uint16 }

// PopMPLS removes the outermost MPLS label; EthType is that of what is left.
type PopMPLS struct{ EthType uint16 }

// PushPBB adds a PBB header with this Ethernet type (0x88e7).
type PushPBB struct{ EthType uint16 }

// PopPBB removes the outer PBB header.
type PopPBB struct{}

// SetNWTTL sets the IP TTL.
type SetNWTTL struct{ TTL uint8 }

// DecNWTTL decrements the IP TTL.
type DecNWTTL struct{}

// CopyTTLOut copies the TTL from the next to the outermost header.
type CopyTTLOut struct{}

// CopyTTLIn copies the TTL from the outermost to the next header.
type CopyTTLIn struct{}

// SetField writes a header field; the OXM has no mask in 1.3.
type SetField struct{ OXM OXM }

// ActionExperimenter is an action defined by somebody else than the ONF.
type ActionExperimenter struct {
	Experimenter uint32
	Data         []byte // a multiple of 8 bytes
}

// RawAction is an action of a type that is not modelled.
type RawAction struct {
	Type uint16
	Body []byte // after type and length; 4 bytes more than a multiple of 8
}

const outputLen = 16

// write appends the action's 16 bytes.
func (a Output) write(b []byte) []byte {
	b = append(b, 0, actOutput, 0, outputLen)
	b = be.AppendUint32(b, uint32(a.Port))
	b = be.AppendUint16(b, a.MaxLen)
	return append(b, 0, 0, 0, 0, 0, 0)
}

func (a Output) appendAction(b []byte) ([]byte, error) { return a.write(b), nil }
func (a Group) appendAction(b []byte) ([]byte, error)  { return act32(b, actGroup, uint32(a.ID)), nil }
func (a SetQueue) appendAction(b []byte) ([]byte, error) {
	return act32(b, actSetQueue, a.Queue), nil
}
func (a SetMPLSTTL) appendAction(b []byte) ([]byte, error) {
	return act32(b, actSetMPLSTTL, uint32(a.TTL)<<24), nil
}
func (a DecMPLSTTL) appendAction(b []byte) ([]byte, error) { return act32(b, actDecMPLSTTL, 0), nil }
func (a PushVLAN) appendAction(b []byte) ([]byte, error) {
	return act32(b, actPushVLAN, uint32(a.EthType)<<16), nil
}
func (a PopVLAN) appendAction(b []byte) ([]byte, error) { return act32(b, actPopVLAN, 0), nil }
func (a PushMPLS) appendAction(b []byte) ([]byte, error) {
	return act32(b, actPushMPLS, uint32(a.EthType)<<16), nil
}
func (a PopMPLS) appendAction(b []byte) ([]byte, error) {
	return act32(b, actPopMPLS, uint32(a.EthType)<<16), nil
}
func (a PushPBB) appendAction(b []byte) ([]byte, error) {
	return act32(b, actPushPBB, uint32(a.EthType)<<16), nil
}
func (a PopPBB) appendAction(b []byte) ([]byte, error) { return act32(b, actPopPBB, 0), nil }
func (a SetNWTTL) appendAction(b []byte) ([]byte, error) {
	return act32(b, actSetNWTTL, uint32(a.TTL)<<24), nil
}
func (a DecNWTTL) appendAction(b []byte) ([]byte, error)   { return act32(b, actDecNWTTL, 0), nil }
func (a CopyTTLOut) appendAction(b []byte) ([]byte, error) { return act32(b, actCopyTTLOut, 0), nil }
func (a CopyTTLIn) appendAction(b []byte) ([]byte, error)  { return act32(b, actCopyTTLIn, 0), nil }

func (a SetField) appendAction(b []byte) ([]byte, error) {
	start := len(b)
	b = append(b, 0, actSetField, 0, 0)
	b, err := a.OXM.append(b)
	if err != nil {
		return b, fmt.Errorf("set_field: %w", err)
	}
	b = appendPad(b, pad8(len(b)-start))
	return b, putLen16(b[start+2:], len(b)-start)
}

func (a ActionExperimenter) appendAction(b []byte) ([]byte, error) {
	start := len(b)
	b = be.AppendUint16(b, actExperimenter)
	b = be.AppendUint32(append(b, 0, 0), a.Experimenter)
	b = append(b, a.Data...)
	return b, alignedLen(b, start)
}

func (a RawAction) appendAction(b []byte) ([]byte, error) {
	start := len(b)
	b = be.AppendUint16(b, a.Type)
	b = append(append(b, 0, 0), a.Body...)
	return b, alignedLen(b, start)
}

// act32 appends an action of 8 bytes.
func act32(b []byte, typ uint16, v uint32) []byte {
	b = be.AppendUint16(b, typ)
	return be.AppendUint32(append(b, 0, 8), v)
}

// alignedLen stores the length of the action or instruction that begins at
// start; it must be a multiple of 8.
func alignedLen(b []byte, start int) error {
	n := len(b) - start
	if n%8 != 0 {
		return fmt.Errorf("type %d: length %d is not a multiple of 8", be.Uint16(b[start:]), n)
	}
	return putLen16(b[start+2:], n)
}

// AppendActions appends the actions one after the other.
func AppendActions(dst []byte, actions []Action) ([]byte, error) {
	b := dst
	for i, a := range actions {
		if a == nil {
			return dst, fmt.Errorf("action %d is nil", i)
		}
		var err error
		if b, err = a.appendAction(b); err != nil {
			return dst, fmt.Errorf("action %d: %w", i, err)
		}
	}
	return b, nil
}

func readActions(r *reader) []Action {
	var list []Action
	for r.err == nil && len(r.b) > 0 {
		if a := readAction(r); r.err == nil {
			list = append(list, a)
		}
	}
	return list
}

func readAction(r *reader) Action {
	if len(r.b) < 8 {
		r.fail(ErrTypeBadAction, BadActionBadLen, "%d bytes left where an action has at least 8", len(r.b))
		return nil
	}
	typ, n := be.Uint16(r.b), int(be.Uint16(r.b[2:]))
	if n < 8 || n%8 != 0 || n > len(r.b) {
		r.fail(ErrTypeBadAction, BadActionBadLen, "action type %d: length %d, with %d bytes left", typ, n, len(r.b))
		return nil
	}
	r.take(4)
	s := r.sub(n-4, ErrTypeBadAction, BadActionBadLen)
	a := readActionBody(s, typ)
	r.join(s)
	return a
}

func readActionBody(r *reader, typ uint16) Action {
	u8 := func() uint8 { v := r.u8(); r.pad(3); return v }
	u16 := func() uint16 { v := r.u16(); r.pad(2); return v }
	switch typ {
	case actOutput:
		a := Output{Port: PortNo(r.u32()), MaxLen: r.u16()}
		r.pad(6)
		return a
	case actGroup:
		return Group{GroupID(r.u32())}
	case actSetQueue:
		return SetQueue{r.u32()}
	case actSetMPLSTTL:
		return SetMPLSTTL{u8()}
	case actDecMPLSTTL:
		r.pad(4)
		return DecMPLSTTL{}
	case actPushVLAN:
		return PushVLAN{u16()}
	case actPopVLAN:
		r.pad(4)
		return PopVLAN{}
	case actPushMPLS:
		return PushMPLS{u16()}
	case actPopMPLS:
		return PopMPLS{u16()}
	case actPushPBB:
		return PushPBB{u16()}
	case actPopPBB:
		r.pad(4)
		return PopPBB{}
	case actSetNWTTL:
		return SetNWTTL{u8()}
	case actDecNWTTL:
		r.pad(4)
		return DecNWTTL{}
	case actCopyTTLOut:
		r.pad(4)
		return CopyTTLOut{}
	case actCopyTTLIn:
		r.pad(4)
		return CopyTTLIn{}
	case actSetField:
		at := r.off
		a := SetField{readOXM(r)}
		if r.err != nil && r.err.Type == ErrTypeBadMatch {
			// All that readOXM finds wrong is lengths; in an action it has codes of its own (7.4.4).
			r.err.Type, r.err.Code = ErrTypeBadAction, BadActionBadSetLen
		}
		r.pad(pad8(4 + r.off - at))
		return a
	case actExperimenter:
		return ActionExperimenter{r.u32(), r.rest()}
	}
	return RawAction{typ, r.rest()}
}

func actionsString(actions []Action) string {
	if len(actions) == 0 {
		return "drop"
	}
	parts := make([]string, len(actions))
	for i, a := range actions {
		parts[i] = fmt.Sprint(a)
	}
	return strings.Join(parts, ",")
}

// String is the action as ovs-ofctl writes it, as far as it has a word for it.
func (a Output) String() string {
	if a.Port == PortController {
		return fmt.Sprintf("CONTROLLER:%d", a.MaxLen)
	}
	return "output:" + a.Port.String()
}
func (a Group) String() string      { return fmt.Sprintf("group:%v", a.ID) }
func (a SetQueue) String() string   { return fmt.Sprintf("set_queue:%d", a.Queue) }
func (a SetMPLSTTL) String() string { return fmt.Sprintf("set_mpls_ttl(%d)", a.TTL) }
func (a DecMPLSTTL) String() string { return "dec_mpls_ttl" }
func (a PushVLAN) String() string   { return fmt.Sprintf("push_vlan:0x%04x", a.EthType) }
func (a PopVLAN) String() string    { return "pop_vlan" }
func (a PushMPLS) String() string   { return fmt.Sprintf("push_mpls:0x%04x", a.EthType) }
func (a PopMPLS) String() string    { return fmt.Sprintf("pop_mpls:0x%04x", a.EthType) }
func (a PushPBB) String() string    { return fmt.Sprintf("push_pbb:0x%04x", a.EthType) }
func (a PopPBB) String() string     { return "pop_pbb" }
func (a SetNWTTL) String() string   { return fmt.Sprintf("mod_nw_ttl:%d", a.TTL) }
func (a DecNWTTL) String() string   { return "dec_ttl" }
func (a CopyTTLOut) String() string { return "copy_ttl_out" }
func (a CopyTTLIn) String() string  { return "copy_ttl_in" }
func (a SetField) String() string   { return "set_field:" + a.OXM.String() }
func (a ActionExperimenter) String() string {
	return fmt.Sprintf("experimenter:0x%08x:%x", a.Experimenter, a.Data)
}
func (a RawAction) String() string { return fmt.Sprintf("action_%d:%x", a.Type, a.Body) }

package of13

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Instruction is what a rule does with a packet (7.2.4). A rule has at most
// one of each type; a rule without any drops the packet. All implementations are values of
// this package.
type Instruction interface {
	fmt.Stringer
	appendInstruction(b []byte) ([]byte, error)
	// instrType is the type on the wire.
	instrType() uint16
}

// Instruction types on the wire (7.2.4, ofp_instruction_type).
const (
	insGoto         = 1
	insMetadata     = 2
	insWrite        = 3
	insApply        = 4
	insClear        = 5
	insMeter        = 6
	insExperimenter = 0xffff
)

// GotoTable goes on in a later table.
type GotoTable struct{ Table TableID }

// WriteMetadata sets the metadata bits that Mask holds.
type WriteMetadata struct{ Metadata, Mask uint64 }

// WriteActions merges actions into the action set, carried out at the end.
type WriteActions struct{ Actions []Action }

// ApplyActions carries out actions at once.
type ApplyActions struct{ Actions []Action }

// ClearActions empties the action set.
type ClearActions struct{}

// Meter measures the packet with a meter, which may drop it.
type Meter struct{ ID MeterID }

// InstructionExperimenter is an instruction defined by somebody else than the
// ONF.
type InstructionExperimenter struct {
	Experimenter uint32
	Data         []byte // a multiple of 8 bytes
}

// RawInstruction is an instruction of a type that is not modelled.
type RawInstruction struct {
	Type uint16
	Body []byte // after type and length; 4 bytes more than a multiple of 8
}

// Apply makes an ApplyActions.
func Apply(actions ...Action) ApplyActions { return ApplyActions{actions} }

func (i GotoTable) instrType() uint16               { return insGoto }
func (i WriteMetadata) instrType() uint16           { return insMetadata }
func (i WriteActions) instrType() uint16            { return insWrite }
func (i ApplyActions) instrType() uint16            { return insApply }
func (i ClearActions) instrType() uint16            { return insClear }
func (i Meter) instrType() uint16                   { return insMeter }
func (i InstructionExperimenter) instrType() uint16 { return insExperimenter }
func (i RawInstruction) instrType() uint16          { return i.Type }

func (i GotoTable) appendInstruction(b []byte) ([]byte, error) {
	return act32(b, insGoto, uint32(i.Table)<<24), nil
}

func (i WriteMetadata) appendInstruction(b []byte) ([]byte, error) {
	b = append(b, 0, insMetadata, 0, 24, 0, 0, 0, 0)
	return be.AppendUint64(be.AppendUint64(b, i.Metadata), i.Mask), nil
}

func (i WriteActions) appendInstruction(b []byte) ([]byte, error) {
	return appendActionsIns(b, insWrite, i.Actions)
}

func (i ApplyActions) appendInstruction(b []byte) ([]byte, error) {
	return appendActionsIns(b, insApply, i.Actions)
}

func appendActionsIns(b []byte, typ byte, actions []Action) ([]byte, error) {
	start := len(b)
	b, err := AppendActions(append(b, 0, typ, 0, 0, 0, 0, 0, 0), actions)
	if err != nil {
		return b, err
	}
	return b, alignedLen(b, start)
}

func (i ClearActions) appendInstruction(b []byte) ([]byte, error) { return act32(b, insClear, 0), nil }
func (i Meter) appendInstruction(b []byte) ([]byte, error) {
	return act32(b, insMeter, uint32(i.ID)), nil
}

func (i InstructionExperimenter) appendInstruction(b []byte) ([]byte, error) {
	start := len(b)
	b = be.AppendUint16(b, insExperimenter)
	b = be.AppendUint32(append(b, 0, 0), i.Experimenter)
	b = append(b, i.Data...)
	return b, alignedLen(b, start)
}

func (i RawInstruction) appendInstruction(b []byte) ([]byte, error) {
	start := len(b)
	b = be.AppendUint16(b, i.Type)
	b = append(append(b, 0, 0), i.Body...)
	return b, alignedLen(b, start)
}

// AppendInstructions appends the instructions. After an error, as on one that is nil, it returns
// dst unchanged.
func AppendInstructions(dst []byte, list []Instruction) ([]byte, error) {
	b := dst
	for n, i := range list {
		if i == nil {
			return dst, fmt.Errorf("instruction %d is nil", n)
		}
		var err error
		if b, err = i.appendInstruction(b); err != nil {
			return dst, fmt.Errorf("instruction %d: %w", n, err)
		}
	}
	return b, nil
}

func readInstructions(r *reader) []Instruction {
	var list []Instruction
	for r.err == nil && len(r.b) > 0 {
		if i := readInstruction(r); r.err == nil {
			list = append(list, i)
		}
	}
	return list
}

func readInstruction(r *reader) Instruction {
	if len(r.b) < 8 {
		r.fail(ErrTypeBadInstruction, BadInstructionBadLen,
			"%d bytes left where an instruction has at least 8", len(r.b))
		return nil
	}
	typ, n := be.Uint16(r.b), int(be.Uint16(r.b[2:]))
	if n < 8 || n%8 != 0 || n > len(r.b) {
		r.fail(ErrTypeBadInstruction, BadInstructionBadLen,
			"instruction type %d: length %d, with %d bytes left", typ, n, len(r.b))
		return nil
	}
	r.take(4)
	s := r.sub(n-4, ErrTypeBadInstruction, BadInstructionBadLen)
	var i Instruction
	switch typ {
	case insGoto:
		i = GotoTable{TableID(s.u8())}
		s.pad(3)
	case insMetadata:
		s.pad(4)
		i = WriteMetadata{s.u64(), s.u64()}
	case insWrite:
		s.pad(4)
		i = WriteActions{readActions(s)}
	case insApply:
		s.pad(4)
		i = ApplyActions{readActions(s)}
	case insClear:
		s.pad(4)
		i = ClearActions{}
	case insMeter:
		i = Meter{MeterID(s.u32())}
	case insExperimenter:
		i = InstructionExperimenter{s.u32(), s.rest()}
	default:
		i = RawInstruction{typ, s.rest()}
	}
	r.join(s)
	return i
}

// NormalizeInstructions returns an equal list in a fixed form: in the order of execution (5.9:
// meter, apply, clear, write, metadata, goto), without empty lists of actions, with metadata
// masked, and without writes of an empty mask.
func NormalizeInstructions(list []Instruction) []Instruction {
	rank := func(i Instruction) int {
		if i == nil {
			return -1 // AppendInstructions refuses it
		}
		if k := slices.Index([]uint16{insMeter, insApply, insClear, insWrite, insMetadata, insGoto}, i.instrType()); k >= 0 {
			return k
		}
		return 100 + int(i.instrType())
	}
	out := make([]Instruction, 0, len(list))
	for _, i := range list {
		switch v := i.(type) {
		case ApplyActions:
			if len(v.Actions) == 0 {
				continue
			}
		case WriteActions:
			if len(v.Actions) == 0 {
				continue
			}
		case WriteMetadata:
			if v.Mask == 0 {
				continue
			}
			i = WriteMetadata{v.Metadata & v.Mask, v.Mask}
		}
		out = append(out, i)
	}
	slices.SortStableFunc(out, func(a, b Instruction) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// EqualInstructions reports whether the two lists do the same, written the
// same way after NormalizeInstructions. Lists that cannot be encoded are equal
// to none.
func EqualInstructions(a, b []Instruction) bool {
	x, errX := AppendInstructions(nil, NormalizeInstructions(a))
	y, errY := AppendInstructions(nil, NormalizeInstructions(b))
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func instructionsString(list []Instruction) string {
	if len(list) == 0 {
		return "drop"
	}
	parts := make([]string, len(list))
	for i, in := range list {
		parts[i] = fmt.Sprint(in)
	}
	return strings.Join(parts, " ")
}

// String is the instruction, much as ovs-ofctl writes it.
func (i GotoTable) String() string { return fmt.Sprintf("goto_table:%d", i.Table) }
func (i WriteMetadata) String() string {
	return fmt.Sprintf("write_metadata:0x%x/0x%x", i.Metadata, i.Mask)
}
func (i WriteActions) String() string { return "write_actions(" + actionsString(i.Actions) + ")" }
func (i ApplyActions) String() string { return "apply_actions(" + actionsString(i.Actions) + ")" }
func (i ClearActions) String() string { return "clear_actions" }
func (i Meter) String() string        { return fmt.Sprintf("meter:%d", i.ID) }
func (i InstructionExperimenter) String() string {
	return fmt.Sprintf("experimenter:0x%08x:%x", i.Experimenter, i.Data)
}
func (i RawInstruction) String() string { return fmt.Sprintf("instruction_%d:%x", i.Type, i.Body) }

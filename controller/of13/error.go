package of13

import "fmt"

// Error is OFPT_ERROR: the peer could not do what a message with the same xid
// asked for (7.4.4). It is also a Go error.
type Error struct {
	Version uint8 // the header's version byte; 0 is written as 1.3's
	Type    ErrorType
	Code    ErrorCode // exp_type if Type is ErrTypeExperimenter
	// Experimenter is the experimenter id; on the wire only if Type is
	// ErrTypeExperimenter.
	Experimenter uint32
	// Data is the offending message or its first 64 bytes or more; for
	// ErrTypeHelloFailed a text.
	Data []byte
}

// Error is the error's name with what can be told from its data.
func (m *Error) Error() string {
	s := "switch answered " + m.Name()
	if m.Type == ErrTypeHelloFailed && len(m.Data) > 0 {
		return fmt.Sprintf("%s: %q", s, m.Data)
	}
	if len(m.Data) >= HeaderLen {
		return fmt.Sprintf("%s to %v xid 0x%x", s, MsgType(m.Data[1]), be.Uint32(m.Data[4:]))
	}
	return s
}

// Name is the specification's name of type and code, e.g.
// "OFPET_BAD_MATCH/OFPBMC_BAD_PREREQ".
func (m *Error) Name() string {
	if m.Type == ErrTypeExperimenter {
		return fmt.Sprintf("OFPET_EXPERIMENTER/0x%08x/%d", m.Experimenter, m.Code)
	}
	return errorName(m.Type, m.Code)
}

// Is makes errors.Is compare type and code only.
func (m *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Type == m.Type && t.Code == m.Code && t.Experimenter == m.Experimenter
}

// MsgType is TypeError.
func (m *Error) MsgType() MsgType { return TypeError }

func (m *Error) marshal(b []byte) ([]byte, error) {
	b = be.AppendUint16(b, uint16(m.Type))
	b = be.AppendUint16(b, uint16(m.Code))
	if m.Type == ErrTypeExperimenter {
		b = be.AppendUint32(b, m.Experimenter)
	} else if m.Experimenter != 0 {
		return b, fmt.Errorf("experimenter id 0x%x in an error of type %v", m.Experimenter, m.Type)
	}
	return append(b, m.Data...), nil
}

func (m *Error) unmarshal(r *reader) {
	m.Type, m.Code = ErrorType(r.u16()), ErrorCode(r.u16())
	if m.Type == ErrTypeExperimenter {
		m.Experimenter = r.u32()
	}
	m.Data = r.rest()
}

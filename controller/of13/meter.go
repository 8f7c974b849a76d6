package of13

import (
	"fmt"
	"strings"
)

// MeterCommand says what a meter-mod does (7.3.4.4, ofp_meter_mod_command).
type MeterCommand uint16

// Commands.
const (
	MeterAdd    MeterCommand = 0
	MeterModify MeterCommand = 1
	MeterDelete MeterCommand = 2 // with MeterAll: every meter, and every rule that names one
)

// String names the command.
func (c MeterCommand) String() string {
	return nameOf([]string{"ADD", "MODIFY", "DELETE"}, c, "COMMAND")
}

// MeterFlags say what the rates of a meter count (7.3.4.4, ofp_meter_flags).
// Exactly one of the first two must be set.
type MeterFlags uint16

// Flags.
const (
	MeterKbps  MeterFlags = 1 << 0 // rates are kilobits per second
	MeterPktps MeterFlags = 1 << 1 // rates are packets per second
	MeterBurst MeterFlags = 1 << 2 // the bands' Burst is in force
	MeterStat  MeterFlags = 1 << 3 // count what the meter sees
)

// String names the bits.
func (f MeterFlags) String() string {
	return flagNames([]string{"KBPS", "PKTPS", "BURST", "STATS"}, f)
}

// BandType says what a meter's band does with what is above its rate (7.3.4.4,
// ofp_meter_band_type).
type BandType uint16

// Band types.
const (
	BandDrop         BandType = 1
	BandDSCPRemark   BandType = 2
	BandExperimenter BandType = 0xffff
)

// String names the type.
func (t BandType) String() string {
	if t == BandExperimenter {
		return "experimenter"
	}
	return nameOf([]string{"", "drop", "dscp_remark"}, t, "band")
}

// MeterBand is one band of a meter, 16 bytes for the types of the
// specification (7.3.4.4).
type MeterBand struct {
	Type BandType
	// Rate is where the band begins, in the unit that the meter's flags give.
	// Open vSwitch refuses 0 (error 12/6), and lets through what is below.
	Rate uint32
	// Burst is kilobits or packets, in force with MeterBurst only. Without it
	// Open vSwitch tells the rate here when it is asked for the meter.
	Burst uint32
	// PrecLevel is how much the drop precedence in the DSCP field rises; on the
	// wire with BandDSCPRemark only.
	PrecLevel uint8
	// Experimenter is the experimenter id; on the wire with BandExperimenter
	// only.
	Experimenter uint32
	// Data is what follows in a band of another type than the first two; the
	// band's length must come out as a multiple of 8.
	Data []byte
}

// String is the band as ovs-ofctl writes it.
func (m MeterBand) String() string {
	s := fmt.Sprintf("type=%v rate=%d", m.Type, m.Rate)
	if m.Burst != 0 {
		s += fmt.Sprintf(" burst_size=%d", m.Burst)
	}
	switch m.Type {
	case BandDrop:
	case BandDSCPRemark:
		s += fmt.Sprintf(" prec_level=%d", m.PrecLevel)
	case BandExperimenter:
		s += fmt.Sprintf(" experimenter=0x%08x data=%x", m.Experimenter, m.Data)
	default:
		s += fmt.Sprintf(" data=%x", m.Data)
	}
	return s
}

// bandLen is the length of the specification's bands in bytes.
const bandLen = 16

func appendBands(b []byte, bands []MeterBand) ([]byte, error) {
	for i, d := range bands {
		start := len(b)
		b = be.AppendUint16(b, uint16(d.Type))
		b = be.AppendUint32(append(b, 0, 0), d.Rate)
		b = be.AppendUint32(b, d.Burst)
		if d.PrecLevel != 0 && d.Type != BandDSCPRemark {
			return b, fmt.Errorf("band %d: precedence level in a band of type %v", i, d.Type)
		}
		if d.Experimenter != 0 && d.Type != BandExperimenter {
			return b, fmt.Errorf("band %d: experimenter id in a band of type %v", i, d.Type)
		}
		if len(d.Data) > 0 && (d.Type == BandDrop || d.Type == BandDSCPRemark) {
			return b, fmt.Errorf("band %d: data in a band of type %v", i, d.Type)
		}
		switch d.Type {
		case BandDrop:
			b = appendPad(b, 4)
		case BandDSCPRemark:
			b = append(b, d.PrecLevel, 0, 0, 0)
		case BandExperimenter:
			b = be.AppendUint32(b, d.Experimenter)
		}
		b = append(b, d.Data...)
		if err := alignedLen(b, start); err != nil {
			return b, fmt.Errorf("band %d: %w", i, err)
		}
	}
	return b, nil
}

func readBands(r *reader) []MeterBand {
	var list []MeterBand
	for r.err == nil && len(r.b) > 0 {
		if len(r.b) < bandLen {
			r.fail(ErrTypeBadRequest, BadRequestBadLen, "%d bytes left where a meter band has at least %d", len(r.b), bandLen)
			break
		}
		t, n := BandType(r.u16()), int(r.u16())
		if n < bandLen || n%8 != 0 || n-4 > len(r.b) {
			r.fail(ErrTypeBadRequest, BadRequestBadLen, "meter band of type %v: length %d, with %d bytes left", t, n, len(r.b)+4)
			break
		}
		s := r.sub(n-4, ErrTypeBadRequest, BadRequestBadLen)
		d := MeterBand{Type: t, Rate: s.u32(), Burst: s.u32()}
		switch t {
		case BandDrop:
			s.pad(4)
		case BandDSCPRemark:
			d.PrecLevel = s.u8()
			s.pad(3)
		case BandExperimenter:
			d.Experimenter = s.u32()
			d.Data = s.rest()
		default:
			d.Data = s.rest()
		}
		r.join(s)
		list = append(list, d)
	}
	return list
}

func bandsString(bands []MeterBand) string {
	parts := make([]string, len(bands))
	for i, d := range bands {
		parts[i] = d.String()
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// MeterMod adds, changes or deletes a meter (7.3.4.4). A rule sends packets
// through it with the instruction [Meter].
type MeterMod struct {
	Command MeterCommand
	Flags   MeterFlags
	Meter   MeterID
	Bands   []MeterBand
}

// String is a one-line summary.
func (m *MeterMod) String() string {
	return fmt.Sprintf("METER_MOD %v meter %v flags %v %s", m.Command, m.Meter, m.Flags, bandsString(m.Bands))
}

// MsgType is TypeMeterMod.
func (m *MeterMod) MsgType() MsgType { return TypeMeterMod }

func (m *MeterMod) marshal(b []byte) ([]byte, error) {
	b = be.AppendUint16(b, uint16(m.Command))
	b = be.AppendUint16(b, uint16(m.Flags))
	b = be.AppendUint32(b, uint32(m.Meter))
	return appendBands(b, m.Bands)
}

func (m *MeterMod) unmarshal(r *reader) {
	m.Command, m.Flags, m.Meter = MeterCommand(r.u16()), MeterFlags(r.u16()), MeterID(r.u32())
	m.Bands = readBands(r)
}

// String is the number, or the reserved meter's name.
func (m MeterID) String() string {
	switch m {
	case MeterSlowpath:
		return "SLOWPATH"
	case MeterController:
		return "CONTROLLER"
	case MeterAll:
		return "ALL"
	}
	return fmt.Sprintf("%d", uint32(m))
}

// MeterRequest asks for the counters (7.3.5.11) or the configuration
// (7.3.5.12) of one meter, or of MeterAll.
type MeterRequest struct{ Meter MeterID }

// NewMeterRequest asks for MultipartMeter or MultipartMeterConfig of one
// meter, or of MeterAll.
func NewMeterRequest(t MultipartType, m MeterID) *MultipartRequest {
	return &MultipartRequest{Type: t, Body: &MeterRequest{m}}
}

func (q *MeterRequest) fits(t MultipartType, reply bool) bool {
	return !reply && (t == MultipartMeter || t == MultipartMeterConfig)
}

func (q *MeterRequest) appendBody(b []byte) ([]byte, error) {
	return appendPad(be.AppendUint32(b, uint32(q.Meter)), 4), nil
}

// BandStats counts what was above a band's rate.
type BandStats struct{ Packets, Bytes uint64 }

// MeterStats are the counters of one meter (7.3.5.11).
type MeterStats struct {
	Meter          MeterID
	Flows          uint32 // rules that name it
	Packets, Bytes uint64 // that came in
	Elapsed        Elapsed
	Bands          []BandStats // in the order of the meter's bands
}

// MeterStatsReply is the meters in one part of the answer (7.3.5.11).
type MeterStatsReply []MeterStats

func (l MeterStatsReply) fits(t MultipartType, reply bool) bool { return reply && t == MultipartMeter }

func (l MeterStatsReply) appendBody(b []byte) ([]byte, error) {
	for _, s := range l {
		start := len(b)
		b = be.AppendUint32(b, uint32(s.Meter))
		b = appendPad(b, 8) // length and padding
		b = be.AppendUint32(b, s.Flows)
		b = be.AppendUint64(be.AppendUint64(b, s.Packets), s.Bytes)
		b = appendElapsed(b, s.Elapsed)
		for _, d := range s.Bands {
			b = be.AppendUint64(be.AppendUint64(b, d.Packets), d.Bytes)
		}
		if err := putLen16(b[start+4:], len(b)-start); err != nil {
			return b, fmt.Errorf("meter %v: %w", s.Meter, err)
		}
	}
	return b, nil
}

func readMeterStats(r *reader) MeterStatsReply {
	var list MeterStatsReply
	for r.err == nil && len(r.b) > 0 {
		m, n := MeterStats{Meter: MeterID(r.u32())}, int(r.u16())
		s := r.sub(n-6, ErrTypeBadRequest, BadRequestBadLen)
		s.pad(6)
		m.Flows, m.Packets, m.Bytes, m.Elapsed = s.u32(), s.u64(), s.u64(), s.elapsed()
		for s.err == nil && len(s.b) > 0 {
			m.Bands = append(m.Bands, BandStats{s.u64(), s.u64()})
		}
		r.join(s)
		list = append(list, m)
	}
	return list
}

// MeterConfig is a meter as it was set up (7.3.5.12).
type MeterConfig struct {
	Meter MeterID
	Flags MeterFlags
	Bands []MeterBand
}

// MeterConfigReply is the meters in one part of the answer (7.3.5.12).
type MeterConfigReply []MeterConfig

func (l MeterConfigReply) fits(t MultipartType, reply bool) bool {
	return reply && t == MultipartMeterConfig
}

func (l MeterConfigReply) appendBody(b []byte) ([]byte, error) {
	for _, c := range l {
		start := len(b)
		b = be.AppendUint16(append(b, 0, 0), uint16(c.Flags))
		b = be.AppendUint32(b, uint32(c.Meter))
		var err error
		if b, err = appendBands(b, c.Bands); err == nil {
			err = putLen16(b[start:], len(b)-start)
		}
		if err != nil {
			return b, fmt.Errorf("meter %v: %w", c.Meter, err)
		}
	}
	return b, nil
}

func readMeterConfigs(r *reader) MeterConfigReply {
	var list MeterConfigReply
	for r.err == nil && len(r.b) > 0 {
		s := r.sub(int(r.u16())-2, ErrTypeBadRequest, BadRequestBadLen)
		c := MeterConfig{Flags: MeterFlags(s.u16()), Meter: MeterID(s.u32())}
		c.Bands = readBands(s)
		r.join(s)
		list = append(list, c)
	}
	return list
}

// MeterFeatures is what the switch can do with meters (7.3.5.13).
type MeterFeatures struct {
	MaxMeter     uint32 // number of meters; 0: it has none
	BandTypes    uint32 // bit n: bands of type n
	Capabilities uint32 // MeterFlags that it knows
	MaxBands     uint8  // per meter
	MaxColor     uint8
}

func (d *MeterFeatures) fits(t MultipartType, reply bool) bool {
	return reply && t == MultipartMeterFeatures
}

func (d *MeterFeatures) appendBody(b []byte) ([]byte, error) {
	b = be.AppendUint32(b, d.MaxMeter)
	b = be.AppendUint32(b, d.BandTypes)
	b = be.AppendUint32(b, d.Capabilities)
	return append(b, d.MaxBands, d.MaxColor, 0, 0), nil
}

func (d *MeterFeatures) read(r *reader) {
	d.MaxMeter, d.BandTypes, d.Capabilities = r.u32(), r.u32(), r.u32()
	d.MaxBands, d.MaxColor = r.u8(), r.u8()
	r.pad(2)
}

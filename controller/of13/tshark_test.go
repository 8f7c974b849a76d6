package of13

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/e2e/need"
)

// tsharkDisagrees lists the samples and flow texts in which tshark 4.0 is known to see
// something else than we do, with the reason.
var tsharkDisagrees = map[string]string{
	"refused-meter-experimenter-band":    "it takes the band's length for that of its body and reads past the end; the band is 16 bytes (7.3.4.4)",
	"tcp,tp_dst=0x1000/0xf000,actions=1": "it leaves out the mask of a field that takes none (7.2.3.7); Open vSwitch takes one",
}

// TestTsharkReadsTheSame holds every sample against tshark, field by field:
// the same names in the same order with the same values, and the same bytes
// taken for padding. What is opaque to us may be opaque to it, and bodies that
// we keep raw are not looked into.
func TestTsharkReadsTheSame(t *testing.T) {
	var names []string
	var msgs [][]byte
	for _, s := range samples() {
		b, err := Append(nil, s.msg, sampleXID)
		if err != nil {
			t.Fatal(err)
		}
		names, msgs = append(names, s.name), append(msgs, b)
	}
	againstTshark(t, names, msgs)
}

// againstTshark compares how each message reads.
func againstTshark(t *testing.T, names []string, msgs [][]byte) {
	t.Helper()
	for i, got := range tshark(t, msgs) {
		t.Run(names[i], func(t *testing.T) {
			var pads []span
			m, xid, err := parse(bytes.Clone(msgs[i]), &pads)
			if err != nil {
				t.Fatal(err)
			}
			w := &tsharkFields{}
			w.message(m, len(msgs[i]), xid)
			if w.opaque { // what comes before the raw bytes
				got.fields = got.fields[:min(len(w.fields), len(got.fields))]
			}
			diff := cmp.Diff(w.fields, got.fields)
			if p := cmp.Diff(joined(outside(pads, got.text)), joined(got.pads)); p != "" && !w.opaque {
				diff += "padding:\n" + p
			}
			if got.malformed {
				diff += "tshark calls it malformed"
			}
			switch why, known := tsharkDisagrees[names[i]]; {
			case diff != "" && !known:
				t.Errorf("tshark reads something else (-ours +tshark):\n%s", diff)
			case diff == "" && known:
				t.Errorf("tshark reads the same now, and is said not to because %s", why)
			}
		})
	}
}

// joined writes spans, in the order of the bytes, those that touch as one.
func joined(spans []span) string {
	var out []span
	for _, s := range spans {
		if n := len(out); n > 0 && out[n-1].to == s.from {
			out[n-1].to = s.to
			continue
		}
		out = append(out, s)
	}
	return fmt.Sprint(out)
}

// outside is the padding that is not the end of a text.
func outside(pads, text []span) (out []span) {
	for _, p := range pads {
		inside := false
		for _, s := range text {
			inside = inside || s.from <= p.from && p.to <= s.to
		}
		if !inside {
			out = append(out, p)
		}
	}
	return out
}

// tsharkRead is what tshark says of one message.
type tsharkRead struct {
	fields    []string // name=hex, in the order of the bytes
	pads      []span
	text      []span // fixed-size texts
	malformed bool
}

// tshark has the messages dissected, each as a packet of its own.
func tshark(t *testing.T, msgs [][]byte) []tsharkRead {
	t.Helper()
	path := need.Program(t, "tshark", "tshark")
	// A capture file of link type USER0, whose payload tshark is told to be
	// OpenFlow.
	const user0 = 147
	le := binary.LittleEndian
	var file []byte
	for _, v := range []uint32{0xa1b2c3d4, 4<<16 | 2, 0, 0, 1 << 18, user0} {
		file = le.AppendUint32(file, v)
	}
	for _, m := range msgs {
		for _, v := range []uint32{0, 0, uint32(len(m)), uint32(len(m))} {
			file = le.AppendUint32(file, v)
		}
		file = append(file, m...)
	}
	name := filepath.Join(t.TempDir(), "messages.pcap")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(path, "-n", "-o", `uat:user_dlts:"User 0 (DLT=147)","openflow","0","","0",""`, "-r", name, "-T", "pdml")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v: %s", err, stderr.Bytes())
	}
	read := parsePDML(t, out)
	if len(read) != len(msgs) {
		t.Fatalf("tshark read %d messages of %d", len(read), len(msgs))
	}
	return read
}

// pdmlNode is an element of PDML, tshark's XML.
type pdmlNode struct {
	XMLName  xml.Name
	Name     string     `xml:"name,attr"`
	Pos      int        `xml:"pos,attr"`
	Size     int        `xml:"size,attr"`
	Value    string     `xml:"value,attr"`
	Unmasked string     `xml:"unmaskedvalue,attr"`
	Nodes    []pdmlNode `xml:",any"`
}

func parsePDML(t *testing.T, out []byte) []tsharkRead {
	t.Helper()
	var doc struct {
		Packets []struct {
			Protos []pdmlNode `xml:"proto"`
		} `xml:"packet"`
	}
	if err := xml.NewDecoder(bytes.NewReader(out)).Decode(&doc); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	read := make([]tsharkRead, len(doc.Packets))
	for i, p := range doc.Packets {
		for _, proto := range p.Protos {
			read[i].malformed = read[i].malformed || proto.Name == "_ws.malformed"
			if strings.HasPrefix(proto.Name, "openflow_v") {
				read[i].walk(proto.Nodes)
			}
		}
	}
	return read
}

// walk collects leaves. What lies below a field of OpenFlow's is its bits, or
// a packet inside the message.
func (r *tsharkRead) walk(nodes []pdmlNode) {
	last := -1
	for _, n := range nodes {
		_, name, ours := strings.Cut(n.Name, ".")
		switch {
		case n.Name == "":
			r.walk(n.Nodes)
			continue
		case !ours || !strings.HasPrefix(n.Name, "openflow_v") || n.Size == 0 || n.Value == "" && n.Unmasked == "":
			continue
		case n.Pos == last: // further bits of the same bytes
			continue
		}
		last = n.Pos
		at := span{n.Pos, n.Pos + n.Size}
		if base := name[strings.LastIndex(name, ".")+1:]; strings.HasPrefix(base, "pad") {
			r.pads = append(r.pads, at)
			continue
		}
		value := n.Value
		if n.Unmasked != "" {
			value = n.Unmasked
		}
		if strings.HasPrefix(name, "oxm.value") {
			name = "oxm.value"
		}
		if strings.HasPrefix(name, "oxm.") && strings.HasSuffix(name, "mask") {
			name = "oxm.mask"
		}
		if strings.HasSuffix(name, "name") || strings.HasSuffix(name, "_desc") || strings.HasSuffix(name, "serial_num") {
			r.text = append(r.text, at)
		}
		r.fields = append(r.fields, name+"="+value)
	}
}

// tsharkFields lists what we read in a message under tshark's names.
type tsharkFields struct {
	fields []string
	opaque bool // some of it is kept raw
}

// add notes a number of 1, 2, 4 or 8 bytes, or bytes.
func (w *tsharkFields) add(name string, v any) {
	var digits string
	switch x := reflect.ValueOf(v); x.Kind() {
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		digits = fmt.Sprintf("%0*x", 2*int(x.Type().Size()), x.Uint())
	case reflect.Int64: // a timeout
		digits = fmt.Sprintf("%04x", x.Int()/int64(time.Second))
	default:
		digits = fmt.Sprintf("%x", v)
	}
	if digits != "" {
		w.fields = append(w.fields, name+"="+digits)
	}
}

// group notes several fields of one structure.
func (w *tsharkFields) group(prefix string, namesAndValues ...any) {
	for i := 0; i < len(namesAndValues); i += 2 {
		w.add(prefix+"."+namesAndValues[i].(string), namesAndValues[i+1])
	}
}

func (w *tsharkFields) text(name, s string, n int) {
	w.add(name, []byte(s+strings.Repeat("\x00", n-len(s))))
}

func (w *tsharkFields) message(m Message, size int, xid uint32) {
	version := uint8(Version)
	if h, ok := m.(*Hello); ok {
		version = h.Version
	}
	w.add("version", version)
	w.add("type", m.MsgType())
	w.add("length", uint16(size))
	w.add("xid", xid)
	switch m := m.(type) {
	case *Hello:
		for _, e := range m.Elements {
			w.group("hello_element", "type", e.Type, "length", uint16(4+len(e.Data)))
			if e.Type == helloVersionBitmap {
				w.add("hello_element.version.bitmap", e.Data)
			}
		}
	case *Error:
		w.group("error", "type", m.Type, "code", m.Code)
		switch m.Type {
		case ErrTypeExperimenter:
			w.add("error.experimenter", m.Experimenter)
		case ErrTypeHelloFailed:
			w.add("error.data", m.Data)
		}
	case *EchoRequest:
		w.add("echo.data", m.Data)
	case *EchoReply:
		w.add("echo.data", m.Data)
	case *Experimenter:
		w.group("experimenter", "experimenter", m.Experimenter, "exp_type", m.ExpType)
	case *FeaturesReply:
		w.group("switch_features", "datapath_id", m.DatapathID, "n_buffers", m.Buffers, "n_tables", m.Tables,
			"auxiliary_id", m.AuxiliaryID, "capabilities", m.Capabilities)
		w.add("switch_features_reserved", m.Reserved)
	case *GetConfigReply:
		w.config(m.SwitchConfig)
	case *SetConfig:
		w.config(m.SwitchConfig)
	case *PacketIn:
		w.group("packet_in", "buffer_id", m.BufferID, "total_len", m.TotalLen, "reason", m.Reason, "table_id", m.TableID, "cookie", m.Cookie)
		match, _ := m.Match()
		w.match(match)
	case *FlowRemoved:
		w.group("flow_removed", "cookie", m.Cookie, "priority", m.Priority, "reason", m.Reason, "table_id", m.TableID,
			"duration_sec", m.Elapsed.Sec, "duration_nsec", m.Elapsed.Nsec, "idle_timeout", m.IdleTimeout,
			"hard_timeout", m.HardTimeout, "packet_count", m.Packets, "byte_count", m.Bytes)
		w.match(m.Match)
	case *PortStatus:
		w.add("port_status.reason", m.Reason)
		w.port(m.Port)
	case *PacketOut:
		acts, _ := AppendActions(nil, m.Actions)
		w.group("packet_out", "buffer_id", m.BufferID, "in_port", m.InPort, "acts_len", uint16(len(acts)))
		w.actions(m.Actions)
	case *FlowMod:
		w.group("flowmod", "cookie", m.Cookie, "cookie_mask", m.CookieMask, "table_id", m.TableID, "command", m.Command,
			"idle_timeout", m.IdleTimeout, "hard_timeout", m.HardTimeout, "priority", m.Priority, "buffer_id", m.BufferID,
			"out_port", m.OutPort, "out_group", m.OutGroup, "flags", m.Flags)
		w.match(m.Match)
		w.instructions(m.Instructions)
	case *RoleRequest:
		w.group("role_request", "role", m.Role, "generation_id", m.GenerationID)
	case *RoleReply:
		w.group("role_reply", "role", m.Role, "generation_id", m.GenerationID)
	case *GetAsyncReply:
		w.async(m.AsyncConfig)
	case *SetAsync:
		w.async(m.AsyncConfig)
	case *MeterMod:
		w.group("metermod", "command", m.Command, "flags", m.Flags, "meter_id", m.Meter)
		w.bands(m.Bands)
	case *MultipartRequest:
		w.group("multipart_request", "type", m.Type, "flags", m.Flags)
		w.body(m.Type, m.Body)
	case *MultipartReply:
		w.group("multipart_reply", "type", m.Type, "flags", m.Flags)
		w.body(m.Type, m.Body)
	case *Raw:
		w.opaque = true
	}
}

func (w *tsharkFields) config(c SwitchConfig) {
	w.group("switch_config", "flags", c.Flags, "miss_send_len", c.MissSendLen)
}

func (w *tsharkFields) async(c AsyncConfig) {
	w.group("async_config", "packet_in_mask.master", c.PacketIn.Master, "packet_in_mask.slave", c.PacketIn.Slave,
		"port_status_mask.master", c.PortStatus.Master, "port_status_mask.slave", c.PortStatus.Slave,
		"flow_removed_mask.master", c.FlowRemoved.Master, "flow_removed_mask.slave", c.FlowRemoved.Slave)
}

func (w *tsharkFields) port(p Port) {
	w.group("port", "port_no", p.No, "hw_addr", p.HWAddr)
	w.text("port.name", p.Name, 16)
	w.group("port", "config", p.Config, "sate", p.State, "current", p.Curr, "advertised", p.Advertised, // "sate": tshark's word
		"supported", p.Supported, "peer", p.Peer, "curr_speed", p.CurrSpeed, "max_speed", p.MaxSpeed)
}

func (w *tsharkFields) bands(bands []MeterBand) {
	for _, d := range bands {
		w.group("meter_band", "type", d.Type, "length", uint16(bandLen+len(d.Data)), "rate", d.Rate, "burst_size", d.Burst)
		switch d.Type {
		case BandDSCPRemark:
			w.add("meter_band.dscp_remark.prec_level", d.PrecLevel)
		case BandExperimenter:
			w.add("meter_band.experimenter.experimenter", d.Experimenter)
		}
	}
}

func (w *tsharkFields) match(m Match) {
	n := uint16(4)
	for _, o := range m {
		n += uint16(o.wireLen())
	}
	w.group("match", "type", uint16(1), "length", n)
	for _, o := range m {
		w.oxm(o)
	}
}

func (w *tsharkFields) oxm(o OXM) {
	head := uint8(o.Field) << 1
	if o.HasMask {
		head |= 1
	}
	w.group("oxm", "class", o.Class, "field", head, "length", uint8(o.wireLen()-4))
	switch o.Class {
	case ClassExperimenter:
		w.group("oxm_experimenter", "experimenter", o.Experimenter, "value", append(bytes.Clone(o.Value), o.Mask...))
	case ClassBasic:
		w.add("oxm.value", o.Value)
		w.add("oxm.mask", o.Mask)
	}
}

func (w *tsharkFields) instructions(list []Instruction) {
	for _, i := range list {
		b, _ := i.appendInstruction(nil)
		w.group("instruction", "type", i.instrType(), "length", uint16(len(b)))
		switch i := i.(type) {
		case GotoTable:
			w.add("instruction.goto_table.table_id", i.Table)
		case WriteMetadata:
			w.group("instruction.write_metadata", "value", i.Metadata, "mask", i.Mask)
		case WriteActions:
			w.actions(i.Actions)
		case ApplyActions:
			w.actions(i.Actions)
		case Meter:
			w.add("instruction.meter.meter_id", i.ID)
		case InstructionExperimenter:
			w.add("instruction_experimenter.experimenter", i.Experimenter)
		}
	}
}

func (w *tsharkFields) actions(list []Action) {
	for _, a := range list {
		b, _ := a.appendAction(nil)
		w.group("action", "type", b[:2], "length", uint16(len(b)))
		switch a := a.(type) {
		case Output:
			w.group("action.output", "port", a.Port, "max_len", a.MaxLen)
		case Group:
			w.add("action.group.group_id", a.ID)
		case SetQueue:
			w.add("action.set_queue.queue_id", a.Queue)
		case SetMPLSTTL:
			w.add("action.set_mpls_ttl.ttl", a.TTL)
		case PushVLAN:
			w.add("action.push_vlan.ethertype", a.EthType)
		case PushMPLS:
			w.add("action.push_mpls.ethertype", a.EthType)
		case PopMPLS:
			w.add("action.pop_mpls.ethertype", a.EthType)
		case PushPBB:
			w.add("action.push_pbb.ethertype", a.EthType)
		case SetNWTTL:
			w.add("action.set_nw_ttl.ttl", a.TTL)
		case SetField:
			w.oxm(a.OXM)
		case ActionExperimenter:
			w.add("action_experimenter.experimenter", a.Experimenter)
		}
	}
}

func (w *tsharkFields) body(t MultipartType, body MultipartBody) {
	switch d := body.(type) {
	case RawBody:
		w.opaque = true
	case *FlowStatsRequest:
		prefix := map[MultipartType]string{MultipartFlow: "flow_stats_request", MultipartAggregate: "aggregate_stats_request"}[t]
		w.group(prefix, "table_id", d.TableID, "out_port", d.OutPort, "out_group", d.OutGroup, "cookie", d.Cookie, "cookie_mask", d.CookieMask)
		w.match(d.Match)
	case *DescReply:
		w.text("switch_description.mfr_desc", d.Manufacturer, 256)
		w.text("switch_description.hw_desc", d.Hardware, 256)
		w.text("switch_description.sw_desc", d.Software, 256)
		w.text("switch_description.serial_num", d.SerialNumber, 32)
		w.text("switch_description.dp_desc", d.Datapath, 256)
	case FlowStatsReply:
		for _, s := range d {
			b, _ := s.append(nil)
			w.group("flow_stats", "length", uint16(len(b)), "table_id", s.TableID, "duration_sec", s.Elapsed.Sec,
				"duration_nsec", s.Elapsed.Nsec, "priority", s.Priority, "idle_timeout", s.IdleTimeout,
				"hard_timeout", s.HardTimeout, "flags", s.Flags, "cookie", s.Cookie, "packet_count", s.Packets, "byte_count", s.Bytes)
			w.match(s.Match)
			w.instructions(s.Instructions)
		}
	case *AggregateReply:
		w.group("aggregate_stats", "packet_count", d.Packets, "byte_count", d.Bytes, "flow_count", d.Flows)
	case TableStatsReply:
		for _, s := range d {
			w.group("table_stats", "table_id", s.TableID, "active_count", s.Active, "lookup_count", s.Lookups, "match_count", s.Matched)
		}
	case *PortStatsRequest:
		w.add("port_stats_request.port_no", d.Port)
	case PortStatsReply:
		for _, s := range d {
			w.group("port_stats", "port_no", s.Port, "rx_packets", s.RxPackets, "tx_packets", s.TxPackets, "rx_bytes", s.RxBytes,
				"tx_bytes", s.TxBytes, "rx_dropped", s.RxDropped, "tx_dropped", s.TxDropped, "rx_errors", s.RxErrors,
				"tx_errors", s.TxErrors, "rx_frame_error", s.RxFrameErr, "rx_over_error", s.RxOverErr,
				"rx_crc_error", s.RxCRCErr, "collisions", s.Collisions, "duration_sec", s.Elapsed.Sec, "duration_nsec", s.Elapsed.Nsec)
		}
	case PortDescReply:
		for _, p := range d {
			w.port(p)
		}
	case *MeterRequest:
		prefix := map[MultipartType]string{MultipartMeter: "meter_stats_request", MultipartMeterConfig: "meter_config_request"}[t]
		w.add(prefix+".meter_id", d.Meter)
	case MeterStatsReply:
		for _, s := range d {
			w.group("meter_stats", "meter_id", s.Meter, "length", uint16(40+16*len(s.Bands)), "flow_count", s.Flows,
				"packet_in_count", s.Packets, "byte_in_count", s.Bytes, "duration_sec", s.Elapsed.Sec, "duration_nsec", s.Elapsed.Nsec)
			for _, b := range s.Bands {
				w.group("meter_band_stats", "packet_band_count", b.Packets, "byte_band_count", b.Bytes)
			}
		}
	case MeterConfigReply:
		for _, c := range d {
			w.group("meter_config", "len", uint16(8+bandLen*len(c.Bands)), "flags", c.Flags, "meter_id", c.Meter)
			w.bands(c.Bands)
		}
	case *MeterFeatures:
		w.add("meter_features.max_meter", d.MaxMeter)
		w.add("features.band_types", d.BandTypes)
		w.group("meter_features", "capabilities", d.Capabilities, "max_bands", d.MaxBands, "max_color", d.MaxColor)
	}
}

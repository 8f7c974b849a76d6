package flowrules

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"netsplit/controller/of13"
	"netsplit/model"
)

// MAC is an Ethernet address.
type MAC [6]byte

// String is the address in lower-case hex with colons.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// group is the I/G bit: broadcast and multicast destinations have it set.
var group = MAC{0x01}

// allOnes is the mask of an exact match, and the broadcast address.
var allOnes = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// Host is one host on a port of the switch, or behind another switch.
type Host struct {
	Name model.NodeID
	Port uint32 // on its own switch
	MAC  MAC
	IP   netip.Addr // IPv4
	// Via is the trunk port that leads to the host, Tree the trunk port on which its
	// broadcasts arrive. Both are 0 for a host on a port of this switch.
	Via, Tree uint32
}

func (h Host) far() bool { return h.Via != 0 }

// out is the port of this switch by which the host is reached.
func (h Host) out() uint32 {
	if h.far() {
		return h.Via
	}
	return h.Port
}

// Pair is two hosts; both directions are meant.
type Pair struct{ A, B model.NodeID }

// Desired is a partition that the rules must implement.
type Desired struct {
	ID        uint32 // 1 or more; unique among those of an Input
	Partition model.Partition
	// Behind: the gate drops the packets of gated pairs. Their drop rules are in the table
	// behind it, for when the gate's rules expire. Other pairs are cut as usual.
	Behind bool
	// Lifted: the partition has no drop rules any more, but its meters stay turned down.
	Lifted bool
}

// Input is what the rules of one switch depend on.
type Input struct {
	Lab       uint16 // goes into the cookies, see LabID
	Hosts     []Host
	Elsewhere []model.NodeID // hosts of the testbed that no link leads to
	// Trunks are the ports towards other switches; broadcasts go by those of
	// Tree, which is loop-free: see Routes.
	Trunks, Tree []uint32
	Partitions   []Desired
	Gate         []Pair
	Mirror       []Pair
	MirrorPort   uint32 // where copies go; required with Mirror
	// Changes counts, by host, how often what it may send changed. If its count differs from
	// the last Input, the switch gets another KindFresh rule.
	Changes map[model.NodeID]int
	// GatePort is a port from which held packets come back; 0: none. With one, the ports of
	// hosts must not exceed model.MaxGatedPort.
	GatePort uint32
	// ByPort has held packets go to GatePort, not to the controller.
	ByPort bool
	// TopMeter is the highest meter number; 0: no meters. Meters are numbered from there
	// down, one for each link from a host of this switch: see MetersFor.
	TopMeter uint32
	// HardTimeout is the life of gate and drop rules; whole seconds, 1 to 65535.
	HardTimeout time.Duration
}

// Plan is the sorted list of rules a switch should hold.
type Plan struct {
	Lab    uint16
	Rules  []Rule
	Meters []Meter // by falling number
}

// Rule is one flow entry (OpenFlow 1.3 §5.2).
type Rule struct {
	Kind        Kind
	Table       uint8
	Priority    uint16
	Match       Match
	Do          Do
	Cookie      Cookie
	HardTimeout uint16 // seconds; 0 none
	// Link is the directed pair the rule is about; zero if it is about none.
	Link model.Link
	// Only is the traffic that a drop rule is about; zero: all of the pair.
	Only model.Traffic
}

// Match is what a rule matches. The zero value of a field means any.
type Match struct {
	InPort     uint32
	Metadata   uint64
	VLAN       uint16 // id of the outermost tag
	EthSrc     MAC    // under EthSrcMask
	EthSrcMask MAC
	EthDst     MAC // under EthDstMask
	EthDstMask MAC
	EthType    uint16
	ARPTarget  netip.Addr // arp_tpa; needs EthType 0x0806
	IPProto    uint8      // needs EthType 0x0800 or 0x86dd
	SrcPort    uint16     // needs IPProto 6 or 17
	DstPort    uint16     // the same
	Opening    bool       // TCP with SYN, without ACK; needs IPProto 6
	ICMPv6     uint8      // type; needs IPProto 58
}

// Do is what a rule does. The zero value drops.
type Do struct {
	Meter    uint32   // measures it first, if not 0
	Metadata uint64   // written if not 0
	Pop      bool     // takes the outermost VLAN tag off, before Output
	Output   []uint32 // ports, in order
	Push     uint16   // then puts a tag with this VLAN id on top, if not 0,
	PushTo   uint32   // and sends that out of this port
	Goto     uint8    // next table if not 0
}

// Tables of the pipeline.
const (
	TableAdmit   uint8 = 0
	TablePolicy  uint8 = 1
	TableForward uint8 = 2
)

// Priorities inside the tables; see the table in the package comment.
const (
	// Table 0.
	prioFromGate       uint16 = 400
	prioFromController uint16 = 300
	prioFresh          uint16 = 210
	prioFromHost       uint16 = 200
	// TablePolicy.
	prioReset     uint16 = 410
	prioDrop      uint16 = 400
	prioDropSome  uint16 = 390
	prioGate      uint16 = 300
	prioMirror    uint16 = 100
	prioMeter     uint16 = 80
	prioFloodSome uint16 = 60 // plus 1 for a port or neighbour discovery, plus 2 for two ports
	prioFlood     uint16 = 50
	prioDefault   uint16 = 0
	// TableForward.
	prioGuard     uint16 = 300
	prioGuardSome uint16 = 290
	prioUnicast   uint16 = 200
	prioGroup     uint16 = 100
)

const (
	portInPort     uint32 = 0xfffffff8 // OFPP_IN_PORT
	portController uint32 = 0xfffffffd // OFPP_CONTROLLER
	portMax        uint32 = 0xffffff00 // OFPP_MAX
	etherTypeARP   uint16 = 0x0806
)

// GateFence is the VLAN id of packets that the switch returns to the gate port; see the
// package comment.
const GateFence uint16 = 4094

// String is the match in the syntax of ovs-ofctl.
func (m Match) String() string {
	var p []string
	if m.InPort != 0 {
		p = append(p, "in_port="+portName(m.InPort))
	}
	if m.Metadata != 0 {
		p = append(p, fmt.Sprintf("metadata=%#x", m.Metadata))
	}
	if m.VLAN != 0 {
		p = append(p, fmt.Sprintf("dl_vlan=%d", m.VLAN))
	}
	if m.EthSrcMask != (MAC{}) {
		p = append(p, fmt.Sprintf("dl_src=%s/%s", m.EthSrc, m.EthSrcMask))
	}
	switch m.EthDstMask {
	case MAC{}:
	case allOnes:
		p = append(p, "dl_dst="+m.EthDst.String())
	default:
		p = append(p, fmt.Sprintf("dl_dst=%s/%s", m.EthDst, m.EthDstMask))
	}
	if m.EthType != 0 {
		p = append(p, fmt.Sprintf("dl_type=%#04x", m.EthType))
	}
	if m.ARPTarget.IsValid() {
		p = append(p, "arp_tpa="+m.ARPTarget.String())
	}
	if m.IPProto != 0 {
		p = append(p, fmt.Sprintf("nw_proto=%d", m.IPProto))
	}
	if m.SrcPort != 0 {
		p = append(p, fmt.Sprintf("tp_src=%d", m.SrcPort))
	}
	if m.DstPort != 0 {
		p = append(p, fmt.Sprintf("tp_dst=%d", m.DstPort))
	}
	if m.Opening {
		p = append(p, "tcp_flags=+syn-ack")
	}
	if m.ICMPv6 != 0 {
		p = append(p, fmt.Sprintf("icmp_type=%d", m.ICMPv6))
	}
	return strings.Join(p, ",")
}

// String is the action list in the syntax of ovs-ofctl.
func (d Do) String() string {
	var p []string
	if d.Meter != 0 {
		p = append(p, fmt.Sprintf("meter:%d", d.Meter))
	}
	if d.Metadata != 0 {
		p = append(p, fmt.Sprintf("write_metadata:%#x", d.Metadata))
	}
	if d.Pop {
		p = append(p, "pop_vlan")
	}
	for _, o := range d.Output {
		p = append(p, "output:"+portName(o))
	}
	if d.Push != 0 {
		p = append(p, "push_vlan:0x8100", fmt.Sprintf("set_field:%d->vlan_vid", of13.VLANPresent|d.Push), "output:"+portName(d.PushTo))
	}
	if d.Goto != 0 {
		p = append(p, fmt.Sprintf("goto_table:%d", d.Goto))
	}
	if len(p) == 0 {
		return "drop"
	}
	return strings.Join(p, ",")
}

// String is the rule on one line in the syntax of ovs-ofctl.
func (r Rule) String() string {
	s := fmt.Sprintf("table=%d,priority=%d", r.Table, r.Priority)
	if m := r.Match.String(); m != "" {
		s += "," + m
	}
	if r.HardTimeout != 0 {
		s += fmt.Sprintf(",hard_timeout=%d", r.HardTimeout)
	}
	return s + " actions=" + r.Do.String()
}

// String is the plan, one meter or rule per line.
func (p Plan) String() string {
	var b strings.Builder
	for _, m := range p.Meters {
		b.WriteString(m.String() + "\n")
	}
	for _, r := range p.Rules {
		b.WriteString(r.String() + "\n")
	}
	return b.String()
}

func portName(n uint32) string {
	switch n {
	case portController:
		return "CONTROLLER"
	case portInPort:
		return "IN_PORT"
	}
	return fmt.Sprint(n)
}

func (p *Plan) sort() {
	slices.SortStableFunc(p.Rules, compareRules)
}

// compareRules orders by table, falling priority, then match.
func compareRules(a, b Rule) int {
	if a.Table != b.Table {
		return int(a.Table) - int(b.Table)
	}
	if a.Priority != b.Priority {
		return int(b.Priority) - int(a.Priority)
	}
	return a.Match.compare(b.Match)
}

func (m Match) compare(o Match) int {
	if m.InPort != o.InPort {
		if m.InPort < o.InPort {
			return -1
		}
		return 1
	}
	if m.Metadata != o.Metadata {
		if m.Metadata < o.Metadata {
			return -1
		}
		return 1
	}
	if m.VLAN != o.VLAN {
		return int(m.VLAN) - int(o.VLAN)
	}
	if c := cmp.Or(slices.Compare(m.EthSrc[:], o.EthSrc[:]), slices.Compare(m.EthSrcMask[:], o.EthSrcMask[:])); c != 0 {
		return c
	}
	if c := slices.Compare(m.EthDst[:], o.EthDst[:]); c != 0 {
		return c
	}
	if c := slices.Compare(m.EthDstMask[:], o.EthDstMask[:]); c != 0 {
		return c
	}
	if m.EthType != o.EthType {
		return int(m.EthType) - int(o.EthType)
	}
	if c := m.ARPTarget.Compare(o.ARPTarget); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(m.IPProto, o.IPProto), cmp.Compare(m.SrcPort, o.SrcPort), cmp.Compare(m.DstPort, o.DstPort),
		cmp.Compare(m.ICMPv6, o.ICMPv6), model.FalseFirst(m.Opening, o.Opening))
}

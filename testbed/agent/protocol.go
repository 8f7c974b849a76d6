package agent

import (
	"net"
	"net/netip"
	"time"

	"netsplit/flowrules/hostrules"
	"netsplit/model"
)

// Sender is a host whose packets are counted: by its addresses, or by its
// hardware address where that arrives unchanged. Only, when set, counts no other
// traffic, and Like nothing but what goes by the same rules as that probe packet. Released
// is what a gate let go of its packets from Edge before the requested time to Edge after
// it, but for the time itself: that is none of it, whenever it seems to have arrived.
type Sender struct {
	Addrs []netip.Addr
	MAC   net.HardwareAddr
	Only  []model.Traffic
	Like  *model.ProbePacket

	Released []Released
}

// ProtocolVersion is told in the hello; both sides are one program, but a
// testbed's exec prefix may lead to an older copy of it.
const ProtocolVersion = 8

// Operations of a request.
const (
	opProbe    = "probe"
	opCount    = "count"
	opFirst    = "first"
	opEmit     = "emit"
	opClock    = "clock"
	opLinks    = "links"
	opArrivals = "arrivals"
	opPorts    = "ports"
	// Rules by which the host itself drops packets.
	opFilter  = "filter"
	opRenew   = "renew"
	opDropped = "dropped"
)

// request is one line to the agent.
type request struct {
	ID     uint64    `json:"id"` // from 1, rising in the order of the calls
	Op     string    `json:"op"`
	Probe  *probe    `json:"probe,omitempty"`
	Query  *netQuery `json:"query,omitempty"`
	Emit   *emission `json:"emit,omitempty"`
	Filter *filter   `json:"filter,omitempty"`
	// Digests is what opArrivals asks for.
	Digests *digestQuery `json:"digests,omitempty"`
	// Ports is what opPorts asks for.
	Ports []ServicePort `json:"ports,omitempty"`
}

// filter is what the host is to drop, for opFilter, and how long, for opRenew too.
type filter struct {
	Table string           `json:"table,omitempty"`
	Addr  netip.Addr       `json:"addr,omitzero"` // of the host, on the device that is filtered
	Rules []hostrules.Rule `json:"rules,omitempty"`
	Lease time.Duration    `json:"lease_ns"`
}

// emission is what is to be sent to one host.
type emission struct {
	From         netip.Addr          `json:"from"` // the sender's, if the way to the other begins at its interface
	To           netip.Addr          `json:"to"`
	MAC          net.HardwareAddr    `json:"mac"`
	ProbePackets []model.ProbePacket `json:"probe_packets"`
}

// probe is model.Probe on the wire.
type probe struct {
	Command []string      `json:"command,omitempty"`
	TCP     string        `json:"tcp,omitempty"`
	Send    []byte        `json:"send,omitempty"` // base64: what is sent need not be UTF-8
	Until   string        `json:"until,omitempty"`
	HTTP    string        `json:"http,omitempty"`
	Limit   time.Duration `json:"limit_ns"`
}

// netQuery asks for packets from the addresses that arrived at From or later
// and, for opCount, before To. Times are nanoseconds since 1970.
type netQuery struct {
	Sources []netip.Addr       `json:"sources"`
	MAC     net.HardwareAddr   `json:"mac,omitempty"`
	Only    []model.Traffic    `json:"only,omitempty"`
	Like    *model.ProbePacket `json:"like,omitempty"`
	From    int64              `json:"from_ns"`
	To      int64              `json:"to_ns,omitempty"`
}

// response is one line from the agent. The first one has ID 0 and Version.
type response struct {
	ID      uint64        `json:"id"`
	Version int           `json:"version,omitempty"`
	Error   string        `json:"error,omitempty"`
	Text    []byte        `json:"text,omitempty"` // base64: answers need not be UTF-8
	Took    time.Duration `json:"took_ns,omitempty"`
	Count   *wireCount    `json:"count,omitempty"`
	First   int64         `json:"first_ns,omitempty"` // 0: none
	Now     int64         `json:"now_ns,omitempty"`   // of opClock
	Links   []Link        `json:"links,omitempty"`
	Sent    []bool        `json:"sent,omitempty"` // of opEmit, by probe packet
	// Dropped is by the rule's key. Expired says that Error is nft.ErrExpired.
	Dropped map[string]uint64 `json:"dropped,omitempty"`
	Expired bool              `json:"expired,omitempty"`
	// Arrivals answers opArrivals.
	Arrivals *wireArrivals `json:"arrivals,omitempty"`
	// Ports answers opPorts.
	Ports *wirePorts `json:"ports,omitempty"`
}

type wireCount struct {
	Packets    int   `json:"packets"`
	Bytes      int64 `json:"bytes"`
	Group      int   `json:"group"`
	Incomplete bool  `json:"incomplete"`
	First      int64 `json:"first_ns,omitempty"`
	Last       int64 `json:"last_ns,omitempty"`
	FirstGroup int64 `json:"first_group_ns,omitempty"`
}

// first is that of the first packet, those to all or many among them.
func (w *wireCount) first() int64 {
	if w.First == 0 || w.FirstGroup != 0 && w.FirstGroup < w.First {
		return w.FirstGroup
	}
	return w.First
}

// Count is the number of packets that arrived at a host.
type Count struct {
	// Packets were addressed to the host: by destination address, for ARP and
	// neighbour solicitation by the address asked for; or by Ethernet address, as
	// those for containers behind it.
	Packets int
	// Bytes of those packets, link header included.
	Bytes int64
	// Group arrived too, addressed to all or many: broadcasts and multicasts, ARP
	// requests for others among them. What was addressed to another host alone and
	// came here all the same is in neither.
	Group int
	// Incomplete: packets may be missing, because the kernel dropped some for
	// want of buffer, because the agent's memory of them was full, or because
	// the requested time begins before the agent did.
	Incomplete bool
	// First and Last are the arrivals of the first and last of Packets; zero
	// if there are none.
	First, Last time.Time
	// Unsure are packets besides that arrived so near either end of the time asked
	// for that the host's clock, which is known to Within, does not tell whether they
	// arrived in it.
	Unsure int
	Within time.Duration
}

func timeOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

func (w *wireCount) count() Count {
	return Count{Packets: w.Packets, Bytes: w.Bytes, Group: w.Group, Incomplete: w.Incomplete, First: timeOf(w.First), Last: timeOf(w.Last)}
}

package flowrules

import (
	"fmt"
	"hash/fnv"
)

// Tag is the first byte of every cookie of ours.
const Tag = 0x4e

// Kind says what a rule is for; it is part of the cookie.
type Kind uint8

// Kinds of rules.
const (
	KindAdmit   Kind = iota + 1 // table 0
	KindForward                 // table 2, by address or flood
	KindDefault                 // table 1, everything else goes to table 2
	KindMirror                  // copies a pair to the mirror port
	KindGate                    // hands a pair to the controller or to the gate port
	KindFlood                   // says where the broadcasts of a host go that is cut, gated or mirrored
	KindDrop                    // cuts a pair
	// KindFresh admits as KindAdmit does, but looks at one bit of the sender's
	// address, another one after every change. What is the same in all packets
	// of a host splits nothing; but Open vSwitch forgets every cached decision
	// that did not look at it. Otherwise, where two cached decisions of
	// different masks fit the same packet, its userspace datapath changes the
	// wrong one, and the other forwards across a cut for as long as packets come
	// (seen with 3.1.0).
	KindFresh
	// KindTrial is what is installed for a moment, to see whether a switch takes
	// it; Diff leaves it alone. Its rules are none of a plan's.
	KindTrial
	// KindMeter sends a pair through its meter, which lets everything pass.
	KindMeter
	// KindHold does what KindMeter does while the meter may be turned down: it
	// expires, which meters do not. So does what has neighbour discovery of a pair
	// go on as usual, whose other ICMPv6 is cut.
	KindHold
)

var kindNames = map[Kind]string{
	KindAdmit: "admit", KindForward: "forward", KindDefault: "default", KindMirror: "mirror",
	KindGate: "gate", KindFlood: "flood", KindDrop: "drop", KindFresh: "fresh", KindTrial: "trial", KindMeter: "meter", KindHold: "hold",
}

// String is the lower-case name of the kind.
func (k Kind) String() string {
	if s, ok := kindNames[k]; ok {
		return s
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Cookie is the owner of a rule: 8 bits tag, 8 bits kind, 16 bits lab, 32 bits
// partition id (0 where the rule belongs to none).
type Cookie uint64

// Masks for dumping and deleting by owner.
const (
	// MaskLab selects every rule of one lab: tag and lab.
	MaskLab uint64 = 0xff00_ffff_0000_0000
	// MaskKind selects the rules of one kind of one lab.
	MaskKind uint64 = 0xffff_ffff_0000_0000
	// MaskAll selects one cookie.
	MaskAll uint64 = 0xffff_ffff_ffff_ffff
)

// NewCookie puts a cookie together.
func NewCookie(k Kind, lab uint16, partition uint32) Cookie {
	return Cookie(uint64(Tag)<<56 | uint64(k)<<48 | uint64(lab)<<32 | uint64(partition))
}

// Ours reports whether the cookie belongs to the lab.
func (c Cookie) Ours(lab uint16) bool {
	return uint64(c)&MaskLab == uint64(NewCookie(0, lab, 0))
}

// left reports whether netsplit made the rule, for whatever testbed.
func (c Cookie) left() bool { return c>>56 == Tag }

// Kind is the kind in the cookie.
func (c Cookie) Kind() Kind { return Kind(c >> 48) }

// Lab is the lab in the cookie.
func (c Cookie) Lab() uint16 { return uint16(c >> 32) }

// Partition is the partition id in the cookie.
func (c Cookie) Partition() uint32 { return uint32(c) }

// String is the cookie in hex, and its parts if it carries our tag.
func (c Cookie) String() string {
	if c>>56 != Tag {
		return fmt.Sprintf("%#x", uint64(c))
	}
	return fmt.Sprintf("%#x (netsplit %s lab %#x partition %d)", uint64(c), c.Kind(), c.Lab(), c.Partition())
}

// LabID derives the 16 bit lab number of a testbed from its name, so that a
// restarted daemon knows its own rules again.
func LabID(name string) uint16 {
	h := fnv.New32a()
	h.Write([]byte(name))
	s := h.Sum32()
	return uint16(s>>16) ^ uint16(s)
}

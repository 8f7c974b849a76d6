package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"netsplit/flowrules/hostrules"
)

// What google/nftables cannot say is said here: a table with an owner, a packet
// that is forwarded, and several kinds of change in one transaction.

// answerLimit is how long the kernel may take to answer; drainWait is more than it
// takes to read an answer that is there.
const (
	answerLimit = 5 * time.Second
	drainWait   = 20 * time.Millisecond
)

// The sizes in bytes: firstRoom is that of a socket's buffers where nobody changed
// it (net.core.wmem_default, less what each packet takes), perMessage what an answer
// takes beside its text.
const (
	firstRoom  = 64 << 10
	perMessage = 1 << 10
)

// register1 is where all that is compared is loaded to.
const register1 = unix.NFT_REG_1

// commit sends changes as one transaction: all of them hold from one packet to the
// next, or none does.
func (t *Table) commit(msgs []netlink.Message) error {
	if len(msgs) == 0 {
		return nil
	}
	frame := func(typ netlink.HeaderType) netlink.Message {
		return netlink.Message{Header: netlink.Header{Type: typ, Flags: netlink.Request}, Data: []byte{0, 0, 0, unix.NFNL_SUBSYS_NFTABLES}}
	}
	all := append([]netlink.Message{frame(unix.NFNL_MSG_BATCH_BEGIN)}, msgs...)
	// Errors are answered in any case. To ask for more than one answer only fills
	// the buffer in which they wait.
	all[len(msgs)].Header.Flags |= netlink.Acknowledge
	all = append(all, frame(unix.NFNL_MSG_BATCH_END))
	if err := t.makeRoom(all); err != nil {
		return err
	}
	if _, err := t.conn.SendMessages(all); err != nil {
		return err
	}
	if err := t.conn.SetReadDeadline(time.Now().Add(answerLimit)); err != nil {
		return err
	}
	defer t.conn.SetReadDeadline(time.Time{})
	_, err := t.conn.Receive()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded): // what comes late would be taken for the answer to something else
		return fmt.Errorf("the kernel has not answered within %v: %w", answerLimit, t.giveUp())
	}
	return errors.Join(err, t.drain())
}

// makeRoom lets the socket's buffers take messages, and as many answers that each
// repeat one (netlink(7), NLMSG_ERROR). They only grow.
func (t *Table) makeRoom(msgs []netlink.Message) error {
	need := 0
	for _, m := range msgs {
		need += unix.NLMSG_HDRLEN + len(m.Data) + perMessage
	}
	if need <= t.room {
		return nil
	}
	if err := errors.Join(t.conn.SetWriteBuffer(need), t.conn.SetReadBuffer(need)); err != nil {
		return fmt.Errorf("buffers for %d bytes: %w", need, err)
	}
	t.room = need
	return nil
}

// drain takes what else was answered to a transaction that failed, and returns the
// first of it. All of that is there once the transaction is sent: the kernel
// answers it within the call.
func (t *Table) drain() error {
	var first error
	for end := time.Now().Add(answerLimit); time.Now().Before(end); {
		if err := t.conn.SetReadDeadline(time.Now().Add(drainWait)); err != nil {
			return err
		}
		_, err := t.conn.Receive()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return first
		}
		if first == nil {
			first = err
		}
	}
	return errors.Join(first, t.giveUp())
}

// giveUp closes the table, for nobody knows what its socket would answer next.
func (t *Table) giveUp() error {
	t.closed = errors.Join(ErrClosed, t.lib.CloseLasting())
	return t.closed
}

func (t *Table) message(typ int, flags netlink.HeaderFlags, attrs []netlink.Attribute) netlink.Message {
	data, err := netlink.MarshalAttributes(attrs)
	if err != nil {
		panic(fmt.Sprintf("nft: attributes that cannot be written: %v", err)) // longer than 64 kB
	}
	return netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | typ), Flags: netlink.Request | flags},
		Data:   append([]byte{byte(nftables.TableFamilyNetdev), 0, 0, 0}, data...),
	}
}

func text(typ uint16, s string) netlink.Attribute {
	return netlink.Attribute{Type: typ, Data: append([]byte(s), 0)}
}

func number(typ uint16, n uint32) netlink.Attribute {
	return netlink.Attribute{Type: typ, Data: binary.BigEndian.AppendUint32(nil, n)}
}

func nested(typ uint16, attrs ...netlink.Attribute) (netlink.Attribute, error) {
	data, err := netlink.MarshalAttributes(attrs)
	return netlink.Attribute{Type: typ | unix.NLA_F_NESTED, Data: data}, err
}

// rule adds a rule to the chain of a hook: before the one with the handle, or at
// the end. A key, if there is one, becomes the rule's comment.
func (t *Table) rule(hook hostrules.Hook, before uint64, key string, exprs ...expr.Any) (netlink.Message, error) {
	var list []netlink.Attribute
	for _, e := range exprs {
		b, err := marshal(e)
		if err != nil {
			return netlink.Message{}, err
		}
		list = append(list, netlink.Attribute{Type: unix.NLA_F_NESTED | unix.NFTA_LIST_ELEM, Data: b})
	}
	body, err := nested(unix.NFTA_RULE_EXPRESSIONS, list...)
	if err != nil {
		return netlink.Message{}, err
	}
	attrs := []netlink.Attribute{text(unix.NFTA_RULE_TABLE, t.table.Name), text(unix.NFTA_RULE_CHAIN, string(hook)), body}
	if key != "" {
		attrs = append(attrs, netlink.Attribute{Type: unix.NFTA_RULE_USERDATA, Data: userdata.AppendString(nil, userdata.TypeComment, key)})
	}
	flags := netlink.Create | netlink.Append
	if before != 0 {
		flags = netlink.Create
		attrs = append(attrs, netlink.Attribute{Type: unix.NFTA_RULE_POSITION, Data: binary.BigEndian.AppendUint64(nil, before)})
	}
	return t.message(unix.NFT_MSG_NEWRULE, flags, attrs), nil
}

// forward sends a packet to the device whose number is in register 1
// (NFTA_FWD_SREG_DEV, linux/netfilter/nf_tables.h). The library has no such
// expression; the value only marks its place.
type forward struct{ expr.Any }

func marshal(e expr.Any) ([]byte, error) {
	if _, ok := e.(forward); !ok {
		return expr.Marshal(byte(nftables.TableFamilyNetdev), e)
	}
	data, err := nested(unix.NFTA_EXPR_DATA, number(1, register1))
	if err != nil {
		return nil, err
	}
	return netlink.MarshalAttributes([]netlink.Attribute{text(unix.NFTA_EXPR_NAME, "fwd"), data})
}

func (t *Table) add(r hostrules.Rule, before uint64) (netlink.Message, error) {
	exprs := append(match(r), &expr.Counter{})
	if r.Hook == hostrules.Egress {
		exprs = append(exprs, &expr.Immediate{Register: register1, Data: make([]byte, 4)}, forward{})
	} else {
		exprs = append(exprs, &expr.Verdict{Kind: expr.VerdictDrop})
	}
	return t.rule(r.Hook, before, r.Key(), exprs...)
}

// Where the fields are: from the start of the Ethernet header (IEEE 802.3 §3.1.1),
// of IPv4 (RFC 791 §3.1), IPv6 (RFC 8200 §3) or ARP (RFC 826), and of what is above
// IP (RFC 9293 §3.1, RFC 768, RFC 4443 §2.1).
var (
	etherDst, etherSrc = field{expr.PayloadBaseLLHeader, 0, 6}, field{expr.PayloadBaseLLHeader, 6, 6}
	ip4Src, ip4Dst     = field{expr.PayloadBaseNetworkHeader, 12, 4}, field{expr.PayloadBaseNetworkHeader, 16, 4}
	ip6Src, ip6Dst     = field{expr.PayloadBaseNetworkHeader, 8, 16}, field{expr.PayloadBaseNetworkHeader, 24, 16}
	arpTarget          = field{expr.PayloadBaseNetworkHeader, 24, 4}
	srcPort, dstPort   = field{expr.PayloadBaseTransportHeader, 0, 2}, field{expr.PayloadBaseTransportHeader, 2, 2}
	tcpFlags           = field{expr.PayloadBaseTransportHeader, 13, 1}
	icmpType           = field{expr.PayloadBaseTransportHeader, 0, 1}
)

type field struct {
	base        expr.PayloadBase
	offset, len uint32
}

func (f field) load() expr.Any {
	return &expr.Payload{DestRegister: register1, Base: f.base, Offset: f.offset, Len: f.len}
}

func (f field) is(value []byte) []expr.Any {
	return []expr.Any{f.load(), &expr.Cmp{Op: expr.CmpOpEq, Register: register1, Data: value}}
}

func meta(key expr.MetaKey, value []byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: key, Register: register1}, &expr.Cmp{Op: expr.CmpOpEq, Register: register1, Data: value}}
}

func big16(n uint16) []byte { return binary.BigEndian.AppendUint16(nil, n) }

// ethernet is the type of devices whose header has MACs (ARPHRD_ETHER).
var ethernet = binary.NativeEndian.AppendUint16(nil, unix.ARPHRD_ETHER)

// TCP's flags (RFC 9293 §3.1).
const (
	flagSYN = 0x02
	flagACK = 0x10
)

var accept = &expr.Verdict{Kind: expr.VerdictAccept}

// toAGroup lets pass what the sender cannot drop for one receiver alone: broadcast
// and multicast (IEEE 802-2014 §8.2.2), ARP aside. The receivers' rules drop it.
func toAGroup() []expr.Any {
	bit := field{expr.PayloadBaseLLHeader, 0, 1}
	out := append(meta(expr.MetaKeyIIFTYPE, ethernet), bit.load(),
		&expr.Bitwise{SourceRegister: register1, DestRegister: register1, Len: 1, Mask: []byte{1}, Xor: []byte{0}},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register1, Data: []byte{1}},
		&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: register1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: register1, Data: big16(unix.ETH_P_ARP)})
	return append(out, accept)
}

// match writes the match of a rule. A later fragment has no ports: the kernel ends
// a rule that asks for them.
func match(r hostrules.Rule) []expr.Any {
	m, out := r.Match, []expr.Any{}
	add := func(e ...expr.Any) { out = append(out, e...) }
	far := func(src, dst field) field {
		if r.Hook == hostrules.Egress {
			return dst
		}
		return src
	}
	switch {
	case m.ARP.IsValid():
		add(meta(expr.MetaKeyPROTOCOL, big16(unix.ETH_P_ARP))...)
		add(arpTarget.is(m.ARP.AsSlice())...)
	case m.IP.Is4():
		add(meta(expr.MetaKeyPROTOCOL, big16(unix.ETH_P_IP))...)
		add(far(ip4Src, ip4Dst).is(m.IP.AsSlice())...)
	case m.IP.IsValid():
		add(meta(expr.MetaKeyPROTOCOL, big16(unix.ETH_P_IPV6))...)
		add(far(ip6Src, ip6Dst).is(m.IP.AsSlice())...)
	default:
		add(meta(expr.MetaKeyIIFTYPE, ethernet)...)
		add(far(etherSrc, etherDst).is(m.MAC[:])...)
	}
	if m.EthType != 0 {
		add(meta(expr.MetaKeyPROTOCOL, big16(m.EthType))...)
	}
	if m.Proto != 0 {
		add(meta(expr.MetaKeyL4PROTO, []byte{m.Proto})...)
	}
	if m.SrcPort != 0 {
		add(srcPort.is(big16(m.SrcPort))...)
	}
	if m.DstPort != 0 {
		add(dstPort.is(big16(m.DstPort))...)
	}
	if m.Opening {
		add(tcpFlags.load(), &expr.Bitwise{SourceRegister: register1, DestRegister: register1, Len: 1, Mask: []byte{flagSYN | flagACK}, Xor: []byte{0}},
			&expr.Cmp{Op: expr.CmpOpEq, Register: register1, Data: []byte{flagSYN}})
	}
	if m.ICMPv6 != "" {
		op := expr.CmpOpEq
		if m.ICMPv6 == hostrules.NotDiscovery {
			op = expr.CmpOpNeq
		}
		add(icmpType.load(), &expr.Range{Op: op, Register: register1, FromData: []byte{hostrules.FirstDiscovery}, ToData: []byte{hostrules.LastDiscovery}})
	}
	return out
}

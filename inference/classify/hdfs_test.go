package classify

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
)

// op is an operation on a block.
func op(code byte, block int, rest ...any) string {
	base := pb{1, pb{1, "BP-1", 2, block, 3, 1001}}
	head := pb{1, pb{1, base, 2, "client-1"}}
	if code == 85 { // BLOCK_CHECKSUM has no client
		head = pb{1, base}
	}
	return "\x00\x1c" + string(rune(code)) + delimited(append(head, rest...))
}

// packet holds n bytes of data with a checksum of 4 bytes.
func packet(seq int64, n int, last bool) string {
	var h []byte
	h = protowire.AppendFixed64(protowire.AppendTag(h, 1, protowire.Fixed64Type), 0)
	h = protowire.AppendFixed64(protowire.AppendTag(h, 2, protowire.Fixed64Type), uint64(seq))
	h = protowire.AppendVarint(protowire.AppendTag(h, 3, protowire.VarintType), protowire.EncodeBool(last))
	h = protowire.AppendFixed32(protowire.AppendTag(h, 4, protowire.Fixed32Type), uint32(n))
	sum := 0
	if n > 0 {
		sum = 4
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(4+sum+n))
	b = binary.BigEndian.AppendUint16(b, uint16(len(h)))
	return string(b) + string(h) + strings.Repeat("\x08", sum+n) // data that could start a message
}

func ack(seq int, status ...any) string {
	p := pb{1, zig(seq)}
	for _, s := range status {
		p = append(p, 2, s)
	}
	return delimited(append(p, 3, 0, 4, 0))
}

func TestHDFSDataTypes(t *testing.T) {
	for _, c := range []struct {
		name  string
		turns []turn
		want  []string
	}{
		{"a pipeline", []turn{{0, op(80, 5, 4, 6)}, {1, delimited(pb{1, 0, 2, ""})}, {0, packet(0, 700, false) + packet(-1, 0, false)}, {1, ack(0, 0, 0) + ack(-1)},
			{0, packet(1, 0, true)}, {1, ack(1, 0, 1) + ack(2, 8)}},
			[]string{"> hdfs WRITE_BLOCK PIPELINE_SETUP_CREATE", "< hdfs WRITE_BLOCK reply", "> hdfs packet", "> hdfs packet heartbeat", "< hdfs ack", "< hdfs ack heartbeat",
				"> hdfs packet last", "< hdfs ack ERROR", "< hdfs ack OOB_RESTART"}},
		{"a pipeline that cannot be", []turn{{0, op(80, 5, 4, 6)}, {1, delimited(pb{1, 1, 2, "10.0.0.5:9866"})}},
			[]string{"> hdfs WRITE_BLOCK PIPELINE_SETUP_CREATE", "< hdfs WRITE_BLOCK reply ERROR"}},
		{"a transfer is answered at its end", []turn{{0, op(80, 5, 4, 7) + packet(0, 9, false) + packet(1, 0, true)}, {1, delimited(pb{1, 0})}},
			[]string{"> hdfs WRITE_BLOCK TRANSFER_RBW", "> hdfs packet", "> hdfs packet last", "< hdfs WRITE_BLOCK reply"}},
		{"two reads on one connection", []turn{{0, op(81, 5, 2, 0, 3, 9)}, {1, delimited(pb{1, 0, 4, pb{1, pb{1, 2, 2, 512}, 2, 0}}) + packet(0, 9, false) + packet(1, 0, true)},
			{0, delimited(pb{1, 6}) + op(81, 6)}, {1, delimited(pb{1, 5})}, {0, delimited(pb{1, 2})}},
			[]string{"> hdfs READ_BLOCK", "< hdfs READ_BLOCK reply", "< hdfs packet", "< hdfs packet last", "> hdfs read status", "> hdfs READ_BLOCK",
				"< hdfs READ_BLOCK reply ERROR_ACCESS_TOKEN", "> hdfs read status ERROR_CHECKSUM"}},
		{"checksum", []turn{{0, op(85, 5)}, {1, delimited(pb{1, 0, 3, pb{1, 512}})}}, []string{"> hdfs BLOCK_CHECKSUM", "< hdfs BLOCK_CHECKSUM reply"}},
		{"negotiation", []turn{{0, "\xde\xad\xbe\xef" + delimited(pb{1, 0, 2, "x"})}, {1, delimited(pb{1, 0, 2, "y"})}, {0, op(81, 5)}, {1, delimited(pb{1, 0})}},
			[]string{"> hdfs sasl", "> hdfs sasl", "< hdfs sasl", "> hdfs READ_BLOCK", "< hdfs READ_BLOCK reply"}},
		{"the operation was not seen", []turn{{0, packet(4, 700, false)}, {1, ack(4, 0, 0)}, {1, delimited(pb{1, 0, 2, "10.0.0.5:9866"})}},
			[]string{"> hdfs packet", "< hdfs ack", "< hdfs reply"}},
		{"not this protocol", []turn{{0, "hello"}, {1, "\x00\x1c\x03abcdef"}}, []string{"> unknown", "< unknown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, types(play(newHDFSData(), c.turns))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHDFSDataFields(t *testing.T) {
	us := play(newHDFSData(), []turn{{0, op(80, 5, 2, pb{1, pb{1, "10.0.0.4", 2, "n4", 3, "uuid", 4, 9866}}, 4, 6)}, {1, delimited(pb{1, 0, 2, ""})}, {0, packet(3, 700, false)}, {1, ack(3, 0, 0)}})
	for i, want := range []map[string]string{
		{"block": "blk_5_1001", "block.poolId": "BP-1", "clientName": "client-1", "stage": "PIPELINE_SETUP_CREATE", "targets": "10.0.0.4:9866 id.hostName=n4 id.datanodeUuid=uuid\n"},
		{"status": "SUCCESS", "op.block": "blk_5_1001"},
		{"seqno": "3", "dataLen": "700", "lastPacketInBlock": "false", "op.block": "blk_5_1001"},
		{"seqno": "3", "reply": "SUCCESS,SUCCESS", "op.block": "blk_5_1001"},
	} {
		for name, v := range want {
			if got := field(us[i], name); got != v {
				t.Errorf("%s: field %s is %q, want %q (%+v)", us[i].Type, name, got, v, us[i].Fields)
			}
		}
	}
}

func TestHDFSDataFindsItsFeetBehindAGap(t *testing.T) {
	var us []Unit
	add := func(u Unit) { us = append(us, u) }
	d := newHDFSData()
	b := op(80, 5, 4, 6) + packet(0, 900, false)
	d.Data(0, 0, []byte(b[:len(b)-500]), add)
	d.Gap(0, uint64(len(b)-500), 2000, add) // over the end of the packet
	off := uint64(len(b) - 500 + 2000)
	d.Data(0, off, []byte(strings.Repeat("\x08", 600)+packet(2, 30, false)+packet(3, 0, true)), add)
	want := []string{"> hdfs WRITE_BLOCK PIPELINE_SETUP_CREATE", "> hdfs packet", "> unknown", "> hdfs packet", "> hdfs packet last"}
	if diff := cmp.Diff(want, types(us)); diff != "" {
		t.Error(diff)
	}
}

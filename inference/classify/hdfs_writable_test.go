package classify

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

func be16(n int) string { return string(binary.BigEndian.AppendUint16(nil, uint16(n))) }
func be32(n int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) }
func be64(n int) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }

// hwBytes is Text.writeString of a text of less than 128 bytes.
func hwBytes(s string) string { return string([]byte{byte(len(s))}) + s }

// hwNode is DatanodeInfo.write.
func hwNode(name string) string {
	return be16(len(name)) + name + be16(4) + "DS-1" + be16(50075) + be16(50020) + be64(9) + be64(8) + be64(7) + be64(6) + be32(5) +
		hwBytes("/rack one") + hwBytes("") + hwBytes("NORMAL")
}

// hwToken is Token.write.
func hwToken(version int) string {
	if version == hwVersion14 {
		return ""
	}
	return hwBytes("id") + hwBytes("secret") + hwBytes("HDFS_BLOCK_TOKEN") + hwBytes("")
}

const hwSums = "\x01\x00\x00\x02\x00" // CRC32 of 512 bytes each

func hwOpOf(version, code int, rest string) string {
	return be16(version) + string([]byte{byte(code)}) + be64(-5) + be64(1001) + rest
}

// hwWrite is a WRITE_BLOCK; without a client it is a DataNode's.
func hwWrite(version int, recovery byte, client string, targets ...string) string {
	rest := be32(len(targets)+1) + string([]byte{recovery}) + hwBytes(client)
	if client == "" {
		rest += "\x01" + hwNode("10.0.0.9:50010")
	} else {
		rest += "\x00"
	}
	rest += be32(len(targets))
	for _, n := range targets {
		rest += hwNode(n)
	}
	return hwOpOf(version, 80, rest+hwToken(version)+hwSums)
}

func hwRead(version int) string {
	return hwOpOf(version, 81, be64(0)+be64(600)+hwBytes("client")+hwToken(version))
}

// hwPack is a packet of n bytes, with data that could start a message.
func hwPack(offset, seqno, n int, last byte) string {
	sums := (n + 511) / 512 * 4
	return be32(4+sums+n) + be64(offset) + be64(seqno) + string([]byte{last}) + be32(n) + strings.Repeat("\x00\x0e\x50", (sums+n+2)/3)[:sums+n]
}

func hwAck(version, seqno int, status ...int) string {
	b := be64(seqno)
	if version == hwVersion17 {
		b += be16(len(status))
	}
	for _, s := range status {
		b += be16(s)
	}
	return b
}

const hwEnd = "\x00\x00\x00\x00"

var hwCases = []struct {
	name  string
	turns []turn
	want  []string
}{
	{"a pipeline", []turn{{0, hwWrite(14, 0, "c", "10.0.0.4:1", "10.0.0.5:1")}, {1, "\x00"}, {0, hwPack(0, 0, 700, 0)}, {1, hwAck(14, 0, 0, 0, 0) + be64(-1)},
		{0, hwPack(700, 1, 0, 1) + hwEnd}, {1, hwAck(14, 1, 0, 1, 0) + hwAck(14, -2, 0, 1, 1)}, {0, hwEnd}},
		[]string{"> hdfs WRITE_BLOCK", "< hdfs WRITE_BLOCK reply", "> hdfs packet", "< hdfs ack", "< hdfs ack heartbeat",
			"> hdfs packet last", "> hdfs block end", "< hdfs ack ERROR", "< hdfs ack ERROR", "> hdfs block end"}},
	{"a pipeline of 1.x", []turn{{0, hwWrite(17, 1, "c", "10.0.0.4:1")}, {1, be16(0) + "\x00"}, {0, hwPack(0, 0, 700, 0) + hwPack(0, -1, 0, 0)},
		{1, hwAck(17, 0, 0, 0) + hwAck(17, -1, 0, 0)}, {0, hwPack(700, 1, 0, 1) + hwEnd}, {1, hwAck(17, 1, 0, 1)}},
		[]string{"> hdfs WRITE_BLOCK RECOVERY", "< hdfs WRITE_BLOCK reply", "> hdfs packet", "> hdfs packet heartbeat", "< hdfs ack", "< hdfs ack heartbeat",
			"> hdfs packet last", "> hdfs block end", "< hdfs ack ERROR"}},
	{"a pipeline that cannot be", []turn{{0, hwWrite(14, 0, "c", "10.0.0.4:1")}, {1, hwBytes("10.0.0.4:1")}}, []string{"> hdfs WRITE_BLOCK", "< hdfs WRITE_BLOCK reply ERROR"}},
	{"nor in 1.x", []turn{{0, hwWrite(17, 0, "c", "10.0.0.4:1")}, {1, be16(5) + hwBytes("10.0.0.4:1")}}, []string{"> hdfs WRITE_BLOCK", "< hdfs WRITE_BLOCK reply ERROR_ACCESS_TOKEN"}},
	{"a copy for replication is not answered", []turn{{0, hwWrite(14, 0, "", "10.0.0.4:1") + hwPack(0, 0, 9, 1) + hwEnd}, {1, "\x00"}},
		[]string{"> hdfs WRITE_BLOCK", "> hdfs packet last", "> hdfs block end", "< unknown"}},
	{"a read", []turn{{0, hwRead(14)}, {1, be16(0) + hwSums + be64(0) + hwPack(0, 0, 512, 0) + hwPack(512, 1, 88, 1) + hwEnd}, {0, be16(5)}, {0, "x"}, {1, hwEnd}},
		[]string{"> hdfs READ_BLOCK", "< hdfs READ_BLOCK reply", "< hdfs packet", "< hdfs packet last", "< hdfs block end", "> hdfs read status", "> unknown", "< unknown"}},
	{"a read of 1.x", []turn{{0, hwRead(17)}, {1, be16(0) + hwSums + be64(0) + hwPack(0, 0, 88, 1) + hwEnd}, {0, be16(2)}},
		[]string{"> hdfs READ_BLOCK", "< hdfs READ_BLOCK reply", "< hdfs packet last", "< hdfs block end", "> hdfs read status ERROR_CHECKSUM"}},
	{"a read that fails", []turn{{0, hwRead(14)}, {1, be16(1)}}, []string{"> hdfs READ_BLOCK", "< hdfs READ_BLOCK reply ERROR"}},
	{"metadata", []turn{{0, hwOpOf(14, 82, "")}, {1, "\x00" + be32(7) + "1234567" + hwEnd}}, []string{"> hdfs READ_METADATA", "< hdfs READ_METADATA reply"}},
	{"the balancer", []turn{{0, hwOpOf(14, 83, hwBytes("DS-9")+hwNode("10.0.0.4:1"))}, {1, be16(1)}}, []string{"> hdfs REPLACE_BLOCK", "< hdfs REPLACE_BLOCK reply ERROR"}},
	{"the balancer of 1.x", []turn{{0, hwOpOf(17, 83, hwBytes("DS-9")+hwNode("10.0.0.4:1")+hwToken(17))}, {1, be16(0)}}, []string{"> hdfs REPLACE_BLOCK", "< hdfs REPLACE_BLOCK reply"}},
	{"its copy", []turn{{0, hwOpOf(14, 84, "")}, {1, hwSums + hwPack(0, 0, 9, 1) + hwEnd + be16('d')}},
		[]string{"> hdfs COPY_BLOCK", "< hdfs COPY_BLOCK reply", "< hdfs packet last", "< hdfs block end", "< hdfs COPY_BLOCK done"}},
	{"its copy in 1.x", []turn{{0, hwOpOf(17, 84, hwToken(17))}, {1, be16(0) + hwSums + hwPack(0, 0, 9, 1) + hwEnd + be16('d')}},
		[]string{"> hdfs COPY_BLOCK", "< hdfs COPY_BLOCK reply", "< hdfs packet last", "< hdfs block end", "< hdfs COPY_BLOCK done"}},
	{"its copy refused", []turn{{0, hwOpOf(17, 84, hwToken(17))}, {1, be16(5)}}, []string{"> hdfs COPY_BLOCK", "< hdfs COPY_BLOCK reply ERROR_ACCESS_TOKEN"}},
	{"checksum", []turn{{0, hwOpOf(14, 85, "")}, {1, be16(0) + be32(512) + be64(2) + strings.Repeat("\xab", 16)}}, []string{"> hdfs BLOCK_CHECKSUM", "< hdfs BLOCK_CHECKSUM reply"}},
	{"checksum of 1.x", []turn{{0, hwOpOf(17, 85, hwToken(17))}, {1, be16(1)}}, []string{"> hdfs BLOCK_CHECKSUM", "< hdfs BLOCK_CHECKSUM reply ERROR"}},
	{"a status that nobody has named", []turn{{0, hwRead(14)}, {1, be16(77)}}, []string{"> hdfs READ_BLOCK", "< hdfs READ_BLOCK reply"}},
	{"a write under way", []turn{{0, hwPack(512, 1, 700, 0)}, {1, hwAck(14, 1, 0, 0, 0) + hwAck(14, 2, 0, 0, 0) + hwAck(14, -2, 0, 1, 1)}},
		[]string{"> hdfs packet", "< hdfs ack", "< hdfs ack", "< hdfs ack ERROR"}},
	{"one of 1.x", []turn{{1, hwAck(17, 1, 0, 0) + hwAck(17, 2, 0, 1)}, {0, hwPack(512, 1, 700, 0)}}, []string{"< hdfs ack", "< hdfs ack ERROR", "> hdfs packet"}},
	{"a read under way", []turn{{1, hwPack(512, 1, 512, 0)[99:] + hwPack(1024, 2, 512, 1) + hwEnd}}, []string{"< unknown", "< hdfs packet last", "< hdfs block end"}},
	{"not this protocol", []turn{{0, "hello"}, {1, "\x00\x0e\x4fabcdef"}}, []string{"> unknown", "< unknown"}},
	{"another version", []turn{{0, hwOpOf(28, 80, "")}}, []string{"> unknown"}},
	{"metadata, which 1.x does not know", []turn{{0, hwOpOf(17, 82, "")}}, []string{"> unknown"}},
	{"targets below zero", []turn{{0, hwOpOf(14, 80, be32(1)+"\x00"+hwBytes("c")+"\x00"+be32(-1)) + "x"}}, []string{"> unknown"}},
	{"a text below zero", []turn{{0, hwOpOf(14, 80, be32(1)+"\x00\x9f") + "x"}}, []string{"> unknown"}},
	{"two DataNodes fail", []turn{{0, hwWrite(14, 0, "c", "10.0.0.4:1")}, {1, "\x00" + hwAck(14, 0, 2, 1)}}, []string{"> hdfs WRITE_BLOCK", "< hdfs WRITE_BLOCK reply", "< hdfs ack ERROR_CHECKSUM"}},
	{"an ack of very many", []turn{{0, hwWrite(17, 0, "c")}, {1, be16(0) + "\x00" + hwAck(17, 0, make([]int, hwTargets+1)...)}}, []string{"> hdfs WRITE_BLOCK", "< hdfs WRITE_BLOCK reply", "< unknown"}},
	{"acks by chance", []turn{{1, hwAck(14, 1, 0) + hwAck(14, 2, 7)}}, []string{"< hdfs ack", "< unknown"}},
	{"many targets", []turn{{0, hwWrite(17, 0, "c", strings.Split(strings.Repeat("10.0.0.4:1,", 79)+"10.0.0.4:1", ",")...) + hwPack(0, 0, 9, 0)}}, []string{"> hdfs WRITE_BLOCK", "> hdfs packet"}},
	{"a packet too short", []turn{{0, hwWrite(14, 0, "c") + be32(3) + strings.Repeat("x", 30)}}, []string{"> hdfs WRITE_BLOCK", "> unknown"}},
	{"packets too long, too short", []turn{{0, hwWrite(14, 0, "c") + be32(100<<20+1)}, {1, "\x00" + be64(-3)}}, []string{"> hdfs WRITE_BLOCK", "< hdfs WRITE_BLOCK reply", "> unknown", "< unknown"}},
}

func TestHDFSWritableTypes(t *testing.T) {
	for _, c := range hwCases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, types(play(newHDFSWritable(), c.turns))); diff != "" {
				t.Error(diff)
			}
			var ss []step
			for _, x := range c.turns {
				ss = append(ss, step{dir: x.dir, b: []byte(x.b)})
			}
			rules(t, model.Protocol{Dissector: NameHDFSWritable}, ss, 1, 40)
		})
	}
}

func TestHDFSWritableFields(t *testing.T) {
	for _, c := range []struct {
		turns []turn
		want  []map[string]string
	}{
		{[]turn{{0, hwWrite(14, 1, "c", "10.0.0.4:1", "10.0.0.5:1")}, {1, hwBytes("10.0.0.5:1")}, {0, hwPack(512, 3, 700, 0)}, {1, hwAck(14, 3, 0, 2, 5) + be64(-1)}}, []map[string]string{
			{"block": "blk_-5_1001", "pipelineSize": "3", "isRecovery": "true", "clientName": "c", "source": "(none)", "requestedChecksum.type": "CHECKSUM_CRC32", "requestedChecksum.bytesPerChecksum": "512", "op.block": "(none)",
				"targets": `10.0.0.4:1 id.datanodeUuid=DS-1 id.infoPort=50075 id.ipcPort=50020 capacity=9 dfsUsed=8 remaining=7 lastUpdate=6 xceiverCount=5 location="/rack one" adminState=NORMAL
10.0.0.5:1 id.datanodeUuid=DS-1 id.infoPort=50075 id.ipcPort=50020 capacity=9 dfsUsed=8 remaining=7 lastUpdate=6 xceiverCount=5 location="/rack one" adminState=NORMAL
`},
			{"firstBadLink": "10.0.0.5:1", "op.block": "blk_-5_1001"},
			{"offsetInBlock": "512", "seqno": "3", "dataLen": "700", "lastPacketInBlock": "false", "op.block": "blk_-5_1001"},
			{"seqno": "3", "reply": "SUCCESS,ERROR_CHECKSUM,CHECKSUM_OK", "op.block": "blk_-5_1001"},
			{"seqno": "-1", "reply": "(none)"}}},
		{[]turn{{0, hwWrite(14, 0, "a\xff") + hwPack(0, 4, 9, 1)[:23]}}, []map[string]string{{"clientName": "a\uFFFD"}, {"seqno": "(none)", "incomplete": "true"}}},
		{[]turn{{0, hwOpOf(14, 81, be64(0)+be64(1)+"\x8e\x01\x2c"+strings.Repeat("c", 300))}}, []map[string]string{{"clientName": strings.Repeat("c", pbValue) + "…"}}},
		{[]turn{{0, hwWrite(17, 0, "")}, {0, hwPack(0, 0, 1, 1)}}, []map[string]string{
			{"source": "10.0.0.9:50010", "source.id.datanodeUuid": "DS-1", "source.location": "/rack one", "targets": "(none)", "clientName": "(none)", "pipelineSize": "1", "isRecovery": "false",
				"requestedChecksum.bytesPerChecksum": "512"}, {"dataLen": "1"}}},
		{[]turn{{0, hwWrite(17, 0, "c")}, {1, be16(5) + hwBytes("b") + hwAck(17, 7, 0, 5)}}, []map[string]string{{}, {"status": "ERROR_ACCESS_TOKEN", "firstBadLink": "b"}, {"seqno": "7", "reply": "SUCCESS,ERROR_ACCESS_TOKEN"}}},
		{[]turn{{0, hwRead(17)}, {1, be16(0) + hwSums + be64(512)}, {0, be16(6)}}, []map[string]string{
			{"block": "blk_-5_1001", "offset": "0", "len": "600", "clientName": "client"},
			{"status": "SUCCESS", "readOpChecksumInfo.checksum.type": "CHECKSUM_CRC32", "readOpChecksumInfo.checksum.bytesPerChecksum": "512", "readOpChecksumInfo.chunkOffset": "512", "op.block": "blk_-5_1001"},
			{"status": "CHECKSUM_OK", "op.block": "blk_-5_1001"}}},
		{[]turn{{0, hwOpOf(14, 83, hwBytes("DS-9")+hwNode("10.0.0.4:1"))}, {1, be16(77)}}, []map[string]string{
			{"delHint": "DS-9", "source": "10.0.0.4:1", "source.capacity": "9", "source.id.hostName": "(none)"}, {"status": "77"}}},
		{[]turn{{0, hwOpOf(14, 84, "")}, {1, "\x00" + be32(4096)}}, []map[string]string{{"block": "blk_-5_1001"},
			{"readOpChecksumInfo.checksum.type": "CHECKSUM_NULL", "readOpChecksumInfo.checksum.bytesPerChecksum": "4096", "readOpChecksumInfo.chunkOffset": "(none)"}}},
		{[]turn{{0, hwOpOf(14, 85, "")}, {1, be16(0) + be32(512) + be64(2) + strings.Repeat("\xab", 16)}}, []map[string]string{{},
			{"status": "SUCCESS", "checksumResponse.bytesPerCrc": "512", "checksumResponse.crcPerBlock": "2", "checksumResponse.blockChecksum": strings.Repeat("ab", 16)}}},
		{[]turn{{0, hwOpOf(14, 82, "")}, {1, "\x00" + be32(2) + "12" + hwEnd}}, []map[string]string{{"block": "blk_-5_1001"}, {"length": "2", "op.block": "blk_-5_1001"}}},
	} {
		us := play(newHDFSWritable(), c.turns)
		if len(us) != len(c.want) {
			t.Fatalf("%v, want %d", types(us), len(c.want))
		}
		for i, want := range c.want {
			for name, v := range want {
				if got := field(us[i], name); got != v {
					t.Errorf("%s: field %s is %q, want %q (%+v)", us[i].Type, name, got, v, us[i].Fields)
				}
			}
			if strings.Contains(fmt.Sprint(us[i].Fields), "secret") {
				t.Errorf("%s tells a password: %v", us[i].Type, us[i].Fields)
			}
		}
	}
}

// TestHDFSWritableBehindGaps: what is lost is lost, and no more.
func TestHDFSWritableBehindGaps(t *testing.T) {
	open := []step{{b: []byte(hwWrite(14, 0, "c", "10.0.0.4:1", "10.0.0.5:1"))}, {dir: 1, b: []byte("\x00")}}
	packets := hwPack(0, 0, 900, 0) + hwPack(512, 1, 30, 0) + hwPack(542, 2, 700, 1) + hwEnd
	acks := hwAck(14, 0, 0, 0, 0) + hwAck(14, 1, 0, 0, 0) + hwAck(14, 2, 0, 0, 0)
	for _, c := range []struct {
		name  string
		steps []step
		want  []string
	}{
		{"inside a packet", append(open[:2:2], step{b: []byte(packets[:100])}, step{gap: 200}, step{b: []byte(packets[300:])}),
			[]string{"hdfs WRITE_BLOCK", "hdfs packet incomplete", "hdfs packet", "hdfs packet last", "hdfs block end", "hdfs WRITE_BLOCK reply"}},
		{"over its end", append(open[:2:2], step{b: []byte(packets[:100])}, step{gap: 850}, step{b: []byte(packets[950:])}),
			[]string{"hdfs WRITE_BLOCK", "hdfs packet incomplete", "unknown", "hdfs packet last", "hdfs block end", "hdfs WRITE_BLOCK reply"}},
		{"inside an ack", append(open[:2:2], step{dir: 1, b: []byte(acks[:9])}, step{dir: 1, gap: 2}, step{dir: 1, b: []byte(acks[11:])}),
			[]string{"hdfs WRITE_BLOCK", "hdfs WRITE_BLOCK reply", "hdfs ack incomplete", "hdfs ack", "hdfs ack"}},
		{"over its end", append(open[:2:2], step{dir: 1, b: []byte(acks[:9])}, step{dir: 1, gap: 9}, step{dir: 1, b: []byte(acks[18:] + hwAck(14, 3, 0, 0, 0))}),
			[]string{"hdfs WRITE_BLOCK", "hdfs WRITE_BLOCK reply", "hdfs ack incomplete", "unknown", "hdfs ack", "hdfs ack"}},
		{"the answer", append(open[:1:1], step{dir: 1, gap: 1}, step{dir: 1, b: []byte(acks)}), []string{"hdfs WRITE_BLOCK", "hdfs ack", "hdfs ack", "hdfs ack"}},
		{"the answer to a read", []step{{b: []byte(hwRead(14))}, {dir: 1, gap: 15}, {dir: 1, b: []byte(packets)}},
			[]string{"hdfs READ_BLOCK", "hdfs packet", "hdfs packet", "hdfs packet last", "hdfs block end"}},
		{"before a packet of another block", append(open[:2:2], step{gap: 50}, step{b: []byte(be32(4+44+700) + hwPack(0, 0, 700, 0)[4:])}), []string{"hdfs WRITE_BLOCK", "unknown", "hdfs WRITE_BLOCK reply"}},
		{"before another in a read", []step{{b: []byte(hwRead(14))}, {dir: 1, b: []byte(be16(0) + hwSums + be64(0))}, {dir: 1, gap: 50}, {dir: 1, b: []byte(be32(4+44+700) + hwPack(0, 0, 700, 0)[4:])}},
			[]string{"hdfs READ_BLOCK", "hdfs READ_BLOCK reply", "unknown"}},
		{"the operation", []step{{gap: 50}, {b: []byte(packets)}, {dir: 1, b: []byte(acks)}},
			[]string{"hdfs packet", "hdfs packet", "hdfs packet last", "hdfs block end", "unknown", "hdfs ack", "hdfs ack"}},
	} {
		var got []string
		for _, us := range rules(t, model.Protocol{Dissector: NameHDFSWritable}, c.steps, 1, 40) {
			for _, u := range us {
				if field(u, "incomplete") == "true" {
					u.Type += " incomplete"
				}
				got = append(got, u.Type)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestHDFSWritableSizes: what no more bytes make a message is not waited for.
func TestHDFSWritableSizes(t *testing.T) {
	head := be32(1) + "\x00"
	for _, c := range []struct {
		name, b string
		want    int64
	}{
		{"nothing yet", "\x00\x0e\x50", 0},
		{"other first byte", "\x01\x0e\x50", -1},
		{"other version", "\x00\x0f", -1},
		{"other operation", "\x00\x0e\x56", -1},
		{"metadata", hwOpOf(14, 82, ""), 19},
		{"metadata of 1.x", hwOpOf(17, 82, hwToken(17)), -1},
		{"a text below zero", hwOpOf(14, 80, head+"\x9f"), -1},
		{"a text too long", hwOpOf(14, 80, head+"\x8e\x20\x01"), -1},
		{"a long text", hwOpOf(14, 80, head+"\x8e\x20\x00"), 0},
		{"targets below zero", hwOpOf(14, 80, head+"\x00\x00"+be32(-1)), -1},
		{"targets too many", hwOpOf(14, 80, head+"\x00\x00"+be32(hwTargets+1)), -1},
		{"many targets", hwOpOf(14, 80, head+"\x00\x00"+be32(hwTargets)), 0},
	} {
		if got := hwOperationSize([]byte(c.b)); got != c.want {
			t.Errorf("%s: size is %d, want %d", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		name, op, b string
		version     int
		want        int64
	}{
		{"an error", "READ_BLOCK", "\x00\x01", 14, 2},
		{"another", "READ_BLOCK", "\x01\x00", 14, 2},
		{"no error", "READ_BLOCK", "\x00\x00", 14, 15},
		{"half of it", "READ_BLOCK", "\x00", 14, 0},
		{"metadata below zero", "READ_METADATA", "\x00" + be32(-1), 14, -1},
		{"metadata", "READ_METADATA", "\x00" + be32(9), 14, 18},
		{"a text below zero", "WRITE_BLOCK", "\x9f", 14, -1},
		{"a text too long", "WRITE_BLOCK", "\x8e\x20\x01", 14, -1},
		{"a text", "WRITE_BLOCK", "\x03", 14, 4},
		{"a status", "WRITE_BLOCK", "\x00\x01", 17, 0},
		{"a status and a text", "WRITE_BLOCK", "\x00\x01\x03", 17, 6},
	} {
		h := &hdfsWritable{op: c.op, version: c.version, phase: [2]hwPhase{hwNothing, hwReply}}
		if got := h.size(1, []byte(c.b)); got != c.want {
			t.Errorf("%s: size is %d, want %d", c.name, got, c.want)
		}
	}
}

// TestHDFSWritableStarts: what is not a header of a packet, or no two acks in a row, is not taken for one.
func TestHDFSWritableStarts(t *testing.T) {
	header := func(n, offset, seqno int, last byte, data int) string {
		return be32(n) + be64(offset) + be64(seqno) + string([]byte{last}) + be32(data)
	}
	for _, c := range []struct {
		name string
		h    hdfsWritable
		b    string
		want bool
	}{
		{"a packet", hdfsWritable{}, header(4+8+700, 512, 1, 0, 700), true},
		{"a packet of another file", hdfsWritable{}, header(4+44+700, 512, 1, 0, 700), true}, // 64 bytes per checksum
		{"a packet of another block", hdfsWritable{chunk: 512}, header(4+44+700, 512, 1, 0, 700), false},
		{"a packet of this block", hdfsWritable{chunk: 512}, header(4+8+700, 512, 1, 0, 700), true},
		{"a packet without checksums", hdfsWritable{}, header(4+700, 512, 1, 0, 700), true},
		{"a part of a checksum", hdfsWritable{}, header(4+9+700, 512, 1, 0, 700), false},
		{"a packet with odd checksums", hdfsWritable{}, header(4+96+700, 512, 1, 0, 700), false},
		{"the last packet", hdfsWritable{}, header(4, 512, 1, 1, 0), true},
		{"the last packet with a checksum", hdfsWritable{}, header(8, 512, 1, 1, 0), true},
		{"the last packet with two", hdfsWritable{}, header(12, 512, 1, 1, 0), false},
		{"an empty packet", hdfsWritable{}, header(4, 512, 1, 0, 0), false},
		{"a heartbeat", hdfsWritable{}, header(4, 0, -1, 0, 0), true},
		{"the end of a block", hdfsWritable{}, header(0, 0, 0, 0, 0), false},
		{"no boolean", hdfsWritable{}, header(4+8+700, 512, 1, 2, 700), false},
		{"before the block", hdfsWritable{}, header(4+8+700, -1, 1, 0, 700), false},
		{"far behind the block", hdfsWritable{}, header(4+8+700, 1<<50, 1, 0, 700), false},
		{"a number below zero", hdfsWritable{}, header(4+8+700, 512, -2, 0, 700), false},
		{"a large number", hdfsWritable{}, header(4+8+700, 512, 1<<40, 0, 700), false},
		{"data below zero", hdfsWritable{}, header(4+8, 512, 1, 0, -1), false},
		{"more data than packet", hdfsWritable{}, header(4+8, 512, 1, 0, 700), false},
		{"a long packet", hdfsWritable{}, header(4+20<<20/128+20<<20, 512, 1, 0, 20<<20), false},
		{"packets where acks are", hdfsWritable{phase: [2]hwPhase{hwAcks}}, header(4+8+700, 512, 1, 0, 700), false},
		{"acks", hdfsWritable{}, hwAck(14, 1, 0, 0, 0) + hwAck(14, 2), true},
		{"zeros and a one", hdfsWritable{}, hwAck(14, 0, 0, 0, 0) + hwAck(14, 1, 0, 0, 0), false},
		{"the first acks", hdfsWritable{op: "WRITE_BLOCK", version: 14, replies: 3}, hwAck(14, 0, 0, 0, 0) + hwAck(14, 1), true},
		{"as many as this pipeline has", hdfsWritable{op: "WRITE_BLOCK", version: 14, replies: 2}, hwAck(14, 1, 0, 0, 0) + hwAck(14, 2, 0, 0, 0), false},
		{"the next is not the next", hdfsWritable{}, hwAck(14, 1, 0) + hwAck(14, 3) + hwAck(14, 5) + hwAck(14, 7) + strings.Repeat("\xff", 80), false},
		{"a heartbeat and an ack", hdfsWritable{}, hwAck(14, -1, 0) + hwAck(14, 0) + strings.Repeat("\xff", 80), false},
		{"acks of 1.x", hdfsWritable{}, hwAck(17, 1, 0, 0, 0) + hwAck(17, 2), true},
		{"acks of 0.20 in 1.x", hdfsWritable{version: 17}, hwAck(14, 1, 0, 0, 0) + hwAck(14, 2), false},
		{"acks of many in 1.x", hdfsWritable{}, hwAck(17, 1, make([]int, hwPipelineMax+1)...) + hwAck(17, 2), false},
		{"acks where packets are", hdfsWritable{phase: [2]hwPhase{hwPackets}}, hwAck(14, 1, 0, 0, 0) + hwAck(14, 2), false},
	} {
		h := c.h
		if h.op == "WRITE_BLOCK" {
			h.phase[0] = hwAcks
		}
		if ok, _ := h.starts(0, []byte(c.b)); ok != c.want {
			t.Errorf("%s: %t, want %t", c.name, ok, c.want)
		}
	}
	if _, more := (&hdfsWritable{phase: [2]hwPhase{hwPackets}}).starts(0, []byte(hwEnd)); more {
		t.Error("waits for more of the end of a block")
	}
	// The first status of an ack of 0.20 is no number of replies where the version is known.
	h := hdfsWritable{op: "WRITE_BLOCK", version: 14, replies: 2, phase: [2]hwPhase{hwPackets, hwAcks}}
	if ok, _ := h.starts(1, []byte(hwAck(14, 1, 1, 0)+hwAck(14, 2, 0, 0))); !ok || h.version != 14 {
		t.Errorf("%t: %+v", ok, h)
	}
}

// TestHDFSWritableNeverTakesDataForAMessage: random bytes and zeros hold no packet and no ack.
func TestHDFSWritableNeverTakesDataForAMessage(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	b := make([]byte, 1<<20)
	rng.Read(b)
	for i := 0; i < len(b); i += 100 {
		clear(b[i:min(i+rng.Intn(100), len(b))]) // runs of zeros
	}
	for dir := range 2 {
		for _, u := range run(t, newHDFSWritable(), []step{{dir: dir, b: append([]byte{1}, b...)}}, rng)[dir] {
			if u.Type != model.TypeUnknown {
				t.Errorf("%+v", u)
			}
		}
	}
}

func TestHDFSWritableKeepsLittle(t *testing.T) {
	d := newHDFSWritable().(*framedPair)
	var got []string
	add := func(u Unit) { got = append(got, fmt.Sprintf("%s %d", u.Type, u.Bytes)) }
	long := hwWrite(14, 0, "c") + hwPack(0, 0, 5<<20, 1) + hwEnd
	for off := 0; off < len(long); off += 1000 {
		d.Data(0, uint64(off), []byte(long[off:min(off+1000, len(long))]), add)
		if cap(d.d[0].buf) > 4*hdfsKeep {
			t.Fatalf("keeps %d bytes", cap(d.d[0].buf))
		}
	}
	want := []string{fmt.Sprintf("hdfs WRITE_BLOCK %d", len(hwWrite(14, 0, "c"))), fmt.Sprintf("hdfs packet last %d", hdfsKeep),
		fmt.Sprintf("hdfs packet last end %d", len(hwPack(0, 0, 5<<20, 1))-hdfsKeep), "hdfs block end 4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// An operation that claims much is not waited for for ever.
	us := play(newHDFSWritable(), []turn{{0, hwOpOf(14, 80, be32(1)+"\x00"+hwBytes("c")+"\x00"+be32(hwTargets)) + strings.Repeat("\xff", 200<<10)}})
	for _, u := range us {
		if u.Type != model.TypeUnknown {
			t.Errorf("%+v", u)
		}
	}
}

func TestHDFSWritableTypesDoNotGrowWithData(t *testing.T) {
	seen := map[string]bool{}
	for i := range 300 {
		id := fmt.Sprintf("id%d", i)
		for _, turns := range [][]turn{
			{{0, hwWrite(14, byte(i%2), id, id)}, {1, hwBytes(id) + hwAck(14, i, i, 0)}, {0, hwPack(i, i, i, byte(i%2))}},
			{{0, hwRead(17)}, {1, be16(i)}, {0, be16(i)}},
		} {
			for _, u := range play(newHDFSWritable(), turns) {
				seen[u.Type] = true
			}
		}
	}
	if len(seen) > 26 {
		t.Errorf("%d types: %v", len(seen), seen)
	}
}

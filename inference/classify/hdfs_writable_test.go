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

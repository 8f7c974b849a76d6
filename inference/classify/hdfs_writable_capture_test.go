package classify_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/inference/classify"
	"netsplit/inference/packet"
	"netsplit/internal/resegment"
	"netsplit/model"
)

var hdfs020Ports = map[uint16]string{50010: classify.NameHDFSWritable}

// hdfs020Read reads the capture of testdata/hdfs020, without the segments of connections.
func hdfs020Read(t *testing.T) (out []model.Message) {
	t.Helper()
	for _, m := range messagesOf(t, framesOf(t, "hdfs020", "blocks.pcap"), hdfs020Ports) {
		if !m.Transport() {
			out = append(out, m)
		}
	}
	return out
}

func TestHDFSWritableCapture(t *testing.T) {
	got := map[string]int{}
	open := []has{
		{"hdfs WRITE_BLOCK", "block", "blk_3076554114793934343_1001"},
		{"hdfs WRITE_BLOCK", "targets", "10.9.0.4:50010 id.hostName=localhost id.datanodeUuid=DS-..."},
		{"hdfs WRITE_BLOCK", "pipelineSize", "3"},
		{"hdfs WRITE_BLOCK", "requestedChecksum.type", "CHECKSUM_CRC32"},
		{"hdfs WRITE_BLOCK RECOVERY", "isRecovery", "true"},
		{"hdfs WRITE_BLOCK RECOVERY", "clientName", "DFSClient_..."},
		{"hdfs WRITE_BLOCK reply ERROR", "firstBadLink", "10.9.0.4:50010"},
		{"hdfs READ_BLOCK", "len", "400000"},
		{"hdfs READ_BLOCK reply", "readOpChecksumInfo.checksum.bytesPerChecksum", "512"},
		{"hdfs read status", "status", "CHECKSUM_OK"},
		{"hdfs packet last", "op.block", "blk_3076554114793934343_1002"},
		{"hdfs ack ERROR", "seqno", "-2"},
		{"hdfs ack ERROR", "reply", "SUCCESS,ERROR"},
		{"hdfs ack ERROR", "reply", "SUCCESS,SUCCESS,ERROR"},
	}
	for _, m := range hdfs020Read(t) {
		got[m.Type]++
		for i := 0; i < len(open); i++ {
			v, ok := m.Field(open[i].field)
			start, part := strings.CutSuffix(open[i].value, "...")
			if m.Type == open[i].typ && ok && (v == start || part && strings.HasPrefix(v, start)) {
				open = append(open[:i], open[i+1:]...)
				i--
			}
		}
	}
	for _, h := range open {
		t.Errorf("no %s has %s = %q", h.typ, h.field, h.value)
	}
	if d := cmp.Diff(map[string]int{"hdfs WRITE_BLOCK": 5, "hdfs WRITE_BLOCK RECOVERY": 9, "hdfs WRITE_BLOCK reply": 12, "hdfs WRITE_BLOCK reply ERROR": 2,
		"hdfs packet": 45, "hdfs packet last": 9, "hdfs block end": 10, "hdfs ack": 27, "hdfs ack ERROR": 2,
		"hdfs READ_BLOCK": 1, "hdfs READ_BLOCK reply": 1, "hdfs read status": 1}, got); d != "" {
		t.Errorf("messages by type (-want +got):\n%s", d)
	}
}

// TestHDFSWritableAgreesWithItself: what HDFS's sources demand of the numbers in a connection
// (BlockReceiver.receivePacket and PacketResponder.run, DFSClient's ResponseProcessor and BlockReader).
func TestHDFSWritableAgreesWithItself(t *testing.T) {
	type conn struct {
		op                   string
		offset, next         int64 // of the packets
		sent, acked, replies int
		last, ended          bool
		failed               bool
	}
	conns := map[uint16]*conn{}   // by the port of their client
	lengths := map[string]int64{} // of blocks, as the last packet leaves them
	for _, m := range hdfs020Read(t) {
		client, dir := m.FromPort, 0
		if m.FromPort == 50010 {
			client, dir = m.ToPort, 1
		}
		c := conns[client]
		number := func(name string) int64 {
			v, _ := m.Field(name)
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				t.Errorf("%s: %s=%q", m.Type, name, v)
			}
			return n
		}
		block, _ := m.Field("op.block")
		switch words := strings.Fields(m.Type); {
		case dir == 0 && strings.HasSuffix(words[1], "_BLOCK"):
			targets, _ := m.Field("targets")
			conns[client] = &conn{op: words[1], replies: strings.Count(targets, "\n") + 1, offset: -1}
		case words[1] == "packet":
			if number("seqno") != int64(c.sent) || c.offset >= 0 && number("offsetInBlock") != c.next || c.last {
				t.Errorf("%s: packet %d of %d at %d, want %d at %d", block, number("seqno"), number("dataLen"), number("offsetInBlock"), c.sent, c.next)
			}
			c.offset, c.next = number("offsetInBlock"), number("offsetInBlock")+number("dataLen")
			c.sent++
			if strings.HasPrefix(m.Type, "hdfs packet last") {
				c.last = true
				if lengths[block] != 0 && lengths[block] != c.next {
					t.Errorf("%s has %d bytes, and %d", block, lengths[block], c.next)
				}
				lengths[block] = c.next
			}
			if sums := (number("dataLen") + 511) / 512 * 4; int64(m.Bytes) != 25+sums+number("dataLen") {
				if v, _ := m.Field("incomplete"); v == "" {
					t.Errorf("%s: a packet of %d bytes holds %d", block, m.Bytes, number("dataLen"))
				}
			}
		case m.Type == "hdfs block end":
			if !c.last {
				t.Errorf("%s ends before its last packet", block)
			}
			c.ended = true
		case words[1] == "ack":
			reply, _ := m.Field("reply")
			if strings.Count(reply, ",")+1 != c.replies {
				t.Errorf("%s: %d DataNodes reply %s", block, c.replies, reply)
			}
			if m.Type == "hdfs ack ERROR" {
				c.failed = true
				continue
			}
			if number("seqno") != int64(c.acked) || c.acked >= c.sent {
				t.Errorf("%s: ack of %d, want %d of %d", block, number("seqno"), c.acked, c.sent)
			}
			c.acked++
		}
	}
	whole := 0
	for _, c := range conns {
		if c.op == "READ_BLOCK" && (c.acked != 0 || !c.ended) || c.op == "WRITE_BLOCK" && c.ended && c.acked != c.sent && !c.failed {
			t.Errorf("%+v", c)
		}
		if c.ended && !c.failed {
			whole++
		}
	}
	if d := cmp.Diff(map[string]int64{"blk_3076554114793934343_1001": 200000, "blk_3076554114793934343_1002": 400000, "blk_7483314606040675283_1052": 400000}, lengths); d != "" {
		t.Errorf("lengths of blocks (-want +got):\n%s", d)
	}
	if len(conns) != 15 || whole != 7 {
		t.Errorf("%d connections, %d with a whole block", len(conns), whole)
	}
}

// TestHDFSWritableInAnyCut: segments cut elsewhere change nothing.
func TestHDFSWritableInAnyCut(t *testing.T) {
	d := packet.NewDecoder(nil)
	var frames []model.Frame
	for _, f := range framesOf(t, "hdfs020", "blocks.pcap") {
		if p := d.Decode(f); p.Src.Port() == 36026 || p.Dst.Port() == 36026 { // the one without gaps
			frames = append(frames, f)
		}
	}
	list := func(frames []model.Frame) (out [2][]string) {
		for _, m := range messagesOf(t, frames, hdfs020Ports) {
			if !m.Transport() {
				dir := 0
				if m.FromPort == 50010 {
					dir = 1
				}
				out[dir] = append(out[dir], fmt.Sprint(m.Offset, m.Bytes, m.Type, m.Fields))
			}
		}
		return out
	}
	whole := list(frames)
	if len(whole[0]) != 6 || len(whole[1]) != 5 {
		t.Errorf("%d and %d messages", len(whole[0]), len(whole[1]))
	}
	for seed := range uint64(3) {
		cut, err := resegment.Frames(frames, rand.New(rand.NewPCG(seed, 2)), resegment.Options{MaxSegment: 200, Window: 8, Again: 0.1})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(whole, list(cut)); d != "" {
			t.Errorf("other segments (-as it was +resegmented):\n%s", d)
		}
	}
}

package classify

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"netsplit/model"
)

// Numbers of the data transfer protocol before protobuf
// (org.apache.hadoop.hdfs.protocol.DataTransferProtocol; DataNode.PKT_HEADER_LEN).
const (
	hwVersion14 = 14 // 0.20.0 to 0.20.2
	hwVersion17 = 17 // 0.20.203 to 1.2.1: tokens, statuses of set-ups, acks that count their replies

	hwPacketHeader = 21            // of a packet: all before the length of its data
	hwPacketMax    = 100 << 20     // longest packet that BlockReceiver takes
	hwSeqnoMax     = math.MaxInt32 // largest sequence number believed
	hwHeartbeat    = -1            // sequence number of a heartbeat
	hwUnknownSeqno = -2            // of an ack of a DataNode that could not read one
	hwPipelineMax  = 16            // DataNodes of a pipeline whose operation was not seen
)

// hwPhase is what a direction has next.
type hwPhase int

const (
	hwOpening hwPhase = iota // an operation; what of the other direction is not known yet
	hwReply                  // the answer to the operation
	hwPackets                // of a block, up to its end
	hwAcks
	hwStatus // a reader's last word
	hwDone   // a proxy's last word
	hwNothing
)

// hdfsWritable reads HDFS's data transfer protocol, versions 14 and 17 (0.20 and 1.x):
// one operation per connection, and fields without tags. Types:
//
//	hdfs WRITE_BLOCK, hdfs WRITE_BLOCK RECOVERY, hdfs READ_BLOCK, ...  operations
//	hdfs OPERATION reply, hdfs OPERATION reply STATUS  STATUS unless it is SUCCESS
//	hdfs packet, hdfs packet last, hdfs packet heartbeat
//	hdfs block end                                     no more packets
//	hdfs ack, hdfs ack heartbeat, hdfs ack STATUS      the first that is not SUCCESS
//	hdfs read status, hdfs read status STATUS          a reader's last word
//	hdfs COPY_BLOCK done                               the proxy's last word
//
// A write on behalf of a DataNode (no clientName) is neither answered nor acknowledged.
// Fields are those of hdfsData, and isRecovery. An ack does not tell its length in version 14:
// it has a status of each DataNode from its sender on, as many as the operation has targets,
// and one. Where the operation was not seen, two acks in a row tell it.
type hdfsWritable struct {
	phase   [2]hwPhase
	version int    // 0: the operation was not seen
	op      string // "": the operation was not seen
	block   string
	replies int // statuses of an ack; 0 not known
	chunk   int // bytes per checksum; 0 not known
}

func newHDFSWritable() Dissector {
	p := newFramedPair(&hdfsWritable{})
	p.d[0].keep, p.d[1].keep = hdfsKeep, hdfsKeep
	return p
}

func (h *hdfsWritable) size(dir int, b []byte) int64 {
	switch h.phase[dir] {
	case hwOpening:
		return h.opening(dir, b)
	case hwReply:
		return h.replySize(b)
	case hwPackets:
		return hwPacketSize(b)
	case hwAcks:
		n := hwAckSize(b, h.version, h.replies)
		if h.op == "" && n > 0 { // found by its bytes, and by chance perhaps
			ok, more := hwReplies(b[:min(int64(len(b)), n)], h.version, n)
			switch {
			case more:
				return 0
			case !ok:
				return -1
			}
		}
		return n
	case hwStatus, hwDone:
		if len(b) < 2 {
			return 0
		}
		return 2
	}
	return -1
}

// opening is the size of an operation, or of what a connection has that was under way.
func (h *hdfsWritable) opening(dir int, b []byte) int64 {
	if n := hwOperationSize(b); n >= 0 {
		return n
	}
	ok, more := h.starts(dir, b[:min(len(b), frameLook)])
	switch {
	case ok:
		return h.size(dir, b)
	case more && len(b) < frameLook:
		return 0
	}
	return -1
}

// hwPacketSize is the size of a packet or of the mark behind the last.
func hwPacketSize(b []byte) int64 {
	if len(b) < 4 {
		return 0
	}
	n := int32(binary.BigEndian.Uint32(b))
	switch {
	case n == 0:
		return 4
	case n < 4 || n > hwPacketMax:
		return -1
	}
	return hwPacketHeader + int64(n)
}

// hwAckSize is that of an ack (DataTransferProtocol.PipelineAck).
func hwAckSize(b []byte, version, replies int) int64 {
	if len(b) < 8 {
		return 0
	}
	seqno := int64(binary.BigEndian.Uint64(b))
	switch {
	case seqno < hwUnknownSeqno || seqno > hwSeqnoMax:
		return -1
	case version == hwVersion14 && seqno == hwHeartbeat:
		return 8
	case version == hwVersion14:
		return 8 + 2*int64(replies)
	case len(b) < 10:
		return 0
	}
	n := int64(int16(binary.BigEndian.Uint16(b[8:])))
	if n < 0 || n > hwTargets {
		return -1
	}
	return 10 + 2*n
}

// starts finds packets and acks: an operation is at the start of its connection only.
func (h *hdfsWritable) starts(dir int, b []byte) (ok, more bool) {
	phase := h.phase[dir]
	if phase == hwOpening || phase == hwPackets || phase == hwReply && h.sendsBlock() {
		if ok, more = h.packetStarts(b); ok {
			h.phase[dir] = hwPackets
			return true, false
		}
	}
	if phase == hwOpening || phase == hwAcks || phase == hwReply && h.op == "WRITE_BLOCK" {
		version, replies, wait := h.acksStart(b)
		if version != 0 {
			h.phase[dir], h.version, h.replies = hwAcks, version, replies
			return true, false
		}
		more = more || wait
	}
	return false, more
}

// sendsBlock tells whether the operation is answered by packets.
func (h *hdfsWritable) sendsBlock() bool { return h.op == "READ_BLOCK" || h.op == "COPY_BLOCK" }

// packetStarts checks the header of a packet against the length of its data.
func (h *hdfsWritable) packetStarts(b []byte) (ok, more bool) {
	n := hwPacketSize(b)
	switch {
	case n == 4 || n < 0 || n > hdfsPacketMax:
		return false, false
	case len(b) < hwPacketHeader+4:
		return false, true
	}
	p := hwPacketOf(b)
	sums := n - hwPacketHeader - 4 - p.data
	switch {
	case p.offset < 0 || p.offset > frameMax || p.seqno < hwHeartbeat || p.seqno > hwSeqnoMax || b[20] > 1 || sums%4 != 0:
		return false, false
	case p.data == 0: // a block without data has a checksum even so (TestDataTransferProtocol)
		return sums <= 4 && (p.last || p.seqno == hwHeartbeat), false
	case sums == 0: // CHECKSUM_NULL
		return true, false
	case h.chunk > 0:
		return sums/4 == (p.data+int64(h.chunk)-1)/int64(h.chunk), false
	}
	for chunk := int64(16); chunk <= 1<<20; chunk *= 2 { // io.bytes.per.checksum
		if sums/4 == (p.data+chunk-1)/chunk {
			return true, false
		}
	}
	return false, false
}

// acksStart looks for two acks in a row and returns their version and, of version 14, number
// of replies; version 0 if there are none.
func (h *hdfsWritable) acksStart(b []byte) (version, replies int, more bool) {
	if len(b) < 10 {
		return 0, 0, true
	}
	if h.op == "" && binary.BigEndian.Uint64(b) == 0 { // zeros, and a 1 behind them, are not rare
		return 0, 0, false
	}
	if n := int(binary.BigEndian.Uint16(b[8:])); h.version != hwVersion14 && n > 0 && n <= hwPipelineMax {
		ok, wait := hwAckPair(b, hwVersion17, 10+2*n)
		switch {
		case ok:
			return hwVersion17, 0, false
		case wait:
			return 0, 0, true
		}
	}
	if h.version == hwVersion17 {
		return 0, 0, false
	}
	least, most := 1, hwPipelineMax
	if h.replies > 0 {
		least, most = h.replies, h.replies
	}
	for n := least; n <= most; n++ {
		ok, wait := hwAckPair(b, hwVersion14, 8+2*n)
		switch {
		case ok:
			return hwVersion14, n, false
		case wait:
			return 0, 0, true
		}
	}
	return 0, 0, false
}

// hwAckPair checks an ack of n bytes and the sequence number of the next.
func hwAckPair(b []byte, version, n int) (ok, more bool) {
	seqno := int64(binary.BigEndian.Uint64(b))
	if seqno < 0 || seqno > hwSeqnoMax {
		return false, false
	}
	if ok, more = hwReplies(b[:min(len(b), n)], version, int64(n)); !ok {
		return false, more
	}
	if len(b) < n+8 {
		return false, true
	}
	return int64(binary.BigEndian.Uint64(b[n:])) == seqno+1, false
}

// hwReplies checks the statuses of an ack of n bytes, of which b are there.
func hwReplies(b []byte, version int, n int64) (ok, more bool) {
	at := 8
	if version == hwVersion17 {
		at = 10
	}
	for ; at+2 <= len(b); at += 2 {
		if binary.BigEndian.Uint16(b[at:]) > hwStatusMax {
			return false, false
		}
	}
	return int64(len(b)) == n, int64(len(b)) < n
}

func (h *hdfsWritable) read(dir int, f frameHead) []Unit {
	var u Unit
	switch {
	case f.total == 0:
		return []Unit{{Type: model.TypeUnknown}}
	case h.phase[dir] == hwOpening:
		return []Unit{h.operation(dir, f.b)}
	case h.phase[dir] == hwReply:
		u = h.reply(dir, f.b)
	case h.phase[dir] == hwPackets:
		u = h.packet(dir, f)
	case h.phase[dir] == hwAcks:
		u = h.ack(f.b)
	case h.phase[dir] == hwStatus:
		u = h.withStatus("hdfs read status", &writable{b: f.b})
		h.phase[dir] = hwNothing
	default:
		u = Unit{Type: "hdfs COPY_BLOCK done"}
		h.phase[dir] = hwNothing
	}
	if h.block != "" {
		u.Fields = append(u.Fields, model.Field{Name: "op.block", Value: h.block})
	}
	return []Unit{u}
}

// hwPacket is the header of a packet (BlockSender.sendChunks, DFSClient.DFSOutputStream.Packet).
type hwPacket struct {
	offset, seqno, data int64
	last                bool
}

func hwPacketOf(b []byte) hwPacket {
	w := &writable{b: b[4:]}
	return hwPacket{offset: w.int64(), seqno: w.int64(), last: w.uint8() != 0, data: int64(w.int32())}
}

func (h *hdfsWritable) packet(dir int, f frameHead) Unit {
	if f.total == 4 {
		switch h.op {
		case "READ_BLOCK":
			h.phase[dir] = hwNothing
		case "COPY_BLOCK":
			h.phase[dir] = hwDone
		} // a client that writes may say it again when it closes (DFSOutputStream.closeInternal)
		return Unit{Type: "hdfs block end"}
	}
	u := Unit{Type: "hdfs packet"}
	if len(f.b) < hwPacketHeader+4 {
		return u
	}
	p := hwPacketOf(f.b)
	u.Fields = []model.Field{
		{Name: "offsetInBlock", Value: strconv.FormatInt(p.offset, 10)},
		{Name: "seqno", Value: strconv.FormatInt(p.seqno, 10)},
		{Name: "lastPacketInBlock", Value: strconv.FormatBool(p.last)},
		{Name: "dataLen", Value: strconv.FormatInt(p.data, 10)},
	}
	switch {
	case p.seqno == hwHeartbeat:
		u.Type += " heartbeat"
	case p.last:
		u.Type += " last"
	}
	return u
}

// ack types an acknowledgement by the first DataNode of the pipeline that does not say SUCCESS.
func (h *hdfsWritable) ack(b []byte) Unit {
	w := &writable{b: b}
	u := Unit{Type: "hdfs ack"}
	seqno := w.int64()
	if w.bad {
		return u
	}
	u.Fields = []model.Field{{Name: "seqno", Value: strconv.FormatInt(seqno, 10)}}
	if seqno == hwHeartbeat {
		u.Type += " heartbeat"
	}
	if h.version == hwVersion17 {
		w.int16()
	}
	var reply strings.Builder
	bad := ""
	for i := 0; len(w.b) >= 2; i++ {
		s := h.status(w.int16())
		if bad == "" && s != "SUCCESS" {
			bad = s
		}
		if i >= pbList {
			continue
		}
		if i > 0 {
			reply.WriteByte(',')
		}
		reply.WriteString(s)
	}
	if reply.Len() > 0 {
		u.Fields = append(u.Fields, model.Field{Name: "reply", Value: cut(reply.String(), pbValue)})
	}
	u.Type = hdfsWith(u.Type, bad)
	return u
}

package classify

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"netsplit/model"
)

// Numbers of the data transfer protocol (org.apache.hadoop.hdfs.protocol.
// datatransfer: DataTransferProtocol, Op, PacketHeader, PacketReceiver).
const (
	hdfsVersion   = 28        // DATA_TRANSFER_VERSION, since 2.0
	hdfsMessage   = 64 << 10  // longest header or answer believed
	hdfsPacketMax = 16 << 20  // MAX_PACKET_SIZE
	hdfsHeaderMin = 25        // PacketHeaderProto without its last field
	hdfsHeaderMax = 64        // room for fields to come
	hdfsKeep      = 128 << 10 // a packet of the usual 64 KiB of data is one unit
)

var hdfsMagic = []byte{0xDE, 0xAD, 0xBE, 0xEF} // DataTransferSaslUtil.SASL_TRANSFER_MAGIC_NUMBER

// hdfsOp is an operation of the protocol, and what it takes.
type hdfsOp struct {
	name string
	typ  *pbType
}

var hdfsOps = map[byte]hdfsOp{
	80:  {"WRITE_BLOCK", hadoopTable.types["hdfs.OpWriteBlockProto"]},
	81:  {"READ_BLOCK", hadoopTable.types["hdfs.OpReadBlockProto"]},
	82:  {"READ_METADATA", nil},
	83:  {"REPLACE_BLOCK", hadoopTable.types["hdfs.OpReplaceBlockProto"]},
	84:  {"COPY_BLOCK", hadoopTable.types["hdfs.OpCopyBlockProto"]},
	85:  {"BLOCK_CHECKSUM", hadoopTable.types["hdfs.OpBlockChecksumProto"]},
	86:  {"TRANSFER_BLOCK", hadoopTable.types["hdfs.OpTransferBlockProto"]},
	87:  {"REQUEST_SHORT_CIRCUIT_FDS", hadoopTable.types["hdfs.OpRequestShortCircuitAccessProto"]},
	88:  {"RELEASE_SHORT_CIRCUIT_FDS", hadoopTable.types["hdfs.ReleaseShortCircuitAccessRequestProto"]},
	89:  {"REQUEST_SHORT_CIRCUIT_SHM", hadoopTable.types["hdfs.ShortCircuitShmRequestProto"]},
	90:  {"BLOCK_GROUP_CHECKSUM", hadoopTable.types["hdfs.OpBlockGroupChecksumProto"]},
	127: {"CUSTOM", nil},
}

var (
	hdfsPacket     = hadoopTable.types["hdfs.PacketHeaderProto"]
	hdfsAck        = hadoopTable.types["hdfs.PipelineAckProto"]
	hdfsResponse   = hadoopTable.types["hdfs.BlockOpResponseProto"]
	hdfsReadStatus = hadoopTable.types["hdfs.ClientReadStatusProto"]
	hdfsSASL       = hadoopTable.types["hdfs.DataTransferEncryptorMessageProto"]
)

// hdfsData reads HDFS's data transfer protocol, version 28 (2.x and 3.x): what
// the data port of a DataNode speaks. Types:
//
//	hdfs WRITE_BLOCK STAGE, hdfs READ_BLOCK, ...      operations
//	hdfs OPERATION reply, hdfs OPERATION reply STATUS  STATUS unless it is SUCCESS
//	hdfs reply                                         the operation was not seen
//	hdfs packet, hdfs packet last, hdfs packet heartbeat
//	hdfs ack, hdfs ack heartbeat, hdfs ack STATUS      the first that is not SUCCESS
//	hdfs read status, hdfs read status STATUS          a reader's last word
//	hdfs sasl                                          negotiation; what follows may be encrypted
//
// Fields are those of the messages, see pbFieldsOf; header.baseHeader of an
// operation is left out of their paths. What belongs to an operation has the
// field op.block, such as blk_1073741825_1001. Data and checksums are not read.
type hdfsData struct {
	client  int // direction of the operations
	sure    bool
	op      string // the last operation; "" not seen
	stage   string // of a WRITE_BLOCK
	block   string
	replied bool
	sasl    bool
}

func newHDFSData() Dissector {
	p := newFramedPair(&hdfsData{})
	p.d[0].keep, p.d[1].keep = hdfsKeep, hdfsKeep
	return p
}

func (h *hdfsData) size(_ int, b []byte) int64 {
	if b[0] == 0 {
		if len(b) < 7 {
			return 0
		}
		if b[4] == 0 && b[5] >= hdfsHeaderMin && b[5] <= hdfsHeaderMax && b[6] == 0x09 {
			n := int64(binary.BigEndian.Uint32(b))
			if n < 4 || n > hdfsPacketMax {
				return -1
			}
			return n + 2 + int64(b[5])
		}
		if _, ok := hdfsOps[b[2]]; !ok || b[1] != hdfsVersion {
			return -1
		}
		return hdfsDelimited(3, b)
	}
	if n := min(len(b), len(hdfsMagic)); bytes.Equal(b[:n], hdfsMagic[:n]) {
		if n < len(hdfsMagic) {
			return 0
		}
		return int64(n)
	}
	n := hdfsDelimited(0, b)
	if n <= 0 {
		return n
	}
	_, k := protowire.ConsumeVarint(b)
	if len(b) == k {
		return 0
	}
	if b[k] != 0x08 { // a status or a sequence number comes first
		return -1
	}
	return n
}

// hdfsDelimited is the length of a message behind at bytes and its own length.
func hdfsDelimited(at int, b []byte) int64 {
	n, k := protowire.ConsumeVarint(b[at:])
	switch {
	case k < 0 && len(b)-at >= 3, k > 0 && (n < 2 || n > hdfsMessage):
		return -1
	case k < 0:
		return 0
	}
	return int64(at+k) + int64(n)
}

func (h *hdfsData) starts(dir int, b []byte) (ok, more bool) {
	n := h.size(dir, b)
	if n <= 0 {
		return false, n == 0
	}
	if b[0] == 0 && b[4] == 0 {
		size := 6 + int(b[5])
		if len(b) < size {
			return false, true
		}
		return hdfsIsPacket(hdfsPacket.decode(b[6:size], false), int64(binary.BigEndian.Uint32(b))), false
	}
	if b[0] == 0 {
		return b[3]&0x80 != 0 || b[3] > 16, false
	}
	if n > frameLook || bytes.HasPrefix(b, hdfsMagic) {
		return bytes.HasPrefix(b, hdfsMagic), false
	}
	if int64(len(b)) < n {
		return false, true
	}
	msg, _, _ := pbDelimited(b[:n])
	return len(msg) >= 6 && hdfsIsAck(msg), false
}

// hdfsIsPacket checks a packet's header against its length.
func hdfsIsPacket(m pbMessage, n int64) bool {
	data, ok := m.last(4)
	_, off := m.last(1)
	_, seq := m.last(2)
	size := int64(data.num)
	return !m.cut && ok && off && seq && m.num(3) <= 1 && size <= n-4 && (size > 0 || n == 4)
}

// hdfsIsAck tells an acknowledgement from the answer to an operation: its
// second field is a list of numbers, not a text.
func hdfsIsAck(msg []byte) bool {
	m := hdfsAck.decode(msg, false)
	if m.cut || bytes.IndexByte(msg, 0x10) < 0 {
		return false
	}
	replies := 0
	for _, o := range m.occs {
		if o.f.num == 2 {
			replies++
			if _, known := o.f.typ.names[o.num]; !known {
				return false
			}
		}
	}
	r := hdfsResponse.decode(msg, false)
	_, link := r.last(2)
	_, sum := r.last(3)
	return replies > 0 && !link && !sum
}

func (h *hdfsData) read(dir int, f frameHead) []Unit {
	b := f.b
	var u Unit
	switch {
	case f.total == 0:
		u = Unit{Type: model.TypeUnknown}
	case b[0] == 0 && b[4] == 0:
		u = h.packet(b)
	case b[0] == 0:
		h.client, h.sure = dir, true
		u = h.operation(b)
	case bytes.HasPrefix(b, hdfsMagic):
		h.client, h.sure, h.sasl = dir, true, true
		u = Unit{Type: "hdfs sasl"}
	default:
		msg, _, ok := pbDelimited(b)
		u = h.answer(dir, msg, !ok)
	}
	return []Unit{u}
}

func (h *hdfsData) packet(b []byte) Unit {
	size := min(6+int(b[5]), len(b))
	m := hdfsPacket.decode(b[6:size], size < 6+int(b[5]))
	u := Unit{Type: "hdfs packet", Fields: h.about(pbFieldsOf(m))}
	switch {
	case int64(m.num(2)) == -1: // HEART_BEAT_SEQNO
		u.Type += " heartbeat"
	case m.num(3) == 1:
		u.Type += " last"
	}
	return u
}

// about adds the block the connection is about.
func (h *hdfsData) about(fields []model.Field) []model.Field {
	if h.block == "" {
		return fields
	}
	return append(fields, model.Field{Name: "op.block", Value: h.block})
}

func (h *hdfsData) operation(b []byte) Unit {
	op := hdfsOps[b[2]]
	h.op, h.stage, h.block, h.replied, h.sasl = op.name, "", "", false, false
	u := Unit{Type: "hdfs " + op.name}
	if op.typ == nil {
		return u
	}
	msg, _, ok := pbDelimited(b[3:])
	m := op.typ.decode(msg, !ok)
	for _, f := range pbFieldsOf(m) {
		f.Name = strings.TrimPrefix(f.Name, "header.")
		f.Name = strings.TrimPrefix(f.Name, "baseHeader.")
		if f.Name == "block" {
			h.block = f.Value
		}
		u.Fields = append(u.Fields, f)
	}
	if op.name == "WRITE_BLOCK" {
		if stage := m.text(4); hrpcIdent(stage) {
			h.stage = stage
			u.Type += " " + stage
		}
	}
	return u
}

// answer types what stands behind its own length: an answer to an operation,
// an acknowledgement, a reader's last word, or a step of a negotiation.
func (h *hdfsData) answer(dir int, msg []byte, cut bool) Unit {
	switch {
	case h.sasl:
		return Unit{Type: "hdfs sasl", Fields: hdfsStatus(hdfsSASL.decode(msg, cut))}
	case h.sure && dir == h.client:
		m := hdfsReadStatus.decode(msg, cut)
		return Unit{Type: hdfsWith("hdfs read status", m.text(1)), Fields: h.about(pbFieldsOf(m))}
	}
	transfer := strings.HasPrefix(h.stage, "TRANSFER_")
	if h.op == "WRITE_BLOCK" && h.replied && !transfer || h.op == "" && hdfsIsAck(msg) {
		return h.ack(hdfsAck.decode(msg, cut))
	}
	m := hdfsResponse.decode(msg, cut)
	h.replied = h.op == "WRITE_BLOCK"
	u := Unit{Type: "hdfs reply", Fields: h.about(pbFieldsOf(m))}
	if h.op != "" {
		u.Type = "hdfs " + h.op + " reply"
	}
	u.Type = hdfsWith(u.Type, m.text(1))
	return u
}

// ack types an acknowledgement by the first DataNode of the pipeline that does
// not say SUCCESS.
func (h *hdfsData) ack(m pbMessage) Unit {
	u := Unit{Type: "hdfs ack", Fields: h.about(pbFieldsOf(m))}
	if protowire.DecodeZigZag(m.num(1)) == -1 {
		u.Type += " heartbeat"
	}
	i := slices.IndexFunc(m.occs, func(o pbOcc) bool { return o.f.num == 2 && o.num != 0 })
	if i >= 0 {
		u.Type = hdfsWith(u.Type, m.occs[i].f.scalar(m.occs[i]))
	}
	return u
}

func hdfsStatus(m pbMessage) []model.Field {
	return []model.Field{{Name: "status", Value: m.text(1)}}
}

// hdfsWith adds a status to a type where it is an exception: the statuses
// are few (enumeration Status in datatransfer.proto).
func hdfsWith(typ, status string) string {
	if status == "SUCCESS" || status == "CHECKSUM_OK" || !hrpcIdent(status) {
		return typ
	}
	return typ + " " + status
}

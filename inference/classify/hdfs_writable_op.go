package classify

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"netsplit/model"
)

const (
	hwText         = 8 << 10 // longest text believed
	hwTargets      = 512     // most DataNodes of a pipeline believed (dfs.replication.max)
	hwReadMetadata = 82      // until version 14
	hwStatusMax    = 6
)

// hwOps are the operations of versions 14 and 17.
var hwOps = map[byte]bool{80: true, 81: true, 82: true, 83: true, 84: true, 85: true}

// hwStatuses are OP_STATUS_* of DataTransferProtocol.
var hwStatuses = map[int][]string{
	hwVersion14: {"SUCCESS", "ERROR", "ERROR_CHECKSUM", "ERROR_INVALID", "ERROR_EXISTS", "CHECKSUM_OK"},
	hwVersion17: {"SUCCESS", "ERROR", "ERROR_CHECKSUM", "ERROR_INVALID", "ERROR_EXISTS", "ERROR_ACCESS_TOKEN", "CHECKSUM_OK"},
}

func (h *hdfsWritable) status(n int16) string {
	if names := hwStatuses[h.version]; n >= 0 && int(n) < len(names) {
		return names[n]
	}
	return strconv.Itoa(int(n))
}

// withStatus reads the status that a message begins with.
func (h *hdfsWritable) withStatus(typ string, w *writable) Unit {
	n := w.int16()
	if w.bad {
		return Unit{Type: typ}
	}
	s := h.status(n)
	return Unit{Type: hdfsWith(typ, s), Fields: []model.Field{{Name: "status", Value: s}}}
}

// hwOperation reads an operation (DataXceiver.run and the method of each operation). never
// says that no more bytes make it one.
type hwOperation struct {
	writable
	never  bool
	fields []model.Field

	version, code int
	block         string
	client        string
	recovery      bool
	targets       int // DataNodes behind the receiver
	chunk         int
}

func hwOperationOf(b []byte) *hwOperation {
	o := &hwOperation{writable: writable{b: b}}
	o.version, o.code = int(o.int16()), int(o.uint8())
	o.never = len(b) > 0 && b[0] != 0 || len(b) > 1 && hwStatuses[int(b[1])] == nil ||
		len(b) > 2 && (!hwOps[b[2]] || b[2] == hwReadMetadata && b[1] != hwVersion14)
	if o.never || o.bad {
		return o
	}
	id, stamp := o.int64(), o.int64()
	if !o.bad {
		o.block = fmt.Sprintf("blk_%d_%d", id, stamp)
		o.add("block", o.block)
	}
	switch hdfsOps[byte(o.code)].name {
	case "WRITE_BLOCK":
		o.write()
	case "READ_BLOCK":
		o.number("offset", o.int64())
		o.number("len", o.int64())
		o.add("clientName", o.short())
		o.token()
	case "REPLACE_BLOCK":
		o.add("delHint", o.short())
		o.source()
		o.token()
	default:
		o.token()
	}
	return o
}

// hwOperationSize is the size of an operation that b begins with, as framed.size says it.
func hwOperationSize(b []byte) int64 {
	o := hwOperationOf(b)
	switch {
	case o.never:
		return -1
	case o.bad:
		return 0
	}
	return int64(len(b) - len(o.b))
}

// write reads DataXceiver.writeBlock.
func (o *hwOperation) write() {
	o.number("pipelineSize", int64(o.int32()))
	o.recovery = o.uint8() != 0
	if !o.bad {
		o.add("isRecovery", strconv.FormatBool(o.recovery))
	}
	o.client = o.short()
	o.add("clientName", o.client)
	if o.uint8() != 0 {
		o.source()
	}
	o.targets = int(o.int32())
	if o.targets < 0 || o.targets > hwTargets {
		o.never = true
		return
	}
	var lines strings.Builder
	more := false
	for i := 0; i < o.targets && !o.bad && !o.never; i++ {
		name, rest := o.node()
		line := strings.Join(append([]string{name}, hwWords(rest)...), " ") + "\n"
		if more = more || lines.Len()+len(line) > pbText; !more {
			lines.WriteString(line)
		}
	}
	if more {
		lines.WriteString("…")
	}
	o.add("targets", lines.String())
	o.token()
	o.chunk = o.checksum("requestedChecksum.")
}

// checksum reads DataChecksum.writeHeader and returns the bytes per checksum.
func (o *hwOperation) checksum(prefix string) int {
	kind, n := o.uint8(), int(o.int32())
	if o.bad {
		return 0
	}
	name := strconv.Itoa(int(kind))
	if names := []string{"CHECKSUM_NULL", "CHECKSUM_CRC32"}; int(kind) < len(names) {
		name = names[kind]
	}
	o.add(prefix+"type", name)
	o.number(prefix+"bytesPerChecksum", int64(n))
	return n
}

// source reads a DataNode that is named in an operation.
func (o *hwOperation) source() {
	name, rest := o.node()
	o.add("source", name)
	for _, f := range rest {
		o.add("source."+f.Name, f.Value)
	}
}

// node reads DatanodeInfo.write, in the words of DatanodeInfoProto: its address and the rest.
func (o *hwOperation) node() (name string, rest []model.Field) {
	name, storage := o.utf8(), o.utf8()
	info, ipc := uint16(o.int16()), uint16(o.int16())
	capacity, used, remaining, updated := o.int64(), o.int64(), o.int64(), o.int64()
	xceivers := o.int32()
	location, host, admin := o.short(), o.short(), o.short()
	if o.bad || o.never {
		return "", nil
	}
	n := hwOperation{}
	n.add("id.hostName", host)
	n.add("id.datanodeUuid", storage)
	n.number("id.infoPort", int64(info))
	n.number("id.ipcPort", int64(ipc))
	n.number("capacity", capacity)
	n.number("dfsUsed", used)
	n.number("remaining", remaining)
	n.number("lastUpdate", updated)
	n.number("xceiverCount", int64(xceivers))
	n.add("location", location)
	n.add("adminState", admin)
	return pbString([]byte(name)), n.fields
}

func hwWords(fields []model.Field) (out []string) {
	for _, f := range fields {
		out = append(out, f.Name+"="+quoted(f.Value))
	}
	return out
}

// token passes over the right to an operation (security.token.Token.write), since version 17.
func (o *hwOperation) token() {
	if o.version == hwVersion14 {
		return
	}
	for range 4 { // identifier, password, kind, service
		o.short()
	}
}

// short reads a text that is not longer than those of this protocol.
func (o *hwOperation) short() string {
	n := o.vlong()
	if o.bad {
		return ""
	}
	if n < 0 || n > hwText {
		o.never = true
		return ""
	}
	return string(o.take(int(n)))
}

func (o *hwOperation) add(name, value string) {
	if value != "" && !o.never {
		o.fields = append(o.fields, model.Field{Name: name, Value: value})
	}
}

func (o *hwOperation) number(name string, n int64) {
	if !o.bad {
		o.add(name, strconv.FormatInt(n, 10))
	}
}

// operation reads an operation, and says what comes behind it in both directions.
func (h *hdfsWritable) operation(dir int, b []byte) Unit {
	o := hwOperationOf(b)
	h.version, h.op, h.block, h.chunk = o.version, hdfsOps[byte(o.code)].name, o.block, o.chunk
	h.phase[dir], h.phase[1-dir] = hwNothing, hwReply
	u := Unit{Type: "hdfs " + h.op}
	for _, f := range o.fields {
		if f.Name != "targets" {
			f.Value = pbString([]byte(f.Value))
		}
		u.Fields = append(u.Fields, f)
	}
	switch h.op {
	case "WRITE_BLOCK":
		h.phase[dir] = hwPackets
		if o.recovery {
			u.Type += " RECOVERY"
		}
		if o.client == "" {
			h.phase[1-dir] = hwNothing
		}
		if h.version == hwVersion14 {
			h.replies = o.targets + 1
		}
	case "READ_BLOCK":
		h.phase[dir] = hwStatus
	}
	return u
}

// replySize is the size of the answer to the operation.
func (h *hdfsWritable) replySize(b []byte) int64 {
	status := int64(2)
	if h.version == hwVersion14 {
		switch h.op {
		case "WRITE_BLOCK":
			return hwTextSize(0, b)
		case "COPY_BLOCK": // DataXceiver.copyBlock says nothing where it fails
			return 5
		case "READ_METADATA": // a byte, length, bytes, 0
			if len(b) < 5 {
				return 0
			}
			n := int64(int32(binary.BigEndian.Uint32(b[1:])))
			if n < 0 {
				return -1
			}
			return 5 + n + 4
		}
	}
	if len(b) < 2 {
		return 0
	}
	if h.op == "WRITE_BLOCK" {
		return hwTextSize(2, b)
	}
	if b[0] != 0 || b[1] != 0 {
		return status
	}
	switch h.op {
	case "READ_BLOCK": // DataChecksum.writeHeader, offset
		return status + 5 + 8
	case "COPY_BLOCK":
		return status + 5
	case "BLOCK_CHECKSUM": // int, long, MD5
		return status + 4 + 8 + 16
	}
	return status
}

// hwTextSize is the size of a message that ends with a text at this place.
func hwTextSize(at int, b []byte) int64 {
	o := hwOperation{writable: writable{b: b[at:]}}
	n := o.vlong()
	switch {
	case o.bad:
		return 0
	case n < 0 || n > hwText:
		return -1
	}
	return int64(len(b)-len(o.b)) + n
}

// reply reads the answer to the operation, and says what comes behind it.
func (h *hdfsWritable) reply(dir int, b []byte) Unit {
	h.phase[dir] = hwNothing
	typ := "hdfs " + h.op + " reply"
	o := &hwOperation{writable: writable{b: b}}
	u := Unit{Type: typ}
	switch {
	case h.op == "READ_METADATA":
		o.uint8()
		o.number("length", int64(o.int32()))
		u.Fields = o.fields
		return u
	case h.version == hwVersion17 || h.op != "WRITE_BLOCK" && h.op != "COPY_BLOCK":
		u = h.withStatus(typ, &o.writable)
	}
	done := len(o.b) == 0 // or it has failed
	switch h.op {
	case "WRITE_BLOCK":
		h.phase[dir] = hwAcks
		o.add("firstBadLink", pbString([]byte(o.short())))
		if h.version == hwVersion14 && len(o.fields) > 0 { // which has no other status
			u.Type = hdfsWith(typ, "ERROR")
		}
	case "READ_BLOCK", "COPY_BLOCK":
		if done {
			break
		}
		h.phase[dir] = hwPackets
		h.chunk = o.checksum("readOpChecksumInfo.checksum.")
		if h.op == "READ_BLOCK" {
			o.number("readOpChecksumInfo.chunkOffset", o.int64())
		}
	case "BLOCK_CHECKSUM":
		if done {
			break
		}
		o.number("checksumResponse.bytesPerCrc", int64(o.int32()))
		o.number("checksumResponse.crcPerBlock", o.int64())
		if sum := o.take(16); sum != nil {
			o.add("checksumResponse.blockChecksum", hex.EncodeToString(sum))
		}
	}
	u.Fields = append(u.Fields, o.fields...)
	return u
}

package classify

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"netsplit/model"
)

// Sizes and numbers of Hadoop's RPC (org.apache.hadoop.ipc: RpcConstants,
// Server.Connection, ProtobufRpcEngine, WritableRpcEngine).
const (
	hrpcGreeting = 7         // "hrpc", version, service class, authentication
	hrpcMax      = 256 << 20 // longest message believed; ipc.maximum.data.length is 64 or 128 MiB
	hrpcHeader   = 16 << 10  // longest header believed
	hrpcPending  = 4096      // calls without an answer kept
	hrpcNames    = 64        // methods of unknown protocols told apart on a connection
	hrpcName     = 64        // longest method or protocol name in a type

	hrpcCallContext = -3  // CONNECTION_CONTEXT_CALL_ID
	hrpcCallPing    = -4  // PING_CALL_ID
	hrpcCallSASL    = -33 // AuthProtocol.SASL.callId
)

var (
	hrpcRequestHeader  = hadoopTable.types["common.RpcRequestHeaderProto"]
	hrpcResponseHeader = hadoopTable.types["common.RpcResponseHeaderProto"]
	hrpcMethodHeader   = hadoopTable.types["common.RequestHeaderProto"]
	hrpcContext        = hadoopTable.types["common.IpcConnectionContextProto"]
	hrpcToken          = hadoopTable.types["yarn.AMRMTokenIdentifierProto"]
	hrpcSASL           = hadoopTable.types["common.RpcSaslProto"]
)

// hadoopRPC reads Hadoop's RPC, version 9 (2.x and 3.x): the greeting "hrpc",
// then messages of a 4-byte length, a header and a body. Types:
//
//	rpc greeting, rpc context, rpc keepalive, rpc sasl STATE, rpc sasl error
//	rpc METHOD, rpc METHOD reply, rpc METHOD error
//	rpc reply unmatched, rpc error unmatched    the request was not seen
//
// METHOD is the name as it is on the wire, with the protocol behind it
// ("journal QJournalProtocol") where protocols have methods of that name that
// take different things. Fields: those of the headers (rpc.protocol,
// rpc.method, rpc.call, rpc.retry, rpc.exception, rpc.message; rpc.attempt where
// a token of YARN opened the connection), then those of the body, see
// pbFieldsOf.
type hadoopRPC struct {
	client  int  // direction of the requests
	sure    bool // client is known, not assumed
	pending map[int32]hrpcCall
	attempt string          // application attempt whose token opened the connection
	names   map[string]bool // methods the table does not know, at most hrpcNames
	order   []int32         // calls in pending, oldest first; may hold some that are gone
}

// hrpcCall is a request that waits for its answer.
type hrpcCall struct {
	label  string // METHOD of the types
	method pbMethod
	known  bool   // method is in the table
	engine uint64 // rpcKind
}

func newHadoopRPC() Dissector {
	return newFramedPair(&hadoopRPC{pending: map[int32]hrpcCall{}, names: map[string]bool{}})
}

func (h *hadoopRPC) size(_ int, b []byte) int64 {
	if len(b) < 4 {
		return 0
	}
	if bytes.HasPrefix(b, []byte("hrpc")) {
		return hrpcGreeting
	}
	n := int64(binary.BigEndian.Uint32(b))
	if n < 3 || n > hrpcMax {
		return -1
	}
	// Both headers start with their field 1, a number.
	size, k := protowire.ConsumeVarint(b[4:])
	if k < 0 {
		if len(b) >= 4+5 {
			return -1
		}
		return 0
	}
	if size == 0 || int64(size)+int64(k) > n || size > hrpcHeader {
		return -1
	}
	if len(b) == 4+k {
		return 0
	}
	if b[4+k] != 0x08 {
		return -1
	}
	return 4 + n
}

func (h *hadoopRPC) starts(dir int, b []byte) (ok, more bool) {
	if b[0] == 'h' {
		n := min(len(b), 4)
		return len(b) >= 5 && string(b[:5]) == "hrpc\x09", string(b[:n]) == "hrpc"[:n] && len(b) < 5
	}
	n := h.size(dir, b)
	if n <= 0 {
		return false, n == 0
	}
	size, k := protowire.ConsumeVarint(b[4:])
	b = b[4+k:]
	if size > frameLook-16 {
		return false, false
	}
	if uint64(len(b)) < size {
		return false, true
	}
	return hrpcIsRequest(b[:size]) || hrpcIsResponse(b[:size]), false
}

func hrpcIsRequest(b []byte) bool {
	m := hrpcRequestHeader.decode(b, false)
	id, ok := m.last(4)
	_, call := m.last(3)
	return !m.cut && ok && call && (len(id.b) == 16 || len(id.b) == 0) && m.num(1) <= 2 && m.num(2) <= 2
}

func hrpcIsResponse(b []byte) bool {
	m := hrpcResponseHeader.decode(b, false)
	id, ok := m.last(7)
	_, call := m.last(1)
	_, status := m.last(2)
	return !m.cut && call && status && m.num(2) <= 2 && m.num(3) == 9 && (!ok || len(id.b) == 16 || len(id.b) == 0)
}

func (h *hadoopRPC) read(dir int, f frameHead) []Unit {
	if bytes.HasPrefix(f.b, []byte("hrpc")) {
		h.client, h.sure = dir, true
		return []Unit{hrpcGreet(f.b)}
	}
	if len(f.b) < 5 {
		return []Unit{{Type: model.TypeUnknown}}
	}
	header, body, ok := pbDelimited(f.b[4:])
	if !h.sure && ok {
		switch req, resp := hrpcIsRequest(header), hrpcIsResponse(header); {
		case req && !resp:
			h.client, h.sure = dir, true
		case resp && !req:
			h.client, h.sure = 1-dir, true
		}
	}
	if !ok {
		return []Unit{{Type: model.TypeUnknown}}
	}
	if dir == h.client {
		return []Unit{h.request(header, body)}
	}
	return []Unit{h.response(header, body)}
}

func hrpcGreet(b []byte) Unit {
	u := Unit{Type: "rpc greeting"}
	if len(b) == hrpcGreeting {
		auth := strconv.Itoa(int(int8(b[6])))
		switch int8(b[6]) {
		case 0:
			auth = "NONE"
		case hrpcCallSASL:
			auth = "SASL"
		}
		u.Fields = []model.Field{{Name: "rpc.version", Value: strconv.Itoa(int(b[4]))}, {Name: "rpc.auth", Value: auth}}
	}
	return u
}

// pbDelimited cuts a message off that stands behind its length. ok is false
// where it is not there to its end.
func pbDelimited(b []byte) (msg, rest []byte, ok bool) {
	n, k := protowire.ConsumeVarint(b)
	if k < 0 || n > uint64(len(b)-k) {
		if k > 0 {
			return b[k:], nil, false
		}
		return nil, nil, false
	}
	b = b[k:]
	return b[:n], b[n:], true
}

// request types a message of the client.
func (h *hadoopRPC) request(header, body []byte) Unit {
	m := hrpcRequestHeader.decode(header, false)
	if _, ok := m.last(3); !ok || m.cut {
		return Unit{Type: model.TypeUnknown}
	}
	call := int32(protowire.DecodeZigZag(m.num(3)))
	switch call {
	case hrpcCallPing:
		return Unit{Type: "rpc keepalive"}
	case hrpcCallContext:
		ctx, _, ok := pbDelimited(body)
		return Unit{Type: "rpc context", Fields: pbFieldsOf(hrpcContext.decode(ctx, !ok))}
	case hrpcCallSASL:
		return h.sasl(body, nil)
	}
	c := hrpcCall{engine: m.num(1)}
	var protocol, name string
	var fields []model.Field
	switch c.engine {
	case 2: // RPC_PROTOCOL_BUFFER
		mh, rest, ok := pbDelimited(body)
		if !ok {
			return Unit{Type: model.TypeUnknown}
		}
		method := hrpcMethodHeader.decode(mh, false)
		name, protocol = method.text(1), method.text(2)
		c.method, c.known = hadoopTable.method(protocol, name)
		if msg, _, ok := pbDelimited(rest); c.known {
			fields = pbFieldsOf(c.method.in.decode(msg, !ok))
		}
	case 1: // RPC_WRITABLE
		name, protocol, fields = hrpcInvocation(body)
	default:
		return Unit{Type: model.TypeUnknown}
	}
	if !hrpcIdent(name) {
		return Unit{Type: model.TypeUnknown}
	}
	c.label = h.bounded(hrpcLabel(protocol, name), c.known)
	h.ask(call, c)
	head := []model.Field{{Name: "rpc.protocol", Value: cut(protocol, pbValue)}, {Name: "rpc.method", Value: name},
		{Name: "rpc.call", Value: strconv.Itoa(int(call))}}
	if h.attempt != "" {
		head = append(head, model.Field{Name: "rpc.attempt", Value: h.attempt})
	}
	if retry, ok := m.last(5); ok && protowire.DecodeZigZag(retry.num) > 0 {
		head = append(head, model.Field{Name: "rpc.retry", Value: m.text(5)})
	}
	return Unit{Type: "rpc " + c.label, Fields: append(head, fields...)}
}

// hrpcIdent accepts the names of Java methods and classes: letters, digits,
// '_' and '$', a letter first.
func hrpcIdent(s string) bool {
	if s == "" || len(s) > hrpcName || !isLetter(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i]; !isLetter(c) && (c < '0' || c > '9') && c != '_' && c != '$' {
			return false
		}
	}
	return true
}

func hrpcLabel(protocol, name string) string {
	if !hadoopTable.ambiguous(name) {
		return name
	}
	class := strings.TrimSuffix(protocol[strings.LastIndexByte(protocol, '.')+1:], "PB")
	if !hrpcIdent(class) {
		return name
	}
	return name + " " + class
}

// bounded is the label, or "other" for one more that the table does not know
// than a protocol would have. The methods of Hadoop's own encoding are few.
func (h *hadoopRPC) bounded(label string, known bool) string {
	switch {
	case known || h.names[label]:
	case len(h.names) >= hrpcNames:
		return "other"
	default:
		h.names[label] = true
	}
	return label
}

// ask notes a call; the oldest is forgotten when there are too many.
func (h *hadoopRPC) ask(call int32, c hrpcCall) {
	if _, again := h.pending[call]; !again {
		h.order = append(h.order, call)
	}
	h.pending[call] = c
	for len(h.pending) > hrpcPending || len(h.order) > 2*hrpcPending {
		delete(h.pending, h.order[0])
		h.order = h.order[1:]
	}
}

// response types a message of the server.
func (h *hadoopRPC) response(header, body []byte) Unit {
	m := hrpcResponseHeader.decode(header, false)
	if _, ok := m.last(1); !ok || m.cut {
		return Unit{Type: model.TypeUnknown}
	}
	call, status := int32(m.num(1)), m.num(2)
	head := []model.Field{{Name: "rpc.call", Value: strconv.Itoa(int(call))}}
	c, requested := h.pending[call]
	delete(h.pending, call)
	if len(h.pending) == 0 {
		h.order = h.order[:0]
	}
	if requested {
		head = append(head, model.Field{Name: "rpc.method", Value: c.label})
	}
	if status != 0 {
		head = append(head, hrpcError(m)...)
		switch {
		case call == hrpcCallSASL:
			return Unit{Type: "rpc sasl error", Fields: head}
		case !requested:
			return Unit{Type: "rpc error unmatched", Fields: head}
		}
		return Unit{Type: "rpc " + c.label + " error", Fields: head}
	}
	switch {
	case call == hrpcCallSASL:
		return h.sasl(body, head)
	case !requested:
		return Unit{Type: "rpc reply unmatched", Fields: head}
	case c.engine == 1:
		return Unit{Type: "rpc " + c.label + " reply", Fields: append(head, hrpcValue(body)...)}
	case c.known:
		msg, _, ok := pbDelimited(body)
		head = append(head, pbFieldsOf(c.method.out.decode(msg, !ok))...)
	}
	return Unit{Type: "rpc " + c.label + " reply", Fields: head}
}

// hrpcError shows why a call failed. The message is the first line of what may
// be a whole stack trace.
func hrpcError(m pbMessage) []model.Field {
	out := []model.Field{{Name: "rpc.status", Value: m.text(2)}}
	for _, f := range []struct {
		num  protowire.Number
		name string
	}{{4, "rpc.exception"}, {5, "rpc.message"}, {6, "rpc.detail"}} {
		if _, ok := m.last(f.num); ok {
			text, _, _ := strings.Cut(m.text(f.num), "\n")
			out = append(out, model.Field{Name: f.name, Value: text})
		}
	}
	return out
}

// sasl types a step of the negotiation; its content is not shown.
func (h *hadoopRPC) sasl(body []byte, head []model.Field) Unit {
	msg, _, ok := pbDelimited(body)
	m := hrpcSASL.decode(msg, !ok)
	state := m.text(2)
	if _, ok := m.last(2); !ok || !hrpcIdent(state) {
		return Unit{Type: "rpc sasl other"}
	}
	for _, f := range pbFieldsOf(m) {
		if f.Name == "auths" {
			head = append(head, f)
		}
	}
	if token, ok := m.last(3); ok && state == "INITIATE" {
		if h.attempt = hrpcAttempt(token.b); h.attempt != "" {
			head = append(head, model.Field{Name: "rpc.attempt", Value: h.attempt})
		}
	}
	return Unit{Type: "rpc sasl " + state, Fields: head}
}

// hrpcAttempt is the application attempt in the response of DIGEST-MD5: the
// user name is the identifier of a token of YARN (AMRMTokenIdentifier,
// NMTokenIdentifier, ClientToAMTokenIdentifier), whose first part it is.
func hrpcAttempt(token []byte) string {
	_, rest, ok := bytes.Cut(token, []byte(`username="`))
	name, _, ended := bytes.Cut(rest, []byte(`"`))
	if !ok || !ended {
		return ""
	}
	id := make([]byte, base64.StdEncoding.DecodedLen(len(name)))
	n, err := base64.StdEncoding.Decode(id, name)
	if err != nil {
		return ""
	}
	m := hrpcToken.decode(id[:n], false)
	attempt, ok := m.last(1)
	if !ok || m.cut {
		return ""
	}
	return short(attempt)
}

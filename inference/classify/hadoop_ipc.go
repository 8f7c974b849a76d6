package classify

import (
	"encoding/binary"
	"strconv"
	"strings"

	"netsplit/model"
)

// Numbers of Hadoop's RPC before protobuf (org.apache.hadoop.ipc: Client, Server; Status).
const (
	hipcVersion = 3  // Server.CURRENT_VERSION
	hipcSecure  = 4  // the same from 0.20.203 on
	hipcPing    = -1 // a length: the client only shows that it lives
	hipcError   = 1  // the call threw
	hipcFatal   = -1 // the connection is refused
	hipcKeep    = 256 << 10
	hipcCall    = 4 + 4 + 2 + 4 // length and id of a call, length of its name, number of its arguments
)

// hipcAuth are the ways to say who one is, behind the greeting of version 4 (SaslRpcServer.AuthMethod).
var hipcAuth = map[byte]string{80: "SIMPLE", 81: "KERBEROS", 82: "DIGEST"}

// hadoopWritable reads Hadoop's RPC of 0.20.0 to 0.20.2, version 3, and of 0.20.203 to 1.2.1, version 4: some of its
// objects are others. A connection whose greeting was not seen is read as version 3. Types:
//
//	rpc greeting, rpc context, rpc keepalive
//	rpc METHOD, rpc METHOD reply, rpc METHOD error
//	rpc reply unmatched, rpc error unmatched    the request was not seen
//
// Fields: rpc.version and rpc.auth; of the context protocol, userInfo.effectiveUser and userInfo.realUser; rpc.call, rpc.method of answers;
// rpc.exception and rpc.message of errors; arg0, arg1, … of requests and value of answers, and what
// ipcReader.instance reads of objects.
//
// An answer does not tell its length: what it has is decoded to find its end. Behind an object of a class
// that is not known nothing is read until something that looks like a message. The steps by which SASL says
// who one is are unknown, and all that follows them where it encrypts (hadoop.rpc.protection=privacy).
type hadoopWritable struct {
	greeted bool // the greeting was read, the context follows
	secure  bool // version 4
	pending map[int32]string
	order   []int32 // calls in pending, oldest first; may hold some that are gone
	names   map[string]bool
}

func newHadoopWritable() Dissector {
	p := newFramedPair(&hadoopWritable{pending: map[int32]string{}, names: map[string]bool{}})
	p.d[0].keep, p.d[1].keep = hipcKeep, hipcKeep
	return p
}

func (h *hadoopWritable) size(dir int, b []byte) int64 {
	if dir == 1 {
		return h.answerSize(b)
	}
	if n, is := hipcGreetingSize(b); is {
		return n
	}
	if n := hipcRequestSize(b); n <= 4 || h.greeted {
		return n
	}
	switch ok, more := hipcStartsRequest(b); {
	case more:
		return 0
	case !ok:
		return -1
	}
	return hipcRequestSize(b)
}

// hipcGreetingSize is the size of a greeting; is says that b begins like one.
func hipcGreetingSize(b []byte) (n int64, is bool) {
	if b[0] != 'h' {
		return 0, false
	}
	const greeting = "hrpc"
	if string(b[:min(len(b), 4)]) != greeting[:min(len(b), 4)] {
		return -1, true
	}
	switch {
	case len(b) < 5:
		return 0, true
	case b[4] == hipcVersion:
		return 5, true
	case b[4] != hipcSecure:
		return -1, true
	case len(b) < 6:
		return 0, true
	case hipcAuth[b[5]] != "":
		return 6, true
	}
	return -1, true
}

func hipcRequestSize(b []byte) int64 {
	if len(b) < 4 {
		return 0
	}
	n := int64(int32(binary.BigEndian.Uint32(b)))
	switch {
	case n == hipcPing:
		return 4
	case n < 1 || n > hrpcMax:
		return -1
	}
	return 4 + n
}

// answerSize decodes an answer to find its end.
func (h *hadoopWritable) answerSize(b []byte) int64 {
	switch ok, more := hipcStartsAnswer(b); {
	case more:
		return 0
	case !ok:
		return -1
	}
	r := h.reader(b)
	r.int32()
	if r.int32() == 0 {
		r.object("value")
	} else {
		r.long()
		r.long()
	}
	switch {
	case r.unknown:
		return int64(len(b) - r.rest)
	case !r.bad:
		return int64(len(b) - len(r.b))
	case len(b) < hipcKeep:
		return 0
	}
	return hipcKeep // its end will not be found
}

func (h *hadoopWritable) reader(b []byte) *ipcReader {
	return &ipcReader{writable: writable{b: b}, secure: h.secure}
}

func (h *hadoopWritable) starts(dir int, b []byte) (ok, more bool) {
	if dir == 1 {
		return hipcStartsAnswer(b)
	}
	h.greeted = false // if the context was to come, it may be lost
	if n, is := hipcGreetingSize(b); is {
		return n > 0, n == 0
	}
	return hipcStartsRequest(b)
}

// hipcStartsRequest wants a method's name, the number of its arguments, and the class of the first.
func hipcStartsRequest(b []byte) (ok, more bool) {
	n := hipcRequestSize(b)
	if n <= 0 {
		return false, n == 0
	}
	r := &ipcReader{writable: writable{b: b[4:min(int64(len(b)), n)]}}
	more = int64(len(b)) < n
	r.int32()
	size := int(uint16(r.int16()))
	if r.bad {
		return false, more
	}
	if size < 1 || size > hrpcName || !hipcPlain(r.b[:min(len(r.b), size)], "") {
		return false, false
	}
	method := string(r.take(size))
	args := r.int32()
	switch {
	case r.bad:
		return false, more
	case hipcPrimitive[method], args < 0, args > hrpcArgs: // numbers and their types look like a call, too
		return false, false
	case args == 0:
		return n == int64(hipcCall+size), false
	}
	ok, short := hipcStartsClass(r, int(uint16(r.int16())))
	return ok, short && more
}

// hipcStartsAnswer wants the name of a class.
func hipcStartsAnswer(b []byte) (ok, more bool) {
	r := &ipcReader{writable: writable{b: b}}
	call, status := r.int32(), r.int32()
	size := 0
	if status == 0 {
		size = int(uint16(r.int16()))
	} else {
		size = int(r.int32())
	}
	switch {
	case r.bad:
		return false, true
	case status != 0 && status != hipcError && status != hipcFatal, call < 0 && status != hipcFatal:
		return false, false
	}
	return hipcStartsClass(r, size)
}

// hipcStartsClass wants a name of size bytes that can be that of a class, or of a type that is none.
func hipcStartsClass(r *ipcReader, size int) (ok, more bool) {
	switch {
	case r.bad:
		return false, true
	case size < 2, size > 256, !hipcPlain(r.b[:min(len(r.b), size)], ".[;"):
		return false, false
	case len(r.b) < size:
		return false, true
	}
	name := string(r.b[:size])
	return hipcPrimitive[name] || name[0] == '[' || strings.Contains(name, "."), false
}

// hipcPrimitive are types that are no class (ObjectWritable.PRIMITIVE_NAMES).
var hipcPrimitive = map[string]bool{"boolean": true, "byte": true, "short": true, "char": true, "int": true, "long": true, "float": true, "double": true, "void": true}

// hipcPlain says that a name has letters, digits, $, _ and those of more only.
func hipcPlain(b []byte, more string) bool {
	for _, c := range b {
		if !isLetter(c) && (c < '0' || c > '9') && c != '_' && c != '$' && strings.IndexByte(more, c) < 0 {
			return false
		}
	}
	return true
}

func (h *hadoopWritable) read(dir int, f frameHead) []Unit {
	if dir == 1 {
		return []Unit{h.answer(f.b)}
	}
	if n, is := hipcGreetingSize(f.b); is {
		if n <= 0 {
			return []Unit{{Type: model.TypeUnknown}}
		}
		return []Unit{h.greeting(f.b[:n])}
	}
	if len(f.b) == 4 && f.total == 4 {
		return []Unit{{Type: "rpc keepalive"}}
	}
	if h.greeted {
		h.greeted = false
		return []Unit{h.context(f.b)}
	}
	return []Unit{h.request(f.b)}
}

func (h *hadoopWritable) greeting(b []byte) Unit {
	h.greeted, h.secure = true, b[4] == hipcSecure
	u := Unit{Type: "rpc greeting", Fields: []model.Field{{Name: "rpc.version", Value: strconv.Itoa(int(b[4]))}}}
	if h.secure {
		auth := hipcAuth[b[5]]
		h.greeted = auth == "SIMPLE" // else SASL follows
		u.Fields = append(u.Fields, model.Field{Name: "rpc.auth", Value: auth})
	}
	return u
}

// context reads what follows the greeting (ConnectionHeader): the protocol, and who calls.
func (h *hadoopWritable) context(b []byte) Unit {
	u := Unit{Type: "rpc context"}
	r := h.reader(b[min(4, len(b)):])
	if p := r.text(); !r.bad {
		u.Fields = append(u.Fields, model.Field{Name: "protocol", Value: pbString([]byte(p))})
	}
	if r.uint8() == 0 || r.bad {
		return u
	}
	if h.secure {
		for _, name := range []string{"userInfo.effectiveUser", "userInfo.realUser"} {
			if user := r.utf8(); !r.bad {
				u.Fields = append(u.Fields, model.Field{Name: name, Value: pbString([]byte(user))})
			}
			if r.uint8() == 0 {
				break
			}
		}
		return u
	}
	r.text() // STRING_UGI
	if user := r.text(); !r.bad {
		u.Fields = append(u.Fields, model.Field{Name: "userInfo.effectiveUser", Value: pbString([]byte(user))})
	}
	return u
}

// request reads a call (RPC.Invocation).
func (h *hadoopWritable) request(b []byte) Unit {
	r := h.reader(b[min(4, len(b)):])
	call, name := r.int32(), r.utf8()
	if r.bad || !hrpcIdent(name) {
		return Unit{Type: model.TypeUnknown}
	}
	name = h.bounded(name)
	h.ask(call, name)
	u := Unit{Type: "rpc " + name, Fields: []model.Field{{Name: "rpc.call", Value: strconv.Itoa(int(call))}}}
	n := r.int32()
	for i := range min(max(n, 0), hrpcArgs) {
		if r.object("arg" + strconv.Itoa(int(i))); r.bad {
			break
		}
	}
	u.Fields = append(u.Fields, r.fields...)
	return u
}

func (h *hadoopWritable) answer(b []byte) Unit {
	r := h.reader(b)
	call, status := r.int32(), r.int32()
	if r.bad {
		return Unit{Type: model.TypeUnknown}
	}
	u := Unit{Fields: []model.Field{{Name: "rpc.call", Value: strconv.Itoa(int(call))}}}
	name, requested := h.pending[call]
	delete(h.pending, call)
	if len(h.pending) == 0 {
		h.order = h.order[:0]
	}
	if requested {
		u.Fields = append(u.Fields, model.Field{Name: "rpc.method", Value: name})
	}
	kind := "reply"
	if status == 0 {
		r.object("value")
		u.Fields = append(u.Fields, r.fields...)
	} else {
		kind = "error"
		for _, f := range []string{"rpc.exception", "rpc.message"} {
			line, _, _ := strings.Cut(r.long(), "\n")
			if r.bad {
				break
			}
			u.Fields = append(u.Fields, model.Field{Name: f, Value: pbString([]byte(line))})
		}
	}
	if r.bad && !r.unknown {
		u.Fields = append(u.Fields, incomplete)
	}
	if u.Type = "rpc " + name + " " + kind; !requested {
		u.Type = "rpc " + kind + " unmatched"
	}
	return u
}

// bounded is the name of a method, or "other" for one more than a protocol would have.
func (h *hadoopWritable) bounded(name string) string {
	if !h.names[name] {
		if len(h.names) >= hrpcNames {
			return "other"
		}
		h.names[name] = true
	}
	return name
}

// ask notes a call; the oldest is forgotten when there are too many.
func (h *hadoopWritable) ask(call int32, name string) {
	if _, again := h.pending[call]; !again {
		h.order = append(h.order, call)
	}
	h.pending[call] = name
	for len(h.pending) > hrpcPending || len(h.order) > 2*hrpcPending {
		delete(h.pending, h.order[0])
		h.order = h.order[1:]
	}
}

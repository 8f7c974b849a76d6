package classify

import (
	"encoding/binary"
	"strconv"
	"strings"

	"netsplit/model"
)

// zkClient reads ZooKeeper's client protocol (port 2181), in both directions:
// records of zookeeper-jute behind their length (server.NIOServerCnxn), the
// first of each direction the session's (ConnectRequest, ConnectResponse), or
// one of the four letter words and its answer. Types:
//
//	zk connect, zk connect reply    a session is opened or taken up again
//	zk NAME, zk NAME reply          a request (ZooDefs.OpCode) and its reply,
//	                                paired by xid; "zk reply unmatched" where
//	                                the request was not seen
//	zk event NAME                   a watch fired (Watcher.Event.EventType)
//	zk 4lw NAME, zk 4lw NAME reply  a four letter word and its answer
//
// Fields of requests: xid, path, version, flags (persistent,
// ephemeral, sequential, …), watch, value (the head of the data), ops (of
// multi). Of replies: xid, zxid with its halves epoch and counter, error
// (KeeperException.Code, only where it is one), path (of the request, or as
// created), value, children (as sent), first (the least of them) and list,
// which has path, first and count in one text; the numbers of a Stat by their
// names, and stat, which has path, version, cversion, mzxid, czxid, owner and
// children in one text. Of connects: session,
// timeout, lastZxidSeen, readOnly; error=SESSIONEXPIRED for a session that is
// gone. Of events: event, state, path. Of four letter words: text.
//
// Long messages are emitted as resp does; incomplete=true marks what ended or
// was lost before its end. TLS is not read: its bytes are unknown.
type zkClient struct {
	pending map[int32]zkRequest
	connect bool   // a ConnectRequest was seen, its response not yet
	word    string // four letter word whose answer is to come
	isText  bool   // the answer is read
	lastXid int32
}

// zkRequest is what a reply needs of its request.
type zkRequest struct{ op, path string }

// Numbers that stand for no request of the application (ClientCnxn).
const (
	zkXidEvent      = -1
	zkXidPing       = -2
	zkXidAuth       = -4
	zkXidSetWatches = -8
)

func newZooKeeper() Dissector {
	return newZKStream(&zkClient{pending: map[int32]zkRequest{}})
}

func (c *zkClient) next(d *zkDir) zkNext {
	if d.dir == 1 && c.word != "" && d.phase == 0 {
		c.isText = true
		return zkNext{what: zkRest}
	}
	switch d.phase {
	case 0:
		return zkNext{item: 4}
	case 1:
		if d.dir == 0 && zkIsWord(d.item) {
			if !d.begun {
				return zkNext{what: zkLine}
			}
			return zkNext{what: zkBad}
		}
		n := int32(binary.BigEndian.Uint32(d.item))
		if n < int32(c.window(d.dir))-4 || n > zkMax {
			return zkNext{what: zkBad}
		}
		return zkNext{item: c.window(d.dir) - 4}
	case 2:
		if !c.header(d) {
			return zkNext{what: zkBad}
		}
		return zkNext{skip: int64(binary.BigEndian.Uint32(d.head)) - int64(len(d.item))}
	}
	return zkNext{what: zkDone}
}

// header says whether the numbers behind the length can be those of a message
// of this or a later release.
func (c *zkClient) header(d *zkDir) bool {
	j := zkJute{b: d.item}
	xid := j.int()
	if xid == 0 && !d.begun { // protocolVersion of a connect
		return true
	}
	if d.dir == 0 {
		op := j.int()
		return xid >= zkXidSetWatches && op >= -11 && op < 1<<8
	}
	zxid, code := j.long(), j.int()
	return xid >= zkXidSetWatches && zxid >= -1 && code <= 0 && code > -1<<12
}

func zkIsWord(b []byte) bool {
	w := string(b)
	return len(w) == 4 && w == strings.ToLower(w) && zkWords[strings.ToUpper(w)]
}

// window is the shortest message: length, xid and type, or length and a
// ReplyHeader.
func (c *zkClient) window(dir int) int {
	if dir == 0 {
		return 12
	}
	return 20
}

// plausible asks much, since it is asked at every byte.
func (c *zkClient) plausible(dir int, b []byte) bool {
	j := zkJute{b: b}
	n, xid := j.int(), j.int()
	if n < int32(c.window(dir))-4 || n > 4<<20 {
		return false
	}
	if dir == 0 {
		op := j.int()
		switch xid {
		case zkXidPing:
			return op == 11 && n == 8
		case zkXidAuth:
			return op == 100
		case zkXidSetWatches:
			return op == 101 || op == 105
		}
		return zkOps[op] != "" && op != -1 && xid > 0 && (c.lastXid == 0 || xid > c.lastXid && xid-c.lastXid < 1<<16)
	}
	zxid, code := j.long(), j.int()
	if code != 0 && zkErrors[code] == "" {
		return false
	}
	switch xid {
	case zkXidEvent:
		return zxid == -1 && n >= 28
	case zkXidPing:
		return n == 16 && zxid >= 0
	case zkXidAuth, zkXidSetWatches:
		return zxid >= 0
	}
	_, known := c.pending[xid]
	return known && zxid > 0
}

func (c *zkClient) read(d *zkDir, whole bool) (string, []model.Field) {
	if d.dir == 1 && c.isText {
		return "zk 4lw " + c.word + " reply", []model.Field{{Name: "text", Value: zkLines(d.head, d.pos)}}
	}
	if d.dir == 0 && !d.begun && len(d.head) >= 4 && zkIsWord(d.head[:4]) {
		c.word = string(d.head[:4])
		return "zk 4lw " + c.word, []model.Field{{Name: "text", Value: c.word}}
	}
	if len(d.head) < 4 || d.hole && len(d.head) < c.window(d.dir) {
		return model.TypeUnknown, nil
	}
	body := d.head[4:]
	if d.dir == 0 {
		return c.request(d, body, d.pos-4)
	}
	return c.reply(d, body, d.pos-4)
}

// zkLines is the text of an answer as a field holds it.
func zkLines(b []byte, n int64) string {
	s := strings.ToValidUTF8(string(b[:min(len(b), respText-8)]), "\uFFFD")
	s = cut(s, respText-8)
	if n > int64(len(b)) || len(b) > respText-8 {
		s = strings.TrimSuffix(s, "…") + "…"
	}
	return s
}

// isConnect says whether a body is a ConnectRequest: fixed numbers, then a
// password whose length fits the message's, then readOnly where the client
// knows of it.
func zkIsConnect(dir int, b []byte) bool {
	fixed := 24 // protocolVersion, lastZxidSeen, timeOut, sessionId
	if dir == 1 {
		fixed = 16 // protocolVersion, timeOut, sessionId
	}
	j := zkJute{b: b}
	version := j.int()
	j.take(fixed - 4)
	n := int(max(j.int(), 0))
	return !j.bad && version == 0 && (len(b) == fixed+4+n || len(b) == fixed+5+n)
}

func (c *zkClient) request(d *zkDir, b []byte, size int64) (string, []model.Field) {
	var f zkFields
	j := zkJute{b: b}
	if !d.begun && int64(len(b)) == size && zkIsConnect(0, b) {
		c.connect = true
		j.int()
		f.zxid("lastZxidSeen", j.long())
		f.num("timeout", int64(j.int()))
		f.hex("session", j.long())
		j.bytes()
		f.flag("readOnly", j.bool())
		return "zk connect", f
	}
	xid, op := j.int(), j.int()
	name := zkOps[op]
	if j.bad || name == "" || op == -1 || op == -10 {
		return model.TypeUnknown, nil
	}
	f.num("xid", int64(xid))
	req := zkRequest{op: name, path: zkRequestFields(&f, op, &j)}
	if len(c.pending) < zkPending {
		c.pending[xid] = req
	}
	if xid > 0 {
		c.lastXid = xid
	}
	return "zk " + name, f
}

func zkRequestFields(f *zkFields, op int32, j *zkJute) (path string) {
	switch op {
	case 11, -11: // ping, closeSession: no body
		return ""
	case 14, 22: // multi, multiRead
		f.add("ops", zkMulti(j))
		return ""
	case 16: // reconfig
		f.add("joining", j.text())
		f.add("leaving", j.text())
		f.add("members", j.text())
		return ""
	case 100: // auth
		j.int()
		f.add("scheme", j.text())
		return ""
	case 101, 105: // setWatches, setWatches2
		f.zxid("relativeZxid", j.long())
		return ""
	case 102, 107: // sasl, whoAmI
		return ""
	}
	path = j.text()
	f.add("path", path)
	switch op {
	case 1, 15, 19, 21: // create, create2, createContainer, createTTL
		f.add("value", j.text())
		zkACL(f, j)
		if mode := j.int(); !j.bad {
			f.add("flags", zkFlags(mode))
		}
	case 2, 13: // delete, check
		zkVersion(f, j)
	case 5: // setData
		f.add("value", j.text())
		zkVersion(f, j)
	case 7: // setACL
		zkACL(f, j)
		zkVersion(f, j)
	case 3, 4, 8, 12: // exists, getData, getChildren, getChildren2
		if w := j.bool(); !j.bad {
			f.flag("watch", w)
		}
	case 17, 18, 106: // checkWatches, removeWatches, addWatch
		if n := j.int(); !j.bad {
			f.num("mode", int64(n))
		}
	}
	return path
}

func zkVersion(f *zkFields, j *zkJute) {
	if n := j.int(); !j.bad {
		f.num("version", int64(n))
	}
}

// zkACL reads over an access list; its length is a field.
func zkACL(f *zkFields, j *zkJute) {
	n := j.int()
	for i := int32(0); i < n && !j.bad; i++ {
		j.int()
		j.bytes()
		j.bytes()
	}
	if !j.bad {
		f.num("acl", int64(n))
	}
}

// zkFlags names the flag of a create request (org.apache.zookeeper.CreateMode).
func zkFlags(n int32) string {
	names := []string{"persistent", "ephemeral", "persistent-sequential", "ephemeral-sequential",
		"container", "persistent-ttl", "persistent-sequential-ttl"}
	if n >= 0 && int(n) < len(names) {
		return names[n]
	}
	return strconv.Itoa(int(n))
}

// zkMulti lists the operations of a multi request (MultiOperationRecord).
func zkMulti(j *zkJute) string {
	var ops []string
	for len(ops) < zkList {
		op, done := j.int(), j.bool()
		j.int() // err
		if j.bad || done {
			break
		}
		name := zkOps[op]
		if name == "" {
			break
		}
		var f zkFields
		zkRequestFields(&f, op, j)
		ops = append(ops, name)
	}
	return strings.Join(ops, ",")
}

func (c *zkClient) reply(d *zkDir, b []byte, size int64) (string, []model.Field) {
	var f zkFields
	j := zkJute{b: b}
	if !d.begun && int64(len(b)) == size && zkIsConnect(1, b) && (c.connect || len(b) < 40) {
		c.connect = false
		j.int()
		timeout, session := j.int(), j.long()
		f.num("timeout", int64(timeout))
		f.hex("session", session)
		j.bytes()
		f.flag("readOnly", j.bool())
		if timeout == 0 && session == 0 { // ZooKeeperServer.finishSessionInit, session not valid
			f.add("error", "SESSIONEXPIRED")
		}
		return "zk connect reply", f
	}
	xid, zxid, code := j.int(), j.long(), j.int()
	if j.bad || code != 0 && zkErrors[code] == "" {
		return model.TypeUnknown, nil
	}
	if xid == zkXidEvent {
		event, state, path := j.int(), j.int(), j.text()
		name := zkEvents[event]
		if name == "" {
			return model.TypeUnknown, nil
		}
		f.add("event", name)
		f.add("state", zkKeeperStates[state])
		f.add("path", path)
		return "zk event " + name, f
	}
	f.num("xid", int64(xid))
	f.zxid("zxid", zxid)
	if code != 0 {
		f.add("error", zkErrors[code])
	}
	req, known := c.pending[xid]
	if !known {
		return "zk reply unmatched", f
	}
	if xid >= 0 {
		delete(c.pending, xid)
	}
	if code == 0 {
		zkReplyFields(&f, req, &j)
	} else if req.path != "" {
		f.add("path", req.path)
	}
	return "zk " + req.op + " reply", f
}

func zkReplyFields(f *zkFields, req zkRequest, j *zkJute) {
	path := req.path
	switch req.op {
	case "create", "create2", "createContainer", "createTTL":
		made := j.text()
		f.add("path", made)
		if req.op != "create" {
			f.stat(j, made)
		}
		return
	case "getEphemerals":
		f.list("children", j.list())
		return
	case "reconfig":
		f.add("value", j.text())
		f.stat(j, "/zookeeper/config")
		return
	}
	if path != "" {
		f.add("path", path)
	}
	switch req.op {
	case "exists", "setData", "setACL":
		f.stat(j, path)
	case "getData":
		f.add("value", j.text())
		f.stat(j, path)
	case "getACL":
		zkACL(f, j)
		f.stat(j, path)
	case "getChildren", "getChildren2":
		l := j.list()
		f.list("children", l)
		first := ""
		for i, s := range l {
			if i == 0 || s < first {
				first = s
			}
		}
		if !j.bad {
			first = cut(strings.ToValidUTF8(first, "\uFFFD"), zkText)
			f.add("first", first)
			f.add("list", "path="+path+" first="+first+" count="+strconv.Itoa(len(l)))
		}
		if req.op == "getChildren2" {
			f.stat(j, path)
		}
	case "getAllChildrenNumber":
		if n := j.int(); !j.bad {
			f.num("count", int64(n))
		}
	}
}

package classify

import (
	"encoding/binary"
	"strconv"
	"strings"

	"netsplit/model"
)

// zkJute reads records as BinaryInputArchive of zookeeper-jute does: big-endian
// numbers, buffers and strings with their length before them, -1 for null.
type zkJute struct {
	b   []byte
	bad bool // the bytes ended, or a length cannot be
}

func (j *zkJute) take(n int) []byte {
	if j.bad || n < 0 || n > len(j.b) {
		j.bad = true
		return nil
	}
	out := j.b[:n]
	j.b = j.b[n:]
	return out
}

func (j *zkJute) int() int32 {
	if b := j.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (j *zkJute) long() int64 {
	if b := j.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (j *zkJute) bool() bool {
	b := j.take(1)
	return b != nil && b[0] != 0
}

// bytes reads a buffer or string; of one that is cut the head is returned and
// bad is set.
func (j *zkJute) bytes() []byte {
	n := int(j.int())
	if j.bad || n <= 0 {
		j.bad = j.bad || n < -1
		return nil
	}
	if n > len(j.b) {
		head := j.b
		j.b, j.bad = nil, true
		return head
	}
	return j.take(n)
}

// text is a buffer as a field shows it; one that was cut ends in "…".
func (j *zkJute) text() string {
	was := j.bad
	b := j.bytes()
	s := zkValue(b)
	if j.bad && !was && len(b) > 0 && !strings.HasSuffix(s, "…") {
		s += "…"
	}
	return s
}

// list reads a vector of strings, sorted as they came.
func (j *zkJute) list() []string {
	n := int(j.int())
	var out []string
	for i := 0; i < n && !j.bad; i++ {
		s := string(j.bytes())
		if !j.bad {
			out = append(out, s)
		}
	}
	return out
}

func zkValue(b []byte) string {
	more := len(b) > zkText
	s := strings.ToValidUTF8(string(b[:min(len(b), zkText)]), "\uFFFD")
	if more {
		s = cut(s, zkText-3) + "…"
	}
	return s
}

// zkFields collects the fields of a message.
type zkFields []model.Field

func (f *zkFields) add(name, value string)   { *f = append(*f, model.Field{Name: name, Value: value}) }
func (f *zkFields) num(name string, n int64) { f.add(name, strconv.FormatInt(n, 10)) }
func (f *zkFields) hex(name string, n int64) { f.add(name, zkHex(n)) }
func (f *zkFields) flag(name string, v bool) { f.add(name, strconv.FormatBool(v)) }
func (f *zkFields) list(name string, l []string) {
	s := strings.Join(l[:min(len(l), zkList)], ",")
	v := cut(strings.ToValidUTF8(s, "\uFFFD"), respText-8)
	if len(l) > zkList && !strings.HasSuffix(v, "…") {
		v += "…"
	}
	f.add(name, v)
}

// zxid adds a transaction id and its halves: the epoch of the leader that made
// it, and the counter within the epoch.
func (f *zkFields) zxid(name string, z int64) {
	f.hex(name, z)
	if name == "zxid" {
		f.num("epoch", z>>32)
		f.num("counter", z&0xffffffff)
	}
}

// zkHex is how ZooKeeper prints transaction and session ids.
func zkHex(n int64) string { return "0x" + strconv.FormatUint(uint64(n), 16) }

// stat reads a Stat and adds it: each number as a field, and the whole in one
// text behind the path, for patterns that need both.
func (f *zkFields) stat(j *zkJute, path string) {
	czxid, mzxid := j.long(), j.long()
	j.long() // ctime
	j.long() // mtime
	version, cversion, aversion := j.int(), j.int(), j.int()
	owner := j.long()
	length, children := j.int(), j.int()
	pzxid := j.long()
	if j.bad {
		return
	}
	f.num("version", int64(version))
	f.num("cversion", int64(cversion))
	f.num("aversion", int64(aversion))
	f.hex("czxid", czxid)
	f.hex("mzxid", mzxid)
	f.hex("pzxid", pzxid)
	f.hex("ephemeralOwner", owner)
	f.num("dataLength", int64(length))
	f.num("numChildren", int64(children))
	f.add("stat", "path="+path+" version="+strconv.Itoa(int(version))+" cversion="+strconv.Itoa(int(cversion))+
		" mzxid="+zkHex(mzxid)+" czxid="+zkHex(czxid)+" owner="+zkHex(owner)+" children="+strconv.Itoa(int(children)))
}

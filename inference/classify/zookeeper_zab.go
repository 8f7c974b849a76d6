package classify

import (
	"encoding/binary"
	"strings"

	"netsplit/model"
)

// zkZAB reads what a leader and its followers and observers say to one another
// (port 2888): QuorumPackets of zookeeper-jute, one behind the other, and the
// snapshot behind SNAP (server.quorum.LearnerHandler). The learner opens the
// connection. Types:
//
//	zk zab NAME                     a packet (server.quorum.Leader): FOLLOWERINFO,
//	                                LEADERINFO, ACKEPOCH, DIFF, NEWLEADER, ACK, …
//	zk zab PROPOSAL OP              with the type of its transaction, where it is
//	                                known (ZooDefs.OpCode); REQUEST, INFORM too
//	zk zab PING reply               of a learner; REVALIDATE reply: of the leader
//	zk zab snapshot                 the tree, up to its signature
//	zk zab auth                     SASL between servers
//
// Fields: zxid with its halves epoch and counter; sid, protocol and
// configVersion of FOLLOWERINFO; currentEpoch of ACKEPOCH; config of
// NEWLEADER; session, cxid, op and path, version of requests and
// transactions; sessions (their number) of a learner's PING; valid of a reply
// to REVALIDATE.
type zkZAB struct {
	snap bool // a snapshot comes next, from the leader
}

func newZooKeeperZAB() Dissector { return newZKStream(&zkZAB{}) }

func (c *zkZAB) window(int) int { return 20 }

func (c *zkZAB) plausible(_ int, b []byte) bool {
	j := zkJute{b: b}
	typ, zxid, n, more := j.int(), j.long(), j.int(), j.int()
	if zkZab[typ] == "" || zxid < -1 || zxid>>32 > 1<<24 {
		return false
	}
	if n <= 0 { // no data: the count of ids comes next
		return n >= -1 && more >= -1 && more < 16
	}
	return n <= 4<<20
}

// Phases of a packet: header, data, count of ids, then for each id the length
// of its scheme, the scheme, and the same of the id.
func (c *zkZAB) next(d *zkDir) zkNext {
	if c.snap && d.dir == 1 && d.phase == 0 {
		c.snap = false
		return zkNext{what: zkSnap}
	}
	switch d.phase {
	case 0:
		return zkNext{item: 16}
	case 1:
		n := int32(binary.BigEndian.Uint32(d.item[12:]))
		typ := int32(binary.BigEndian.Uint32(d.item))
		if n < -1 || n > zkMax || zkZab[typ] == "" && typ != zkAuthMagic {
			return zkNext{what: zkBad}
		}
		d.auth = typ == zkAuthMagic
		return zkNext{skip: int64(n)}
	case 2:
		if d.auth {
			return zkNext{what: zkDone}
		}
		return zkNext{item: 4}
	case 3:
		n := int32(binary.BigEndian.Uint32(d.item))
		if n < -1 || n > zkList {
			return zkNext{what: zkBad}
		}
		d.ids = 2 * int(max(n, 0))
		if d.ids == 0 {
			return zkNext{what: zkDone}
		}
		return zkNext{item: 4}
	}
	if d.phase%2 == 0 { // a length was read
		n := int32(binary.BigEndian.Uint32(d.item))
		if n < -1 || n > zkMax {
			return zkNext{what: zkBad}
		}
		d.ids--
		return zkNext{skip: int64(n)}
	}
	if d.ids == 0 {
		return zkNext{what: zkDone}
	}
	return zkNext{item: 4}
}

func (c *zkZAB) read(d *zkDir, whole bool) (string, []model.Field) {
	if d.what == zkSnap {
		return "zk zab snapshot", nil
	}
	var f zkFields
	j := zkJute{b: d.head}
	typ, zxid := j.int(), j.long()
	if typ == zkAuthMagic {
		return "zk zab auth", nil
	}
	name := zkZab[typ]
	if j.bad || name == "" {
		return model.TypeUnknown, nil
	}
	f.zxid("zxid", zxid)
	data := zkJute{b: j.bytes()}
	switch name {
	case "FOLLOWERINFO", "OBSERVERINFO":
		if sid, protocol := data.long(), data.int(); !data.bad {
			f.num("sid", sid)
			f.num("protocol", int64(protocol))
		}
		if config := data.long(); !data.bad {
			f.hex("configVersion", config)
		}
	case "ACKEPOCH":
		if epoch := data.int(); !data.bad {
			f.num("currentEpoch", int64(epoch))
		}
	case "NEWLEADER":
		if len(data.b) > 0 {
			f.add("config", strings.ToValidUTF8(cut(string(data.b), respText-8), "\uFFFD"))
		}
	case "SNAP":
		c.snap = c.snap || d.dir == 1 && whole
	case "PING":
		if d.dir == 0 {
			name += " reply"
			f.num("sessions", int64(len(data.b)/12))
		}
	case "REVALIDATE":
		if session := data.long(); !data.bad {
			f.hex("session", session)
		}
		if d.dir == 1 {
			name += " reply"
			if valid := data.bool(); !data.bad {
				f.flag("valid", valid)
			}
		}
	case "REQUEST", "SYNC":
		session, cxid, op := data.long(), data.int(), data.int()
		name = zkZabOp(&f, name, session, cxid, op, data)
		if !data.bad && zkOps[op] != "" {
			var g zkFields
			if path := zkRequestFields(&g, op, &data); path != "" {
				f.add("path", path)
			}
		}
	case "PROPOSAL", "INFORM", "INFORMANDACTIVATE":
		if name == "INFORMANDACTIVATE" {
			data.long() // sid of the designated leader
		}
		session, cxid := data.long(), data.int()
		data.long() // zxid, again
		data.long() // time
		op := data.int()
		name = zkZabOp(&f, name, session, cxid, op, data)
		zkTxn(&f, op, &data)
	}
	return "zk zab " + name, f
}

func zkZabOp(f *zkFields, name string, session int64, cxid, op int32, data zkJute) string {
	if data.bad {
		return name
	}
	f.hex("session", session)
	f.num("cxid", int64(cxid))
	if o := zkOps[op]; o != "" && name != "SYNC" {
		f.add("op", o)
		name += " " + o
	}
	return name
}

// zkTxn reads the head of a transaction (org.apache.zookeeper.txn).
func zkTxn(f *zkFields, op int32, j *zkJute) {
	switch op {
	case 1, 2, 5, 7, 13, 15, 19, 20, 21:
		path := j.text()
		if j.bad {
			return
		}
		f.add("path", path)
		switch op {
		case 5:
			f.add("value", j.text())
			zkVersion(f, j)
		case 7:
			var g zkFields
			zkACL(&g, j)
			zkVersion(f, j)
		}
	case -1:
		if code := j.int(); !j.bad {
			f.add("error", zkErrors[code])
		}
	case -10:
		if n := j.int(); !j.bad {
			f.num("timeout", int64(n))
		}
	}
}

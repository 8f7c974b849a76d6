package classify

import (
	"encoding/binary"
	"strings"

	"netsplit/model"
)

// zkFLE reads the election port of ZooKeeper servers (3888): the message that
// opens a connection (server.quorum.QuorumCnxManager) and the notifications of
// fast leader election (FastLeaderElection.buildMsg) behind their length, of
// every release from 3.4 on. Types:
//
//	zk fle hello                    opens the connection, says who calls
//	zk fle LOOKING                  a vote, by the state of its sender: LOOKING,
//	                                FOLLOWING, LEADING, OBSERVING
//	zk fle auth                     SASL between servers (server.quorum.auth)
//
// Fields of hello: sid, address (from 3.5 on; several, joined with "|", from
// 3.6), protocol. Of votes: sid (of the sender, where it opened the
// connection), state, leader (sid of the server voted for, or followed), zxid
// of that server with its halves epoch and counter, electionEpoch, peerEpoch,
// version, config (from 3.5 on).
type zkFLE struct{ sid string }

const (
	zkProtocolV1 = -65536 // QuorumCnxManager.PROTOCOL_VERSION_V1
	zkProtocolV2 = -65535 // several addresses
	zkAuthMagic  = 0x5f243501
	zkFLEMax     = 512 << 10 // QuorumCnxManager.PACKETMAXSIZE
	zkHelloMax   = 2048      // QuorumCnxManager.maxBuffer
)

func newZooKeeperFLE() Dissector { return newZKStream(&zkFLE{}) }

func (c *zkFLE) window(int) int { return 16 }

func (c *zkFLE) plausible(_ int, b []byte) bool {
	j := zkJute{b: b}
	n, state, leader := j.int(), j.int(), j.long()
	return zkFLELength(n) && state >= 0 && int(state) < len(zkServerStates) && (leader >= 0 || leader == -1<<63)
}

// zkFLELength: without and with the epoch of the peer, with a version, and
// with a configuration behind it.
func zkFLELength(n int32) bool {
	return n == 28 || n == 36 || n == 40 || n >= 44 && n <= zkFLEMax
}

func (c *zkFLE) next(d *zkDir) zkNext {
	hello := d.dir == 0 && !d.begun
	switch d.phase {
	case 0:
		if hello {
			return zkNext{item: 8}
		}
		return zkNext{item: 4}
	case 1:
		if !hello {
			return zkFLEBody(int32(binary.BigEndian.Uint32(d.item)))
		}
		switch v := int64(binary.BigEndian.Uint64(d.item)); {
		case v == zkProtocolV1 || v == zkProtocolV2:
			return zkNext{item: 12} // sid, length of the address
		case v>>32 != 0: // a connection that was open already
			if n := zkFLEBody(int32(v >> 32)); n.what == zkMore && int(int32(v)) < len(zkServerStates) {
				return zkNext{skip: n.skip - 4}
			}
			return zkNext{what: zkBad}
		}
		return zkNext{what: zkDone} // 3.4: the sid alone
	case 2:
		if hello && len(d.item) == 12 {
			n := int32(binary.BigEndian.Uint32(d.item[8:]))
			if n < 0 || n > zkHelloMax {
				return zkNext{what: zkBad}
			}
			return zkNext{skip: int64(n)}
		}
		if !hello && len(d.item) == 12 { // auth: rest of magic, status, length of token
			n := int32(binary.BigEndian.Uint32(d.item[8:]))
			if n < -1 || n > zkFLEMax {
				return zkNext{what: zkBad}
			}
			return zkNext{skip: int64(n)}
		}
	}
	return zkNext{what: zkDone}
}

func zkFLEBody(n int32) zkNext {
	switch {
	case n == zkAuthMagic:
		return zkNext{item: 12}
	case zkFLELength(n):
		return zkNext{skip: int64(n)}
	}
	return zkNext{what: zkBad}
}

func (c *zkFLE) read(d *zkDir, _ bool) (string, []model.Field) {
	var f zkFields
	j := zkJute{b: d.head}
	first := j.long()
	switch {
	case j.bad:
		return model.TypeUnknown, nil
	case first>>32 == zkAuthMagic:
		return "zk fle auth", nil
	case d.dir == 0 && !d.begun && (first == zkProtocolV1 || first == zkProtocolV2):
		sid := j.long()
		address := j.text()
		if j.bad && address == "" {
			return "zk fle hello", nil
		}
		f.num("protocol", first)
		f.num("sid", sid)
		f.add("address", address)
		c.sid = f[1].Value
		return "zk fle hello", f
	case d.dir == 0 && !d.begun && d.pos == 8:
		f.num("sid", first)
		c.sid = f[0].Value
		return "zk fle hello", f
	}
	state := int(int32(first))
	if state < 0 || state >= len(zkServerStates) || !zkFLELength(int32(first>>32)) {
		return model.TypeUnknown, nil
	}
	name := zkServerStates[state]
	if d.dir == 0 && c.sid != "" {
		f.add("sid", c.sid)
	}
	f.add("state", name)
	f.num("leader", j.long())
	f.zxid("zxid", j.long())
	f.num("electionEpoch", j.long())
	if first>>32 >= 36 {
		f.num("peerEpoch", j.long())
	}
	if first>>32 >= 40 {
		f.num("version", int64(j.int()))
	}
	if first>>32 > 44 {
		if config := string(j.bytes()); config != "" {
			f.add("config", strings.ToValidUTF8(cut(config, respText-8), "\uFFFD"))
		}
	}
	if j.bad {
		return "zk fle " + name, nil
	}
	return "zk fle " + name, f
}

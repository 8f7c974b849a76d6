package run

import (
	"net/netip"
	"slices"

	"netsplit/inference"
	"netsplit/model"
	"netsplit/testbed"
	"netsplit/testbed/agent"
)

// reset resets the TCP connections that cross a cut, at both ends, and
// returns how many. The caller holds mu. held is the packet whose arrival
// started the cut: the pipeline has read it and its receiver has not got it.
func (s *session) reset(p model.Partition, held *heldFrame) int {
	crossing := map[model.Link]bool{}
	for _, l := range p.Links() {
		crossing[l] = true
	}
	n := 0
	for _, c := range s.pipe.Connections() {
		ab, ba := model.Link{Src: c.HostA, Dst: c.HostB}, model.Link{Src: c.HostB, Dst: c.HostA}
		if !crossing[ab] && !crossing[ba] || !resets(p.Only, c) {
			continue
		}
		n++
		s.resetConn(c, held, "")
	}
	return n
}

// resets says whether a partition of some traffic only is of the connection's, and
// not just of its opening.
func resets(only []model.Traffic, c inference.Connection) bool {
	return len(only) == 0 || slices.ContainsFunc(only, func(t model.Traffic) bool { return t.Selects("tcp", c.A.Port(), c.B.Port(), false, false) })
}

// resetConn resets a connection at both ends, or only at one. Where message faults keep or lost
// packets of it, its receiver may be behind what the pipeline has read: then it
// gets one for what it has acknowledged as well. The one that does not fit is
// answered by a challenge that says what does (RFC 5961 §3.2).
func (s *session) resetConn(c inference.Connection, held *heldFrame, only model.NodeID) {
	fromA, fromB := c.NextSeqA, c.NextSeqB
	if held != nil && held.packet.Proto == model.ProtoTCP && held.packet.Dst == c.B && held.packet.Src == c.A {
		fromA = c.BeforeA
	} else if held != nil && held.packet.Proto == model.ProtoTCP && held.packet.Dst == c.A && held.packet.Src == c.B {
		fromB = c.BeforeB
	}
	if !c.Established && s.faulty {
		if only == "" || only == c.HostA {
			s.resetEnd(c.B, c.A, c.HostB, c.HostA, c.Tags, 0, c.NextSeqA)
		}
		return
	}
	if only == "" || only == c.HostB {
		s.resetEnd(c.A, c.B, c.HostA, c.HostB, c.Tags, fromA, 0)
		if s.faulty && c.AckedA != fromA {
			s.resetEnd(c.A, c.B, c.HostA, c.HostB, c.Tags, c.AckedA, 0)
		}
	}
	if only == "" || only == c.HostA {
		s.resetEnd(c.B, c.A, c.HostB, c.HostA, c.Tags, fromB, 0)
		if s.faulty && c.AckedB != fromB {
			s.resetEnd(c.B, c.A, c.HostB, c.HostA, c.Tags, c.AckedB, 0)
		}
	}
}

func (s *session) resetEnd(src, dst netip.AddrPort, srcHost, dstHost model.NodeID, tags []byte, seq, ack uint32) {
	a, okA := s.gate.MAC(srcHost)
	b, okB := s.gate.MAC(dstHost)
	if !okA || !okB {
		return
	}
	frame, err := testbed.RST(a, b, tags, src, dst, seq, ack, ack != 0)
	if err == nil {
		s.resets = append(s.resets, letGo{model.Link{Src: srcHost, Dst: dstHost}, s.now(), agent.Digest(frame)})
		err = s.gate.Release(frame, dstHost)
	}
	if err != nil {
		s.incomplete = append(s.incomplete, "a connection could not be reset: "+err.Error())
	}
}

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Verbs of the datagrams. Each is followed by the sender's name and its digest.
//
// A round of gossip is GOSSIP, ACK, ACK2, as in Cassandra: after it both sides
// know what either knew. HANDOVER asks the receiver to take over data, TAKEN
// says that it has.
const (
	verbGossip   = "GOSSIP"
	verbAck      = "ACK"
	verbAck2     = "ACK2"
	verbHandover = "HANDOVER"
	verbTaken    = "TAKEN"
)

// datagram is a message to a peer.
type datagram struct {
	to   string
	text string
}

// announceRounds is the least number of gossips with which a node says LEFT.
const announceRounds = 3

// handoverRounds is for how many intervals a node waits for its peers to take
// over before it gives up leaving.
const handoverRounds = 10

// member is the protocol of one node. It has no clock and no socket: its
// methods take the time and return what to send.
type member struct {
	table
	peers    []string // all others, sorted
	interval time.Duration
	rnd      *rand.Rand
	met      map[string]bool // peers ever heard of

	// Leaving: every peer takes over, then the node says LEFT; once a peer
	// knows, it falls silent.
	waits    []string // have not taken over
	since    int64    // when it was told to leave
	leaving  bool     // said LEFT
	observed bool     // a peer knows
	rounds   int      // gossips since LEFT
	gone     bool     // silent
	refused  string   // why it did not leave, "" if it was not refused
}

func newMember(id string, peers []string, forget, interval time.Duration, bug bool, seed uint64, now int64) *member {
	m := &member{peers: slices.Sorted(slices.Values(peers)), interval: interval, met: map[string]bool{}}
	m.table = table{self: id, forget: forget, bug: bug, entries: map[string]entry{id: {statusNormal, now}}}
	var stream uint64
	for _, c := range id {
		stream = stream*131 + uint64(c)
	}
	m.rnd = rand.New(rand.NewPCG(seed, stream))
	return m
}

func (m *member) say(verb, to string, now int64) datagram {
	return datagram{to, verb + " " + m.self + " " + m.digest(now)}
}

// tick is one round: a gossip with one peer, drawn among those that are
// members and those never heard of, and the handovers still unanswered.
func (m *member) tick(now int64) []datagram {
	m.expire(now)
	if m.gone {
		return nil
	}
	if len(m.waits) > 0 && now-m.since > handoverRounds*m.interval.Milliseconds() {
		m.refused = "peer-down " + m.waits[0] + " did not take over"
		m.waits = nil
	}
	var out []datagram
	for _, p := range m.waits {
		out = append(out, m.say(verbHandover, p, now))
	}
	if m.leaving {
		if m.rounds++; m.rounds > announceRounds && m.observed {
			m.gone = true
			return nil
		}
	}
	var who []string
	for _, p := range m.peers {
		if e, known := m.entries[p]; known && e.status == statusNormal || !known && !m.met[p] {
			who = append(who, p)
		}
	}
	if len(who) > 0 {
		out = append(out, m.say(verbGossip, who[m.rnd.IntN(len(who))], now))
	}
	return out
}

// receive merges a datagram and returns the answer to it. A datagram that is
// none of ours is an error and changes nothing.
func (m *member) receive(text string, now int64) ([]datagram, error) {
	w := strings.Fields(text)
	if len(w) < 2 || !slices.Contains(m.peers, w[1]) {
		return nil, fmt.Errorf("datagram %.60q: want a verb, a peer and its digest", text)
	}
	digest, err := parseDigest(w[2:])
	if err != nil {
		return nil, fmt.Errorf("datagram from %s: %w", w[1], err)
	}
	verb, from := w[0], w[1]
	if m.gone {
		return nil, nil
	}
	if e, known := digest[m.self]; m.leaving && (!known || e.status == statusLeft) {
		m.observed = true
	}
	m.merge(digest, now)
	m.met[from] = true
	switch verb {
	case verbGossip:
		return []datagram{m.say(verbAck, from, now)}, nil
	case verbAck:
		return []datagram{m.say(verbAck2, from, now)}, nil
	case verbHandover:
		return []datagram{m.say(verbTaken, from, now)}, nil
	case verbTaken:
		if i := slices.Index(m.waits, from); i >= 0 {
			m.waits = slices.Delete(m.waits, i, i+1)
			if len(m.waits) == 0 {
				m.leaving = true
				m.entries[m.self] = entry{statusLeft, max(now, m.entries[m.self].version+1)}
			}
		}
	case verbAck2:
	default:
		return nil, fmt.Errorf("datagram from %s: unknown verb %.20q", from, verb)
	}
	return nil, nil
}

// leave starts the decommission; asked again while under way, it goes on.
func (m *member) leave(now int64) []datagram {
	if m.leaving || len(m.waits) > 0 {
		return nil
	}
	m.refused, m.since = "", now
	m.waits = slices.Clone(m.peers)
	var out []datagram
	for _, p := range m.waits {
		out = append(out, m.say(verbHandover, p, now))
	}
	return out
}

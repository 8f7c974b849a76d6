package agent

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"time"

	"netsplit/inference/packet"
)

// digestLen is how much of a packet its digest is of, with the Ethernet type: what is
// read of it.
const digestLen = snapLen - 12

// Digest knows a packet again at another place: it is of the headers behind the
// Ethernet addresses and VLAN tags and the first bytes behind them, whose checksums
// cover the rest, without what a network card pads a short frame with. Packets that are
// equal in all that have the same.
func Digest(frame []byte) uint64 {
	e, err := packet.ReadEthernet(frame)
	if err != nil {
		return 0
	}
	n := len(e.Body)
	switch e.Type {
	case packet.TypeIPv4, packet.TypeIPv6:
		if ip, _ := packet.ReadIP(e.Type, e.Body); ip.Src.IsValid() {
			n = min(n, ip.Length)
		}
	case packet.TypeARP:
		n = min(n, packet.ARPLen)
	}
	h := fnv.New64a()
	h.Write(binary.BigEndian.AppendUint16(nil, e.Type))
	h.Write(e.Body[:min(n, digestLen-2)])
	return h.Sum64()
}

// digestQuery asks when packets of these digests arrived, at From or later.
// Nanoseconds since 1970.
type digestQuery struct {
	Digests []uint64 `json:"digests"`
	From    int64    `json:"from_ns"`
}

// wireArrivals answers a digestQuery: by digest, in its order.
type wireArrivals struct {
	At         [][]int64 `json:"at_ns"`
	Incomplete bool      `json:"incomplete"`
}

// ArrivalsOf returns when packets of each digest arrived at the host, at from or
// later, in order: the latest that it may have been by the error of its clock, so
// that none seems to come before it was sent. It is an error if some may have been
// missed.
func (c *Client) ArrivalsOf(ctx context.Context, digests []uint64, from time.Time) ([][]time.Time, error) {
	o, err := c.offsetNow(ctx)
	if err != nil {
		return nil, err
	}
	out, err := c.arrivalsOf(ctx, digests, from.Add(-o.Within), o)
	for _, at := range out {
		for i := range at {
			at[i] = at[i].Add(o.Within)
		}
	}
	return out, err
}

// arrivalsOf is ArrivalsOf by what its clock most likely is.
func (c *Client) arrivalsOf(ctx context.Context, digests []uint64, from time.Time, o Offset) ([][]time.Time, error) {
	r, err := c.call(ctx, request{Op: opArrivals, Digests: &digestQuery{Digests: digests, From: from.Add(o.Ahead).UnixNano()}})
	if err != nil {
		return nil, err
	}
	if r.Arrivals == nil || len(r.Arrivals.At) != len(digests) {
		return nil, fmt.Errorf("host %s: the agent's answer holds no arrivals", c.host)
	}
	if r.Arrivals.Incomplete {
		return nil, fmt.Errorf("the agent on host %s missed packets", c.host)
	}
	out := make([][]time.Time, len(digests))
	for i, at := range r.Arrivals.At {
		for _, ns := range at {
			out[i] = append(out[i], ours(timeOf(ns), o.Ahead))
		}
	}
	return out, nil
}

// arrivals answers a query, once all that came so far is in the tally.
func (c *capture) arrivals(q *digestQuery) (wireArrivals, error) {
	time.Sleep(settleTime)
	if err := c.sync(); err != nil {
		return wireArrivals{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tally.arrivals(q), nil
}

func (t *tally) arrivals(q *digestQuery) wireArrivals {
	out := wireArrivals{At: make([][]int64, len(q.Digests)), Incomplete: q.From < t.since}
	for _, m := range t.missed {
		out.Incomplete = out.Incomplete || m.to >= q.From
	}
	of := map[uint64][]int{}
	for i, d := range q.Digests {
		of[d] = append(of[d], i)
	}
	for k := range t.ring { // from the oldest on
		a := &t.ring[(t.next+k)%len(t.ring)]
		if a.at < q.From {
			continue
		}
		for _, i := range of[a.digest] {
			out.At[i] = append(out.At[i], a.at)
		}
	}
	return out
}

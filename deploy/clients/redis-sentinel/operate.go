package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// operateAll asks a Sentinel for a failover at seeded moments: one in each
// equal share of the time, in its first half, so that its end is seen too. To
// drain asks the one on the host of the master, as who is about to stop that host
// does; else any is asked.
func operateAll(ctx context.Context, c *common, failovers int, drain bool) error {
	moments, asks := plan(c.seed, failovers, c.dur, len(c.nodes))
	begin := time.Now()
	for i, m := range moments {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(begin.Add(m))):
		}
		s := c.nodes[asks[i]]
		if drain {
			s = masterHost(c, asks[i])
		}
		op := model.Operation{Type: model.OpInvoke, F: "failover", Node: s.Name}
		c.out.Add(op)
		_, err := sentinel(s, c.tmo, "FAILOVER")
		op.Type = model.OpOK // begun; the Sentinels finish it by themselves
		if err != nil {
			op.Type, op.Error = failure(err)
		}
		c.out.Add(op)
	}
	<-ctx.Done()
	return nil
}

// masterHost is the host of the master, as the first Sentinel names it that answers,
// from the one that was drawn on; the drawn one if none does.
func masterHost(c *common, drawn int) workload.Node {
	for i := range c.nodes {
		m, err := masterBySentinel(c.nodes[(drawn+i)%len(c.nodes)], c.nodes, c.tmo)
		if err == nil {
			return m
		}
	}
	return c.nodes[drawn]
}

// plan draws the moments and the Sentinels to ask. It is a function of the
// seed: a replay does the same.
func plan(seed uint64, failovers int, dur time.Duration, nodes int) ([]time.Duration, []int) {
	rng := rand.New(rand.NewPCG(seed, 0x0b5))
	var moments []time.Duration
	var asks []int
	for i := range failovers {
		share := dur / time.Duration(failovers)
		moments = append(moments, time.Duration(i)*share+share/10+time.Duration(rng.Int64N(int64(share)*4/10+1)))
		asks = append(asks, rng.IntN(nodes))
	}
	slices.Sort(moments)
	return moments, asks
}

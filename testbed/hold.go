package testbed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"netsplit/flowrules"
	"netsplit/model"
)

// ErrUnread: a run cannot take the gate in its midst, since it has not read what was said
// before.
var ErrUnread = errors.New("message faults need a testbed of one switch with a mirror port (mirrors in the testbed file): " +
	"without one the connections that there are already cannot be read from their middle on")

// Hold has the gate of a script's run hold what pairs of hosts send one another, and the
// mirror port show the other pairs. It returns when it is proved that nothing passes the
// gate by any more, as Prove does of a cut: Open vSwitch forwards by its cache for a while.
// All that passed it by has been entered then.
func (b *Testbed) Hold(ctx context.Context, held, mirrored []Pair) error {
	a := b.along.Load()
	if a == nil {
		return ErrUnread
	}
	if err := b.fabric.SetTaps(ctx, held, mirrored); err != nil {
		return fmt.Errorf("the switch did not take the gate's rules: %w", err)
	}
	probePackets, c := model.Partition{}.ProbePackets(), &Cut{tb: b}
	left, links := due{}, []model.Link(nil)
	for _, p := range held {
		for _, l := range []model.Link{{Src: p.A, Dst: p.B}, {Src: p.B, Dst: p.A}} {
			left[l], links = slices.Repeat([]bool{true}, len(probePackets)), append(links, l)
		}
	}
	left.spare(probePackets, b.CutBy)
	ctx, stop := context.WithTimeout(ctx, proofLimit)
	defer stop()
	err := c.gated(ctx, left, probePackets, func(ctx context.Context, of []model.ProbePacket) (map[model.Link][]model.Met, error) {
		return b.fabric.Gated(ctx, links, of)
	})
	if err != nil {
		return fmt.Errorf("it is not proved that the gate holds all: %w", err)
	}
	return a.flush()
}

// gated returns when the gate's rules have counted the rounds of a proof. A switch that
// counts late is asked again.
func (c *Cut) gated(ctx context.Context, left due, probePackets []model.ProbePacket, count counter) error {
	return again(func() error { return c.rounds(ctx, provingRounds, left, probePackets, count) })
}

// CutBy says whether a cut at line rate that stands takes the probe packet on the link.
func (b *Testbed) CutBy(l model.Link, s model.ProbePacket) (is bool) {
	b.standing.Range(func(_, v any) bool {
		p := v.(*Cut).partition
		is = slices.Contains(p.Links(), l) && flowrules.Takes(p, s)
		return !is
	})
	return is
}

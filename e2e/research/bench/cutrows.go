package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// leakRows are the rows of cuts with n flows: by meters, by rules alone, and by
// ovs-ofctl beside.
func leakRows(n int, ours, rules, other *cutFigures) []row {
	rows := []row{line("packets that arrive after the request, p50, greatest", ours, rules, other, func(f *cutFigures) (string, float64) {
		if len(f.afterRequest) == 0 {
			return "none", 0
		}
		return fmt.Sprintf("%d, %d", quantile(f.afterRequest, .5), slices.Max(f.afterRequest)), float64(quantile(f.afterRequest, .5))
	})}
	rows = append(rows, afterForceRow(ours, rules, other),
		line("heal: ms from the request to the first packet, p50, p99 (netsplit counts what was dropped first, 30 ms and more)", ours, rules, other, spanOf(func(f *cutFigures) []time.Duration { return f.first })),
		openRow(ours, rules, other))
	lost := line(fmt.Sprintf("heal: packets lost of those sent in the %v after it is said to be healed", wellAfter), ours, rules, other, func(f *cutFigures) (string, float64) {
		return fmt.Sprintf("%d in %d of %d heals", allOf(f.lost), countOf(f.lost), len(f.lost)), 0
	})
	lost.goal, lost.met = noneGoal+" heals of each", none(seen{len(ours.lost), allOf(ours.lost)}, seen{len(rules.lost), allOf(rules.lost)})
	rows = append(rows, lost,
		line(fmt.Sprintf("heal: share that arrives of what is sent in the %v from the first packet on, p50, least", wellAfter), ours, rules, other, func(f *cutFigures) (string, float64) {
			if len(f.share) == 0 {
				return "none", 0
			}
			return fmt.Sprintf("%.2f, %.2f", quantile(f.share, .5), slices.Min(f.share)), quantile(f.share, .5)
		}), healedRow(ours, rules, other))
	for i := range rows[1:] {
		rows[i+1].what = "… " + rows[i+1].what
	}
	rows[0].what = fmt.Sprintf("%d flows (at least %d cached), %d cuts by meters, %d by rules alone, %d by ovs-ofctl: ", n, quantile(slices.Concat(ours.cached, rules.cached, other.cached), 0), ours.cuts, rules.cuts, other.cuts) + rows[0].what
	return rows
}

// line is a row of something said of each kind, with the middle of it: the ratio
// is of the middles. 0: there is none.
func line(what string, ours, rules, other *cutFigures, of func(*cutFigures) (text string, mid float64)) row {
	a, mid := of(ours)
	b, _ := of(rules)
	c, beside := of(other)
	r := row{what: what, ours: a + "; rules alone " + b, beside: c}
	if mid > 0 && beside > 0 {
		r.ratio = fmt.Sprintf("%.2f of p50", mid/beside)
	}
	return r
}

// spanOf is p50 and p99 in ms.
func spanOf(of func(*cutFigures) []time.Duration) func(*cutFigures) (string, float64) {
	return func(f *cutFigures) (string, float64) {
		ds := of(f)
		if len(ds) == 0 {
			return "none", 0
		}
		return fmt.Sprintf("%.1f, %.1f", millis(quantile(ds, .5)), millis(quantile(ds, .99))), millis(quantile(ds, .5))
	}
}

func healedRow(ours, rules, other *cutFigures) row {
	return line("heal: ms from the request to healed, proved (ovs-ofctl: to the end of its process, after the barrier reply), p50, p99", ours, rules, other,
		spanOf(func(f *cutFigures) []time.Duration { return f.healed }))
}

func afterForceRow(ours, rules, other *cutFigures) row {
	r := line("packets that arrive between in force (the moment that the status names, which is before it is told; ovs-ofctl: the end of its process) and the request to heal", ours, rules, other,
		func(f *cutFigures) (string, float64) {
			return fmt.Sprintf("%d in %d of %d cuts", f.leaked, f.leaky, f.cuts), 0
		})
	r.goal, r.met = noneGoal+" cuts of each", none(seen{ours.cuts, ours.leaked}, seen{rules.cuts, rules.leaked})
	return r
}

func openRow(ours, rules, other *cutFigures) row {
	r := line(fmt.Sprintf("heal: heals after which nothing passed for %v", openLimit), ours, rules, other, func(f *cutFigures) (string, float64) {
		return fmt.Sprintf("%d of %d", f.open, f.cuts), 0
	})
	r.goal, r.met = noneGoal+" of each", none(seen{ours.cuts, ours.open}, seen{rules.cuts, rules.open})
	return r
}

// inForce measures how long proofs take.
func inForce(ctx context.Context, c *cutTestbed, trials int, say func(string, ...any)) ([]row, error) {
	kinds := c.kinds()
	m := mix{Flows: fewFlows, Rate: cutRate / 10, Size: cutSize}
	if err := c.measure(ctx, kinds, trials, m, say); err != nil {
		return nil, err
	}
	ours, rules, other := kinds[0].got[m.Flows], kinds[1].got[m.Flows], kinds[2].got[m.Flows]
	return []row{
		line(fmt.Sprintf("ms from the request to the event that says in force, proved (ovs-ofctl: to the end of its process, after the barrier reply), p50, p99 of %d", ours.cuts), ours, rules, other,
			spanOf(func(f *cutFigures) []time.Duration { return f.inForce })),
		afterForceRow(ours, rules, other), healedRow(ours, rules, other), openRow(ours, rules, other),
	}, nil
}

func allOf(ns []int) (sum int) {
	for _, n := range ns {
		sum += n
	}
	return sum
}

// countOf is how many are not 0.
func countOf(ns []int) (count int) {
	for _, n := range ns {
		if n != 0 {
			count++
		}
	}
	return count
}

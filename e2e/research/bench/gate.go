package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/testbed/fabric"
)

// gateCost measures throughput and round trips of plain forwarding, of the gate
// by either transport, of ovs-testcontroller and of os-ken, one after the
// other, in every round.
func gateCost(ctx context.Context, rounds, pings int, each time.Duration, say func(string, ...any)) (rows []row, err error) {
	test, err := newTestController(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, test.stop()) }()
	python, err := newOSKen(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, python.stop()) }()

	var ours *ourTestbed
	gated := func(pairs []fabric.Pair, by model.Gate) func(context.Context, *rig) error {
		return func(ctx context.Context, _ *rig) error { return ours.gateBy(ctx, pairs, by) }
	}
	plain := &variant{name: "plain forwarding", tcp: true, ready: gated(nil, model.GateByPort)}
	port := &variant{name: "gate port", tcp: true, ready: gated(thePair, model.GateByPort), cpu: ownCPU}
	gate := &variant{name: "packet-in gate", tcp: true, ready: gated(thePair, model.GateByPacketIn), cpu: ownCPU}
	c, ken := test.variant(), python.variant()
	var lost []string
	settings := []*setting{
		{variants: []*variant{plain, port, gate}, open: func(ctx context.Context) (_ *rig, err error) {
			if ours, err = newOurTestbed(ctx); err != nil {
				return nil, err
			}
			if err := ours.daemon(ctx, hostB, "iperf3", "-s"); err != nil {
				return nil, errors.Join(err, ours.close())
			}
			return ours.rig, nil
		}, after: func(ctx context.Context) error {
			if err := ours.gateBy(ctx, nil, model.GateByPort); err != nil {
				return err
			}
			// Nothing may have been lost between the gate and its owner unnoticed.
			n, refused := ours.fabric.Counts(), ours.refused.Load()
			if n.Held != n.Released+refused {
				return fmt.Errorf("the gate held %d packets, released %d and could not release %d", n.Held, n.Released, refused)
			}
			reported, err := ours.gateLosses(ctx)
			if refused > 0 {
				reported = append(reported, fmt.Sprintf("%d of %d packets not released: more waited than the switch took", refused, n.Held))
			}
			lost = append(lost, reported...)
			return err
		}},
		{variants: []*variant{c}, open: test.rig},
		{variants: []*variant{ken}, open: python.rig},
	}
	for round := range rounds {
		// Who comes first changes, so that no one has the better place.
		for i := range settings {
			if err := settings[(i+round)%len(settings)].round(ctx, round, pings, each, say); err != nil {
				return nil, err
			}
		}
	}
	if lost == nil {
		lost = []string{"none"}
	}
	rows = append(portRows(plain, port, gate), row{what: "gate, losses told of under all this load, also at rates that no path carries", ours: strings.Join(lost, "; ")})
	return append(append(rows, besidePlain(plain, gate)...), slices.Concat(
		besideController(plain, gate, c, 1.2), besideController(plain, gate, ken, 0),
		besideController(plain, port, c, 0), besideController(plain, port, ken, 0))...), nil
}

func besidePlain(plain, gate *variant) []row {
	var rows []row
	for _, size := range sizes {
		rows = append(rows, row{
			what: fmt.Sprintf("packet-in gate, packets/s of %d bytes of UDP payload, beside plain forwarding", size),
			ours: spreadOf(gate.rate[size]).text("%.0f"), beside: spreadOf(plain.rate[size]).text("%.0f"),
			ratio: ratioText(gate.rate[size], plain.rate[size])})
	}
	for _, size := range sizes {
		for _, q := range []struct {
			name       string
			gate, none []time.Duration
		}{{"p50", gate.p50[size], plain.p50[size]}, {"p99", gate.p99[size], plain.p99[size]}} {
			rows = append(rows, row{
				what: fmt.Sprintf("packet-in gate, round trip of %d bytes of ICMP %s in µs, beside plain forwarding", size, q.name),
				ours: spreadOf(micros(q.gate)).text("%.0f"), beside: spreadOf(micros(q.none)).text("%.0f"),
				ratio: ratioText(micros(q.gate), micros(q.none))})
		}
	}
	return rows
}

// besideController sets a gate beside another controller that sends every packet
// on. goal is of the packets a second, and then the gate's p99 is to be no
// worse in the middle of the rounds; 0: none.
func besideController(plain, gate, other *variant, goal float64) []row {
	var rows []row
	for _, size := range sizes {
		one := row{what: fmt.Sprintf("%s, packets/s of %d bytes of UDP payload, beside %s", gate.name, size, other.name),
			ours: spreadOf(gate.rate[size]).text("%.0f"), beside: spreadOf(other.rate[size]).text("%.0f"), ratio: ratioText(gate.rate[size], other.rate[size])}
		if goal > 0 {
			one.goal, one.met = fmt.Sprintf("at least %.1f", goal), atLeast(gate.rate[size], other.rate[size], goal)
		}
		rows = append(rows, one)
	}
	for _, size := range sizes {
		for _, q := range []struct {
			name              string
			gate, other, none []time.Duration
			bound             bool
		}{{"p50", gate.p50[size], other.p50[size], plain.p50[size], false}, {"p99", gate.p99[size], other.p99[size], plain.p99[size], goal > 0}} {
			added, beside := micros(minus(q.gate, q.none)), micros(minus(q.other, q.none))
			one := row{what: fmt.Sprintf("%s, round trip of %d bytes of ICMP %s in µs beyond plain forwarding, beside %s", gate.name, size, q.name, other.name),
				ours: spreadOf(added).text("%.0f"), beside: spreadOf(beside).text("%.0f"), ratio: ratioText(added, beside)}
			if q.bound {
				// By the difference: a round in which the other added nothing has no ratio.
				one.ours += "; difference " + spreadOf(less(added, beside, 1)).text("%.0f")
				one.goal, one.met = "difference at most 0", noMore(added, beside)
			}
			rows = append(rows, one)
		}
	}
	return append(rows, row{what: gate.name + ", µs of the controller's CPU per packet, beside " + other.name,
		ours: spreadOf(gate.per).text("%.1f"), beside: spreadOf(other.per).text("%.1f"), ratio: ratioText(gate.per, other.per)})
}

func portRows(plain, port, gate *variant) []row {
	var rows []row
	rows = append(rows,
		row{what: "gate port, iperf3 Mbit/s, beside plain forwarding", ours: spreadOf(port.mbit).text("%.0f"), beside: spreadOf(plain.mbit).text("%.0f"),
			ratio: ratioText(port.mbit, plain.mbit), goal: "at least 0.7", met: atLeast(port.mbit, plain.mbit, .7)},
		row{what: "packet-in gate, iperf3 Mbit/s, beside plain forwarding", ours: spreadOf(gate.mbit).text("%.0f"), beside: spreadOf(plain.mbit).text("%.0f"),
			ratio: ratioText(gate.mbit, plain.mbit)})
	for _, size := range sizes {
		rows = append(rows, row{
			what: fmt.Sprintf("gate port, packets/s of %d bytes of UDP payload, beside the packet-in gate", size),
			ours: spreadOf(port.rate[size]).text("%.0f"), beside: spreadOf(gate.rate[size]).text("%.0f"),
			ratio: ratioText(port.rate[size], gate.rate[size]), goal: "at least 2", met: atLeast(port.rate[size], gate.rate[size], 2)})
		rows = append(rows, row{
			what: fmt.Sprintf("gate port, packets/s of %d bytes of UDP payload, beside plain forwarding", size),
			ours: spreadOf(port.rate[size]).text("%.0f"), beside: spreadOf(plain.rate[size]).text("%.0f"),
			ratio: ratioText(port.rate[size], plain.rate[size])})
	}
	for _, size := range sizes {
		for _, q := range []struct {
			name             string
			port, gate, none []time.Duration
			limit            float64 // µs; 0: no goal
		}{{"p50", port.p50[size], gate.p50[size], plain.p50[size], 100}, {"p99", port.p99[size], gate.p99[size], plain.p99[size], 0}} {
			added, beside := micros(minus(q.port, q.none)), micros(minus(q.gate, q.none))
			r := row{what: fmt.Sprintf("gate port, round trip of %d bytes of ICMP %s in µs beyond plain forwarding, beside the packet-in gate", size, q.name),
				ours: spreadOf(added).text("%.0f"), beside: spreadOf(beside).text("%.0f"), ratio: ratioText(added, beside)}
			if q.limit > 0 {
				r.goal, r.met = fmt.Sprintf("under %.0f", q.limit), addsUnder(micros(q.port), micros(q.none), q.limit)
			}
			rows = append(rows, r)
		}
	}
	return append(rows, row{what: "gate port, µs of netsplit's CPU per packet, beside the packet-in gate",
		ours: spreadOf(port.per).text("%.1f"), beside: spreadOf(gate.per).text("%.1f"), ratio: ratioText(port.per, gate.per)})
}

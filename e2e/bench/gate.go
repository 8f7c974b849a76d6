package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/campaign/fabric"
	"netsplit/model"
)

// ladder are the rates offered, in packets a second. The best rate that came
// through counts: beyond what a path carries, more load means less throughput.
var ladder = []int{4000, 8000, 12000, 16000, 24000, 32000, 48000, 64000, 96000, 128000}

const (
	// rung is how long a rate is offered, and run-in the part of it that does
	// not count.
	rung  = 500 * time.Millisecond
	runIn = 100 * time.Millisecond
)

// variant is one way of getting packets from host a to host b.
type variant struct {
	name  string
	bed   *bed
	send  *sender
	ready func(context.Context) error   // makes the switch work this way
	cpu   func() (time.Duration, error) // of the controller's process so far; nil: none

	rate map[int][]float64       // best packets/s by payload size, one per round
	tcp  []float64               // Mbit/s of iperf3, one per round; none of another's bed
	p50  map[int][]time.Duration // of round trips by bytes of ICMP, one per round
	p99  map[int][]time.Duration
	per  []float64 // µs of the controller's CPU per packet, of all sizes and rates
}

// gateCost measures throughput and round trips of plain forwarding, of the gate
// by either transport, of ovs-testcontroller and of os-ken, one after the
// other, in every round.
func gateCost(ctx context.Context, ours *ourBed, c, python *bed, rounds, pings int, each time.Duration, say func(string, ...any)) ([]row, error) {
	if err := ours.daemon(ctx, hostB, "iperf3", "-s"); err != nil {
		return nil, err
	}
	mine, err := ours.newSender(hostA, hostB)
	if err != nil {
		return nil, err
	}
	gated := func(pairs []fabric.Pair, by model.Gate) func(context.Context) error {
		return func(ctx context.Context) error { return ours.gateBy(ctx, pairs, by) }
	}
	nothing := func(context.Context) error { return nil }
	plain := &variant{name: "plain forwarding", bed: ours.bed, send: mine, ready: gated(nil, model.GateByPort)}
	port := &variant{name: "gate port", bed: ours.bed, send: mine, ready: gated(thePair, model.GateByPort), cpu: ownCPU}
	gate := &variant{name: "packet-in gate", bed: ours.bed, send: mine, ready: gated(thePair, model.GateByPacketIn), cpu: ownCPU}
	theirs := func(name string, b *bed) (*variant, error) {
		send, err := b.newSender(hostA, hostB)
		return &variant{name: name, bed: b, send: send, ready: nothing, cpu: func() (time.Duration, error) { return cpuOf(b.controller) }}, err
	}
	test, err := theirs("ovs-testcontroller", c)
	if err != nil {
		return nil, err
	}
	ken, err := theirs("os-ken", python)
	if err != nil {
		return nil, err
	}
	all := []*variant{plain, port, gate, test, ken}
	sizes := []int{64, 1400}
	for _, v := range all {
		v.rate, v.p50, v.p99 = map[int][]float64{}, map[int][]time.Duration{}, map[int][]time.Duration{}
	}
	for round := range rounds {
		// Who comes first changes, so that no one has the better place.
		for i := range all {
			v := all[(i+round)%len(all)]
			if err := v.ready(ctx); err != nil {
				return nil, err
			}
			// What Open vSwitch has cached of the other rules is gone after this.
			time.Sleep(600 * time.Millisecond)
			stop, err := v.account()
			if err != nil {
				return nil, err
			}
			for _, size := range sizes {
				best, err := v.throughput(ctx, size)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", v.name, err)
				}
				v.rate[size] = append(v.rate[size], best)
			}
			if err := stop(); err != nil {
				return nil, err
			}
			if v.bed == ours.bed {
				got, _, err := v.bed.iperf(ctx, each)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", v.name, err)
				}
				v.tcp = append(v.tcp, got)
				if err := v.bed.drained(ctx); err != nil {
					return nil, err
				}
			}
			trips := ""
			for _, size := range sizes {
				took, err := v.bed.roundTrips(ctx, pings, 2*time.Millisecond, size)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", v.name, err)
				}
				p50, p99 := quantile(took, .5), quantile(took, .99)
				v.p50[size], v.p99[size] = append(v.p50[size], p50), append(v.p99[size], p99)
				trips += fmt.Sprintf(" round trip of %d bytes p50 %v p99 %v;", size, p50.Round(time.Microsecond), p99.Round(time.Microsecond))
			}
			tcp := ""
			if v.tcp != nil {
				tcp = fmt.Sprintf(" iperf3 %.0f Mbit/s;", v.tcp[round])
			}
			say("gate round %d/%d, %s: %.0f packets/s of 64, %.0f of 1400 bytes;%s%s", round+1, rounds, v.name,
				v.rate[64][round], v.rate[1400][round], tcp, trips)
		}
	}
	if err := plain.ready(ctx); err != nil {
		return nil, err
	}
	// Nothing may have been lost between the gate and its owner unnoticed.
	counts := ours.fabric.Counts()
	if counts.Held != counts.Released {
		return nil, fmt.Errorf("the gate held %d packets and released %d", counts.Held, counts.Released)
	}
	rows := portRows(plain, port, gate, sizes)
	lost, err := ours.gateLosses(ctx)
	if err != nil {
		return nil, err
	}
	rows = append(rows, row{what: "gate port, losses told of under all this load", ours: lost})
	return append(append(rows, besidePlain(plain, gate, sizes)...), slices.Concat(
		besideController(plain, gate, test, sizes, 1.2), besideController(plain, gate, ken, sizes, 0),
		besideController(plain, port, test, sizes, 0), besideController(plain, port, ken, sizes, 0))...), nil
}

// besidePlain sets the packet-in gate beside plain forwarding.
func besidePlain(plain, gate *variant, sizes []int) []row {
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
func besideController(plain, gate, other *variant, sizes []int, goal float64) []row {
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

// portRows sets the gate port beside plain forwarding and the packet-in gate.
func portRows(plain, port, gate *variant, sizes []int) []row {
	var rows []row
	rows = append(rows,
		row{what: "gate port, iperf3 Mbit/s, beside plain forwarding", ours: spreadOf(port.tcp).text("%.0f"), beside: spreadOf(plain.tcp).text("%.0f"),
			ratio: ratioText(port.tcp, plain.tcp), goal: "at least 0.7", met: atLeast(port.tcp, plain.tcp, .7)},
		row{what: "packet-in gate, iperf3 Mbit/s, beside plain forwarding", ours: spreadOf(gate.tcp).text("%.0f"), beside: spreadOf(plain.tcp).text("%.0f"),
			ratio: ratioText(gate.tcp, plain.tcp)})
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

// account begins to count packets and the controller's CPU time; the function
// it returns notes the time per packet.
func (v *variant) account() (func() error, error) {
	if v.cpu == nil {
		return func() error { return nil }, nil
	}
	cpu, err := v.cpu()
	if err != nil {
		return nil, err
	}
	had, _, err := v.bed.links[hostB].packets()
	return func() error {
		now, err := v.cpu()
		if err != nil {
			return err
		}
		have, _, err := v.bed.links[hostB].packets()
		if err == nil && have > had {
			v.per = append(v.per, float64((now-cpu).Nanoseconds())/1000/float64(have-had))
		}
		return err
	}, err
}

// ownCPU is the CPU time of this process.
func ownCPU() (time.Duration, error) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0, err
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), nil
}

// cpuOf is the CPU time of another process, from the time that each of its
// threads ran (/proc/pid/task/tid/schedstat, first field, in ns).
func cpuOf(pid int) (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return 0, err
		}
		var ns int64
		if _, err := fmt.Sscan(string(b), &ns); err != nil {
			return 0, fmt.Errorf("%s: %w", f, err)
		}
		total += time.Duration(ns)
	}
	if total == 0 {
		return 0, fmt.Errorf("process %d: no CPU time: has it ended?", pid)
	}
	return total, nil
}

// throughput climbs the ladder and gives the best rate at which payloads of
// the size arrived, as the receiving host's interface counts them.
func (v *variant) throughput(ctx context.Context, size int) (float64, error) {
	best := 0.0
	poor := 0
	link := v.bed.links[hostB]
	for _, rate := range ladder {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		end, err := v.send.begin(order{Size: size, Rate: rate, Time: rung})
		if err != nil {
			return 0, err
		}
		began := time.Now()
		time.Sleep(runIn)
		from, _, err := link.packets()
		t := time.Now()
		if err != nil {
			return 0, err
		}
		time.Sleep(rung - 20*time.Millisecond - time.Since(began))
		to, _, err := link.packets()
		took := time.Since(t)
		if err != nil {
			return 0, err
		}
		if _, err := end(); err != nil {
			return 0, err
		}
		if err := v.bed.drained(ctx); err != nil {
			return 0, err
		}
		got := float64(to-from) / took.Seconds()
		best = max(best, got)
		if poor++; got > .6*float64(rate) {
			poor = 0
		}
		if poor == 2 {
			break
		}
	}
	return best, nil
}

// drained waits until no more packets arrive, at most 3 s.
func (b *bed) drained(ctx context.Context) error {
	last, _, err := b.links[hostB].packets()
	for end := time.Now().Add(3 * time.Second); err == nil && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(60 * time.Millisecond):
		}
		var now uint64
		if now, _, err = b.links[hostB].packets(); now-last < 3 {
			return err
		}
		last = now
	}
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ladder are the rates offered, in packets a second. The best rate that came
// through counts: beyond what a path carries, more load means less throughput.
var ladder = []int{4000, 8000, 16000, 32000, 48000, 64000, 80000, 96000, 112000, 128000, 160000, 192000, 224000, 256000, 320000, 384000, 448000, 512000}

const (
	// rung is how long a rate is offered, and run-in the part of it that does
	// not count.
	rung  = 500 * time.Millisecond
	runIn = 100 * time.Millisecond
)

// variant is one way of getting packets from host a to host b.
type variant struct {
	name  string
	ready func(context.Context, *rig) error // makes its switch work this way; nil: it does
	tcp   bool                              // iperf3 is run, too
	cpu   func() (time.Duration, error)     // of the controller's process so far; nil: none

	rate map[int][]float64       // best packets/s by payload size, one per round
	mbit []float64               // of iperf3, one per round
	p50  map[int][]time.Duration // of round trips by bytes of ICMP, one per round
	p99  map[int][]time.Duration
	per  []float64 // µs of the controller's CPU per packet, of all sizes and rates
}

// sizes are of UDP payload and of ICMP, in bytes.
var sizes = []int{64, 1400}

// measure takes one of each figure and says them.
func (v *variant) measure(ctx context.Context, b *rig, send *sender, pings int, each time.Duration) (string, error) {
	if v.rate == nil {
		v.rate, v.p50, v.p99 = map[int][]float64{}, map[int][]time.Duration{}, map[int][]time.Duration{}
	}
	if v.ready != nil {
		if err := v.ready(ctx, b); err != nil {
			return "", err
		}
	}
	// What Open vSwitch has cached of the other rules is gone after this.
	time.Sleep(600 * time.Millisecond)
	stop, err := v.account(b)
	if err != nil {
		return "", err
	}
	said := v.name + ":"
	for _, size := range sizes {
		best, err := throughput(ctx, b, send, size)
		if err != nil {
			return "", err
		}
		v.rate[size] = append(v.rate[size], best)
		said += fmt.Sprintf(" %.0f packets/s of %d bytes;", best, size)
	}
	if err := stop(); err != nil {
		return "", err
	}
	if v.tcp {
		got, _, err := b.iperf(ctx, each)
		if err != nil {
			return "", err
		}
		v.mbit = append(v.mbit, got)
		said += fmt.Sprintf(" iperf3 %.0f Mbit/s;", got)
		if err := b.drained(ctx); err != nil {
			return "", err
		}
	}
	for _, size := range sizes {
		took, err := b.roundTrips(ctx, pings, 2*time.Millisecond, size)
		if err != nil {
			return "", err
		}
		p50, p99 := quantile(took, .5), quantile(took, .99)
		v.p50[size], v.p99[size] = append(v.p50[size], p50), append(v.p99[size], p99)
		said += fmt.Sprintf(" round trip of %d bytes p50 %v p99 %v;", size, p50.Round(time.Microsecond), p99.Round(time.Microsecond))
	}
	return said, nil
}

// setting is a lab on which variants are measured. There is one at a time: Open
// vSwitch looks at every port that it has, also of other switches, before it
// goes on with a packet.
type setting struct {
	open     func(context.Context) (*rig, error)
	variants []*variant
	after    func(context.Context) error // checks the lab; nil: nothing
}

func (s *setting) round(ctx context.Context, round, pings int, each time.Duration, say func(string, ...any)) (err error) {
	b, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	send, err := b.newSender(hostA, hostB)
	if err != nil {
		return err
	}
	for i := range s.variants {
		v := s.variants[(i+round)%len(s.variants)]
		said, err := v.measure(ctx, b, send, pings, each)
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		say("gate round %d, %s", round+1, said)
	}
	if s.after != nil {
		return s.after(ctx)
	}
	return nil
}

// account begins to count packets and the controller's CPU time; the function
// it returns notes the time per packet.
func (v *variant) account(b *rig) (func() error, error) {
	if v.cpu == nil {
		return func() error { return nil }, nil
	}
	cpu, err := v.cpu()
	if err != nil {
		return nil, err
	}
	had, _, err := b.links[hostB].packets()
	return func() error {
		now, err := v.cpu()
		if err != nil {
			return err
		}
		have, _, err := b.links[hostB].packets()
		if err == nil && have > had {
			v.per = append(v.per, float64((now-cpu).Nanoseconds())/1000/float64(have-had))
		}
		return err
	}, err
}

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
func throughput(ctx context.Context, b *rig, send *sender, size int) (float64, error) {
	best := 0.0
	poor := 0
	link := b.links[hostB]
	for _, rate := range ladder {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		end, err := send.begin(order{Size: size, Rate: rate, Time: rung})
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
		if err := b.drained(ctx); err != nil {
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
func (b *rig) drained(ctx context.Context) error {
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

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"netsplit/controller"
	"netsplit/testbed/agent"
	"netsplit/testbed/fabric"
)

const (
	// meterHosts is how many hosts of one switch are cut by meters; with more
	// there are none.
	meterHosts = 32
	crowdHosts = 1000
	// weighs is how often a heap is looked at, every weighEvery: longer than a
	// fabric takes to read its rules back again, once a second.
	weighs, weighEvery = 20, 150 * time.Millisecond
	// calm is how long after a change of rules a heap is looked at first.
	calm = 3 * time.Second
	// ringPackets are more than an agent keeps.
	ringPackets = 300_000
)

// weight is the heap in KiB that a fabric takes, of a connected switch whose rules
// are read back meanwhile, so that the greatest is with a reply of it; cutting is
// with a partition in force. The session is in neither, for it is there before.
type weight struct{ standing, cutting []float64 }

func heapRows(ctx context.Context, ctrl *controller.Controller, b *rig) ([]row, error) {
	one, err := b.weigh(ctx, ctrl, 1, 0)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, c := range []struct {
		hosts, cut int
		with       string
	}{{meterHosts, meterHosts, fmt.Sprintf("their %d meters", meterHosts*(meterHosts-1))}, {crowdHosts, 2 * half, "no meters"}} {
		w, err := b.weigh(ctx, ctrl, c.hosts, c.cut)
		if err != nil {
			return nil, err
		}
		rows = append(rows,
			row{what: fmt.Sprintf("KiB of heap of a fabric of %d hosts with %s on a switch that is read back every second, agents not counted, beside one of 1 host", c.hosts, c.with),
				ours: spreadOf(w.standing).text("%.0f"), beside: spreadOf(one.standing).text("%.0f")},
			row{what: fmt.Sprintf("… with a partition of %d x %d of them in force, beside without", c.cut/2, c.cut/2),
				ours: spreadOf(w.cutting).text("%.0f"), beside: spreadOf(w.standing).text("%.0f")})
	}
	return rows, nil
}

// weigh weighs a fabric of so many hosts, some of which are then cut in two; 0:
// none.
func (b *rig) weigh(ctx context.Context, ctrl *controller.Controller, hosts, cut int) (w weight, err error) {
	before := heap()
	f, err := fabric.New(fabric.Config{Testbed: crowd(b.testbed, b.lab.Datapath(), hosts), Controller: ctrl, Timeout: time.Minute})
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := f.Ready(ready); err != nil {
		return w, err
	}
	if w.standing, err = heapsAbove(ctx, before); err != nil || cut == 0 {
		return w, err
	}
	p := halves(cut)
	if alone := f.Mechanism(p); (alone == nil) != (hosts <= meterHosts) {
		return w, fmt.Errorf("%d hosts: by rules alone: %v; want meters up to %d hosts and none beyond", hosts, alone, meterHosts)
	}
	if err := f.Cut(ctx, 1, p); err != nil {
		return w, err
	}
	w.cutting, err = heapsAbove(ctx, before)
	return w, err
}

// heapsAbove are how many KiB more the heap holds than it did, time after time.
func heapsAbove(ctx context.Context, before int64) (out []float64, err error) {
	for next := time.After(calm); len(out) < weighs; next = time.After(weighEvery) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-next:
			out = append(out, float64(heap()-before)/1024)
		}
	}
	return out, nil
}

// heap is what this process has allocated and still uses, in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func agentRows(ctx context.Context, b *rig) ([]row, error) {
	if _, err := b.ofctl(ctx, "add-flow", b.mgmt(), "table=0,priority=65535,cookie="+theirCookie+",actions=normal"); err != nil {
		return nil, err
	}
	agents, err := b.agents(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.reach(ctx); err != nil {
		return nil, err
	}
	idle, err := rssOf(agents[hostB].PID())
	if err != nil {
		return nil, err
	}
	if err := b.fill(ctx, agents[hostB]); err != nil {
		return nil, err
	}
	full, err := rssOf(agents[hostB].PID())
	mib := func(n int64) string { return fmt.Sprintf("%.1f", float64(n)/(1<<20)) }
	return []row{
		{what: "MiB of resident memory of the agent, one process on every host, that has seen next to nothing", ours: mib(idle)},
		{what: fmt.Sprintf("… that has seen %d packets, more than it keeps", ringPackets), ours: mib(full)},
	}, err
}

func (b *rig) fill(ctx context.Context, to *agent.Client) error {
	send, err := b.newSender(hostA, hostB)
	if err != nil {
		return err
	}
	had, _, err := b.links[hostB].packets()
	if err != nil {
		return err
	}
	for limit := time.Now().Add(2 * time.Minute); ; {
		now, _, err := b.links[hostB].packets()
		if err != nil {
			return err
		}
		if now-had > ringPackets {
			return to.Err()
		}
		if time.Now().After(limit) {
			return fmt.Errorf("host b received %d packets in 2 minutes: want more than %d", now-had, ringPackets)
		}
		end, err := send.begin(order{Size: 64, Rate: 50_000, Time: time.Second})
		if err != nil {
			return err
		}
		if _, err := end(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// rssOf is the resident memory of a process in bytes (proc(5), VmRSS, in kB).
func rssOf(pid int) (int64, error) {
	b, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "status"))
	if err != nil {
		return 0, err
	}
	return parseRSS(string(b))
}

func parseRSS(status string) (int64, error) {
	for line := range strings.Lines(status) {
		var kb int64
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			if _, err := fmt.Sscanf(strings.TrimSpace(rest), "%d kB", &kb); err != nil {
				return 0, fmt.Errorf("%q: %w", strings.TrimSpace(line), err)
			}
			return kb << 10, nil
		}
	}
	return 0, errors.New("no VmRSS: the process has ended")
}

// Runners measures what it costs a daemon to hand runs out: its own broker in this process, and
// runners that a second process simulates, each with a TLS connection of its own. Their runs take
// a given time and leave a record of a given size.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"netsplit/campaign/cluster"
	"netsplit/model"
	"netsplit/record/rundir"
)

type config struct {
	runners, slots, items, size int
	takes                       time.Duration
	invitation                  string
}

func main() {
	var c config
	flag.IntVar(&c.runners, "runners", 1000, "runners")
	flag.IntVar(&c.slots, "slots", 1, "runs at once of each")
	flag.IntVar(&c.items, "items", 20_000, "runs")
	flag.IntVar(&c.size, "record", 64<<10, "bytes of a record, beside its meta.json; they cannot be compressed")
	flag.DurationVar(&c.takes, "takes", 0, "what a run takes")
	flag.StringVar(&c.invitation, "join", "", "be the runners that this `FILE` invites, until standard input ends (this program starts itself so)")
	flag.Parse()
	do := measure
	if c.invitation != "" {
		do = simulate
	}
	if err := do(context.Background(), c); err != nil {
		fmt.Fprintln(os.Stderr, "runners:", err)
		os.Exit(1)
	}
}

// worker is a simulated machine.
type worker struct {
	c     config
	dir   string
	bytes []byte
}

func (w worker) Open(context.Context, cluster.Work, cluster.Files) (cluster.Bench, error) {
	return w, nil
}
func (w worker) Slots() int        { return w.c.slots }
func (w worker) Close()            {}
func (w worker) Forget(dir string) { _ = os.RemoveAll(dir) }

func (w worker) Run(ctx context.Context, item model.WorkItem, _ cluster.Say) (string, error) {
	select {
	case <-time.After(w.c.takes):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	dir, err := os.MkdirTemp(w.dir, "run-")
	if err != nil {
		return "", err
	}
	meta := model.RunMeta{Campaign: item.Campaign, Run: item.Run, Scenario: item.Scenario, Version: "simulated"}
	return dir, errors.Join(rundir.WriteJSON(filepath.Join(dir, rundir.MetaFile), meta), os.WriteFile(filepath.Join(dir, rundir.PacketsFile), w.bytes, 0o600))
}

func measure(ctx context.Context, c config) error {
	dir, err := os.MkdirTemp("", "netsplit-runners-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	address, err := free()
	if err != nil {
		return err
	}
	hub, err := cluster.Open(ctx, cluster.Config{Dir: filepath.Join(dir, "cluster"), Address: address, Log: log, Goes: func(string) bool { return true },
		Doing: func(string, string, string) {}, Changed: func(model.Runner) {},
		Software: func(string) (string, string, error) { return "", "", errors.New("there is none") }})
	if err != nil {
		return err
	}
	defer hub.Close()
	offer, err := hub.Offer(ctx, cluster.Work{Campaign: "c-1", Version: "simulated"}, nil)
	if err != nil {
		return err
	}
	invitation, err := cluster.Authority{Dir: filepath.Join(dir, "cluster")}.Invite("simulated", hub.Address())
	if err != nil {
		return err
	}
	began := time.Now()
	end, err := start(c, dir, invitation)
	if err != nil {
		return err
	}
	defer end()
	for ready := 0; ready < c.runners; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > 5*time.Minute {
			return fmt.Errorf("%d of %d runners are ready after 5 minutes", ready, c.runners)
		}
		ready = 0
		for _, r := range hub.Runners() {
			if r.State == model.RunnerReady {
				ready++
			}
		}
	}
	fmt.Printf("%d runners were ready after %.1f s\n", c.runners, time.Since(began).Seconds())

	began = time.Now()
	cpu := processorTime()
	var mu sync.Mutex
	var over []time.Duration // what a run took beyond its own time
	var next, failed atomic.Int64
	var hands sync.WaitGroup
	for range min(c.items, c.runners*c.slots) {
		hands.Go(func() {
			for {
				n := next.Add(1)
				if n > int64(c.items) {
					return
				}
				give, err := offer.Slot(ctx)
				if err != nil {
					return
				}
				item := model.WorkItem{Campaign: "c-1", Run: fmt.Sprintf("c-1-r%07d", n), Scenario: model.Scenario{ID: fmt.Sprintf("s%07d", n), Strategy: model.StrategyRandom, Seed: uint64(n)}}
				at := time.Now()
				to := filepath.Join(dir, "runs", item.Run)
				if _, err := offer.Run(ctx, item, to, func(string) error { return nil }); err != nil {
					if failed.Add(1) <= 3 {
						fmt.Fprintln(os.Stderr, "runners:", item.Run, err)
					}
				}
				took := time.Since(at) - c.takes
				give()
				_ = os.RemoveAll(to)
				mu.Lock()
				over = append(over, took)
				if len(over)%max(c.items/10, 1) == 0 {
					fmt.Printf("%8d runs, %6.1f a second, %5d MB\n", len(over), float64(len(over))/time.Since(began).Seconds(), resident())
				}
				mu.Unlock()
			}
		})
	}
	hands.Wait()
	took := time.Since(began)
	slices.Sort(over)
	fmt.Printf("%d runs of %v on %d runners in %.1f s: %.1f a second, %d failed; processor time of the daemon %.2f ms a run\n",
		c.items, c.takes, c.runners, took.Seconds(), float64(c.items)/took.Seconds(), failed.Load(), 1000*(processorTime()-cpu).Seconds()/float64(c.items))
	fmt.Printf("beyond what a run takes: median %v, 99 of 100 at most %v, all at most %v; memory of the daemon %d MB at most\n",
		over[len(over)/2].Round(time.Millisecond), over[len(over)*99/100].Round(time.Millisecond), over[len(over)-1].Round(time.Millisecond), peak())
	return nil
}

// start has a process of its own simulate the runners. end ends it.
func start(c config, dir string, invitation cluster.Invitation) (end func(), err error) {
	b, err := json.Marshal(invitation)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "invitation.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-join", file, "-runners", fmt.Sprint(c.runners), "-slots", fmt.Sprint(c.slots), "-record", fmt.Sprint(c.size), "-takes", c.takes.String())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = in.Close()
		_ = cmd.Wait()
	}, nil
}

// simulate is that process.
func simulate(ctx context.Context, c config) error {
	invitation, err := cluster.ReadInvitation(c.invitation)
	if err != nil {
		return err
	}
	w := worker{c: c, dir: filepath.Dir(c.invitation), bytes: make([]byte, c.size)}
	if _, err := rand.Read(w.bytes); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var runners sync.WaitGroup
	defer runners.Wait()
	defer stop()
	debug.SetGCPercent(400) // the machine is the daemon's
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	for range c.runners {
		r, err := cluster.Join(cluster.RunnerConfig{Invitation: invitation, About: model.Runner{Version: "simulated", State: model.RunnerIdle}, Worker: w, Log: log})
		if err != nil {
			return err
		}
		runners.Go(func() { _ = r.Run(ctx) })
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak is the most memory that the process had, in MB.
func peak() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss >> 10
}

// resident is what it has now, in MB.
func resident() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	var all, now int64
	if err == nil {
		_, err = fmt.Sscan(string(b), &all, &now)
	}
	if err != nil {
		return 0
	}
	return now * int64(os.Getpagesize()) >> 20
}

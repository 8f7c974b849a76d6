package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// runners are processes that make the daemon's runs, killed one after the other.
type runners struct {
	d     *daemon
	cmds  []*exec.Cmd
	kills int
	last  time.Time
	taken []sample // by each of them, over time
}

// startRunners invites and starts as many as were asked for.
func startRunners(ctx context.Context, d *daemon) (*runners, error) {
	r := &runners{d: d, cmds: make([]*exec.Cmd, d.runners), last: time.Now()}
	for i := range r.cmds {
		invite := exec.CommandContext(ctx, d.binary(), "cluster", "invite", r.name(i), "--runs-dir", d.runs(), "-f", filepath.Join(d.dir, r.name(i)+".join"))
		if out, err := invite.CombinedOutput(); err != nil {
			return r, fmt.Errorf("%v: %w: %s", invite.Args, err, out)
		}
		if err := r.start(i); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *runners) name(i int) string { return fmt.Sprintf("m%d", i+1) }

func (r *runners) start(i int) error {
	log, err := os.OpenFile(filepath.Join(r.d.dir, r.name(i)+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	labs := (r.d.labs + r.d.runners - 1) / r.d.runners
	r.cmds[i] = exec.Command(r.d.binary(), "runner", "--join", filepath.Join(r.d.dir, r.name(i)+".join"), "--dir", filepath.Join(r.d.dir, r.name(i)), "--labs", fmt.Sprint(labs))
	r.cmds[i].Stdout, r.cmds[i].Stderr = log, log
	return r.cmds[i].Start()
}

// disturb kills the next one when its time has come, and starts it again: each in turn every
// killRunner.
func (r *runners) disturb() error {
	if len(r.cmds) == 0 || r.d.killRunner <= 0 || time.Since(r.last) < r.d.killRunner/time.Duration(len(r.cmds)) {
		return nil
	}
	i := r.kills % len(r.cmds)
	if err := r.cmds[i].Process.Kill(); err != nil {
		return fmt.Errorf("runner %s ended by itself: %w", r.name(i), err)
	}
	_ = r.cmds[i].Wait() // it was killed
	r.kills, r.last = r.kills+1, time.Now()
	return r.start(i)
}

func (r *runners) sample() {
	for _, c := range r.cmds {
		if s := takes(c.Process.Pid); s.mb > 0 {
			r.taken = append(r.taken, s)
		}
	}
}

// stop ends all in order.
func (r *runners) stop() error {
	if r.kills > 0 { // one that has just begun does not take signals yet
		time.Sleep(time.Until(r.last.Add(2 * time.Second)))
	}
	var errs []error
	for i, c := range r.cmds {
		if c == nil || c.Process == nil {
			continue
		}
		errs = append(errs, c.Process.Signal(syscall.SIGTERM))
		if err := c.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("runner %s: %w", r.name(i), err))
		}
		r.cmds[i] = nil
	}
	return errors.Join(errs...)
}

// left are the records that stay with runners.
func (r *runners) left() (out []string) {
	for i := range r.cmds {
		found, _ := filepath.Glob(filepath.Join(r.d.dir, r.name(i), "c-*", "*")) // the pattern is well formed
		out = append(out, found...)
	}
	return out
}

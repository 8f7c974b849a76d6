package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"netsplit/api/client"
)

// daemon is a netsplit serve that is killed and started again.
type daemon struct {
	config
	socket string
	listen [3]string // of the API, of switches and of runners
	cmd    *exec.Cmd
	ended  chan error

	kills int
	back  []time.Duration // from each start after a kill to the first answer
	lives [][]sample      // of each process
}

// sample is what a process takes.
type sample struct{ mb, files int }

// upLimit is how long a daemon may take until it answers.
const upLimit = time.Minute

func (d *daemon) binary() string { return filepath.Join(d.root, "bin", "netsplit") }

func (d *daemon) runs() string { return filepath.Join(d.dir, "runs") }

func (d *daemon) client() (*client.Client, error) {
	return client.New(client.Config{API: "unix:" + d.socket})
}

func (d *daemon) start(ctx context.Context) error {
	for i := range d.listen {
		if d.listen[i] == "" {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			d.listen[i] = l.Addr().String()
			if err := l.Close(); err != nil {
				return err
			}
		}
	}
	log, err := os.OpenFile(filepath.Join(d.dir, "serve.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"serve", "--runs-dir", d.runs(), "--socket", d.socket, "--listen", d.listen[0], "--openflow", d.listen[1]}
	if d.runners > 0 {
		args = append(args, "--cluster-address", d.listen[2])
	}
	d.cmd = exec.Command(d.binary(), args...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	began := time.Now()
	if err := d.cmd.Start(); err != nil {
		return err
	}
	d.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(d.cmd, d.ended)
	d.lives = append(d.lives, nil)
	c, err := d.client()
	if err != nil {
		return err
	}
	for {
		if _, err = c.Version(ctx); err == nil {
			if d.kills > 0 {
				d.back = append(d.back, time.Since(began))
			}
			return nil
		}
		select {
		case err := <-d.ended:
			d.ended <- err
			return fmt.Errorf("the daemon ended by itself: %v: see %s", err, log.Name())
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Since(began) > upLimit {
			return fmt.Errorf("the daemon does not answer %s after its start: %w", upLimit, err)
		}
	}
}

// kill ends the daemon at once and starts another one.
func (d *daemon) kill(ctx context.Context) error {
	if err := d.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("the daemon ended by itself: %w", err)
	}
	<-d.ended
	d.kills++
	return d.start(ctx)
}

// stopLimit is how long a daemon may take to end in order.
const stopLimit = time.Minute

// stop ends the daemon in order.
func (d *daemon) stop(ctx context.Context) error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-d.ended:
		d.cmd = nil
		return err
	case <-time.After(stopLimit):
		return fmt.Errorf("the daemon does not end within %s", stopLimit)
	}
}

// end ends what is left of the daemon.
func (d *daemon) end() error {
	if d.cmd == nil {
		return nil
	}
	err := d.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-d.ended
	return err
}

// sample notes what the daemon takes now.
func (d *daemon) sample() {
	if s := takes(d.cmd.Process.Pid); s.mb > 0 {
		life := &d.lives[len(d.lives)-1]
		*life = append(*life, s)
	}
}

// takes is what a process takes now; one that is gone takes nothing.
func takes(pid int) (s sample) {
	dir := fmt.Sprintf("/proc/%d", pid)
	b, _ := os.ReadFile(filepath.Join(dir, "status"))
	for _, line := range strings.Split(string(b), "\n") {
		var kb int
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kb); n == 1 { // without the pages of the store
			s.mb = kb >> 10
		}
	}
	files, _ := os.ReadDir(filepath.Join(dir, "fd"))
	s.files = len(files)
	return s
}

// most is the most of each.
func most(all ...sample) (m sample) {
	for _, s := range all {
		m.mb, m.files = max(m.mb, s.mb), max(m.files, s.files)
	}
	return m
}

// grown says whether what processes took in the last part of the time is more than in the first
// one by what cannot be chance.
func grown(of string, first, last sample) error {
	if last.mb > 2*first.mb+32 || last.files > 2*first.files+64 {
		return fmt.Errorf("%s grew from %d MB and %d open files to %d MB and %d", of, first.mb, first.files, last.mb, last.files)
	}
	return nil
}

// links lists the namespaces and links of the machine.
func links() ([]string, error) {
	var out []string
	for _, args := range [][]string{{"netns", "list"}, {"-o", "link", "show"}} {
		b, err := exec.Command("ip", args...).Output()
		if err != nil {
			return nil, fmt.Errorf("ip %s: %w", strings.Join(args, " "), err)
		}
		for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
			if f := strings.Fields(line); len(f) > 0 {
				out = append(out, strings.Trim(f[min(len(f)-1, len(args)/3)], ":"))
			}
		}
	}
	return out, nil
}

func newIn(after, before []string) []string {
	return slices.DeleteFunc(after, func(l string) bool { return slices.Contains(before, l) })
}

func quantile[T cmp.Ordered](vs []T, q float64) T {
	if len(vs) == 0 {
		var zero T
		return zero
	}
	s := slices.Sorted(slices.Values(vs))
	return s[int(q*float64(len(s)-1)+.5)]
}

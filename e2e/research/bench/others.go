package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"netsplit/testbed/proc"
)

// hub is the program for os-ken.
//
//go:embed hub.py
var hub []byte

// osken is the release of os-ken that is compared with. It is fetched from
// PyPI into a folder that goes with the benchmark.
const osken = "os-ken==2.11.2"

// other is another controller, which runs and has no switch yet.
type other struct {
	name string
	addr string
	pid  int
	stop func() error
}

// newTestController starts ovs-testcontroller, which sends every packet on by
// itself: it sets up no flows.
func newTestController(ctx context.Context) (*other, error) {
	return startOther(ctx, "ovs-testcontroller", func(dir string, port int) (*exec.Cmd, error) {
		cmd := exec.Command("ovs-testcontroller", "-O", "OpenFlow13", "--noflow", "--unixctl="+dir+"/ctl", fmt.Sprintf("ptcp:%d:127.0.0.1", port))
		cmd.Env = append(os.Environ(), "OVS_RUNDIR="+dir, "OVS_LOGDIR="+dir)
		cmd.Stderr = os.Stderr
		return cmd, nil
	})
}

func newOSKen(ctx context.Context) (*other, error) {
	return startOther(ctx, "os-ken", func(dir string, port int) (*exec.Cmd, error) {
		for _, argv := range [][]string{{"python3", "-m", "venv", dir + "/venv"}, {dir + "/venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", osken}} {
			if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", argv[0], err, out)
			}
		}
		app := filepath.Join(dir, "hub.py")
		if err := os.WriteFile(app, hub, 0o600); err != nil {
			return nil, err
		}
		return exec.Command(dir+"/venv/bin/osken-manager", "--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", fmt.Sprint(port), app), nil
	})
}

func startOther(ctx context.Context, name string, program func(dir string, port int) (*exec.Cmd, error)) (*other, error) {
	dir, err := os.MkdirTemp("", "netsplit-bench-")
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*other, error) { return nil, errors.Join(err, os.RemoveAll(dir)) }
	l, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	if err != nil {
		return fail(err)
	}
	addr := l.Addr().(*net.TCPAddr)
	l.Close()
	cmd, err := program(dir, addr.Port)
	if err != nil {
		return fail(err)
	}
	if err := proc.StartCommand(cmd); err != nil {
		return fail(fmt.Errorf("%s: %w", cmd.Path, err))
	}
	o := &other{name: name, addr: addr.String(), pid: cmd.Process.Pid, stop: func() error {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // says that it was killed
		return os.RemoveAll(dir)
	}}
	if err := listens(ctx, o.addr); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", cmd.Path, err), o.stop())
	}
	return o, nil
}

// variant is to be measured on a testbed of its own.
func (o *other) variant() *variant {
	return &variant{name: o.name, cpu: func() (time.Duration, error) { return cpuOf(o.pid) }}
}

// rig makes a lab whose switch it controls.
func (o *other) rig(ctx context.Context) (*rig, error) {
	b, err := newTestbed(ctx, "other", "tcp:"+o.addr)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(b.reach(ctx), b.quiet()); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// listens waits until something accepts connections there.
func listens(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nothing listens on %s: %w", addr, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

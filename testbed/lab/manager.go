package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/model"
)

// Manager makes and removes labs. The package functions use Default.
type Manager struct {
	// RunDir holds the state of the labs and, where netsplit starts Open
	// vSwitch itself, everything of that. Managers with different run
	// directories leave each other's labs alone.
	RunDir string
	// SystemOVS is the run directory of the machine's own Open vSwitch. Where
	// a database answers on its db.sock, labs use that switch.
	SystemOVS string
}

// Default returns the manager for this machine: run directory
// NETSPLIT_RUN_DIR or /run/netsplit, system switch OVS_RUNDIR or
// /run/openvswitch.
func Default() *Manager {
	m := &Manager{RunDir: "/run/netsplit", SystemOVS: "/run/openvswitch"}
	if d := os.Getenv("NETSPLIT_RUN_DIR"); d != "" {
		m.RunDir = d
	}
	if d := os.Getenv("OVS_RUNDIR"); d != "" {
		m.SystemOVS = d
	}
	return m
}

// Up makes a lab; see Manager.Up.
func Up(ctx context.Context, s Spec) (*Lab, error) { return Default().Up(ctx, s) }

// Down removes a lab; see Manager.Down.
func Down(ctx context.Context, name string) error { return Default().Down(ctx, name) }

// List shows all labs; see Manager.List.
func List(ctx context.Context) ([]Status, error) { return Default().List(ctx) }

// ErrNoLab says that no lab of the name exists.
var ErrNoLab = errors.New("no such lab")

// Lab is a lab that is up.
type Lab struct {
	m  *Manager
	st state
}

// makeDirs makes the folder of the labs' states, which are for root.
func (m *Manager) makeDirs() error {
	if err := os.MkdirAll(m.RunDir, 0o755); err != nil {
		return err
	}
	return os.MkdirAll(m.labsDir(), 0o700)
}

// lock takes the lock that every change of any lab holds, and returns what
// releases it. It waits, until ctx ends.
func (m *Manager) lock(ctx context.Context) (func(), error) {
	if err := m.makeDirs(); err != nil {
		return nil, fmt.Errorf("lab: cannot make the state directory: %w", err)
	}
	path := filepath.Join(m.RunDir, "lab.lock")
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if errors.Is(err, fs.ErrNotExist) { // removed with the last lab
			if err := m.makeDirs(); err != nil {
				return nil, fmt.Errorf("lab: cannot make the state directory: %w", err)
			}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("lab: cannot open the lock: %w", err)
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && sameFile(f, path) {
			// The labs directory may have gone with the lock file's predecessor.
			if err := m.makeDirs(); err != nil {
				f.Close()
				return nil, fmt.Errorf("lab: cannot make the state directory: %w", err)
			}
			return func() { m.tidy(path); f.Close() }, nil
		}
		f.Close()
		if err != nil && err != unix.EWOULDBLOCK && err != unix.EINTR {
			return nil, fmt.Errorf("lab: cannot lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lab: gave up waiting for another lab command that holds %s: %w", path, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func sameFile(f *os.File, path string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// tidy removes the lock file and the directories once no lab is left. The
// lock is held; a waiter notices that its file has gone and opens it anew.
func (m *Manager) tidy(lock string) {
	if os.Remove(m.labsDir()) == nil { // fails unless empty
		os.Remove(lock)
		os.Remove(m.RunDir)
	}
}

func needs() error {
	if os.Geteuid() != 0 {
		return errors.New("lab: making and removing labs needs root (network namespaces); run it with sudo")
	}
	for _, n := range []struct{ program, pkg string }{
		{"ovs-vsctl", "openvswitch-switch"},
		{"ip", "iproute2"},
		{"ethtool", "ethtool"},
		{"nsenter", "util-linux"},
	} {
		if _, err := exec.LookPath(n.program); err != nil {
			return fmt.Errorf("lab: %s is not installed (or not in PATH); run: apt-get install %s", n.program, n.pkg)
		}
	}
	return nil
}

// run executes a program and returns its standard output.
func run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// Name is the lab's name.
func (l *Lab) Name() string { return l.st.Name }

// Datapath is the datapath id of the lab's bridge.
func (l *Lab) Datapath() model.DatapathID { return l.st.Datapath }

// Bridge is the name of the lab's bridge in Open vSwitch.
func (l *Lab) Bridge() string { return l.st.Bridge }

// OVSRunDir is the run directory of the Open vSwitch the lab is on: its
// db.sock and <bridge>.mgmt are there.
func (l *Lab) OVSRunDir() string { return l.st.OVSRunDir }

// Netns is the named network namespace of a host.
func (l *Lab) Netns(host model.NodeID) string {
	for _, h := range l.st.Hosts {
		if h.Name == host {
			return h.Netns
		}
	}
	return ""
}

// Warnings lists what could not be set up as it should be though the lab
// works, e.g. receive buffers.
func (l *Lab) Warnings() []string { return append([]string(nil), l.st.Warnings...) }

// Testbed describes the lab to the rest of the program.
//
// The exec prefix is nsenter --net and not ip netns exec, because the latter
// also makes a mount namespace of its own for each command: what one process
// of a host mounts (a file system under test) no other would see, and its
// /sys is another one.
func (l *Lab) Testbed() model.Testbed {
	t := model.Testbed{Name: l.st.Name}
	for _, h := range l.st.Hosts {
		t.Hosts = append(t.Hosts, model.TestbedHost{
			Name: h.Name, Datapath: l.st.Datapath, Port: model.Port{Number: h.Port}, MAC: h.MAC, IP: netip.MustParseAddr(h.IP),
			Exec: []string{"nsenter", "--net=" + netnsPath(h.Netns)},
		})
	}
	t.Mirrors = []model.MirrorPort{{Datapath: l.st.Datapath, Port: model.Port{Number: MirrorPort}, Interface: l.st.MirrorReader}}
	if l.st.GateReader != "" {
		t.Gates = []model.GatePort{{Datapath: l.st.Datapath, Port: model.Port{Number: GatePort}, Interface: l.st.GateReader}}
	}
	return t
}

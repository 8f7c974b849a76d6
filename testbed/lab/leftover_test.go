package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netsplit/model"
)

// child starts another process that makes a lab; see helper.
func child(t *testing.T, name, owner string, env ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, helperArg, "up", name, owner)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

func TestNextCommandCleansAfterAKilledOwner(t *testing.T) {
	for _, next := range []string{"up", "up same name", "down", "down same name"} {
		t.Run(next, func(t *testing.T) {
			before := world(t)
			cmd, out := child(t, "victim", "self")
			if line, err := out.ReadString('\n'); line != "up\n" {
				t.Fatalf("%q, %v", line, err)
			}
			l, err := Default().Open(t.Context(), "victim")
			if err != nil {
				t.Fatal(err)
			}
			// A target's process, which outlives whoever started it.
			sh(t, "setsid nsenter --net=%s sleep 1000 >/dev/null 2>&1 &", netnsPath(l.Netns("n1")))
			// While its owner lives nobody takes the lab down by cleaning.
			if err := Default().Collect(t.Context()); err != nil {
				t.Fatal(err)
			}
			st, err := Default().Show(t.Context(), "victim")
			if err != nil || !st.OwnerAlive || st.Problem != "" {
				t.Fatalf("with a living owner: %+v, %v", st, err)
			}
			cmd.Process.Kill()
			cmd.Wait()
			if st, err = Default().Show(t.Context(), "victim"); err != nil || st.OwnerAlive || !strings.Contains(st.Problem, "dead") {
				t.Fatalf("with a dead owner: %+v, %v", st, err)
			}
			switch next {
			case "up":
				mustUp(t, Spec{Name: "other", Hosts: twoHosts})
				if _, err := Default().Show(t.Context(), "victim"); !errors.Is(err, ErrNoLab) {
					t.Errorf("victim is still there: %v", err)
				}
				mustDown(t, "other")
			case "up same name":
				mustUp(t, Spec{Name: "victim", Hosts: twoHosts})
				mustDown(t, "victim")
			case "down":
				if err := Down(t.Context(), "nothing"); !errors.Is(err, ErrNoLab) {
					t.Error(err)
				}
			case "down same name":
				mustDown(t, "victim")
			}
			checkWorld(t, before)
		})
	}
}

// TestKilledHalfway kills a process at many moments of Up; whatever is there
// by then, the next command removes.
func TestKilledHalfway(t *testing.T) {
	before := world(t)
	mustUp(t, Spec{Name: "probe", Hosts: twoHosts})
	start := time.Now()
	mustUp(t, Spec{Name: "again", Hosts: twoHosts})
	took := time.Since(start)
	mustDown(t, "again")
	mustDown(t, "probe")
	checkWorld(t, before)
	partial := 0
	for i := range 8 {
		owner := []string{"self", "none"}[i%2]
		cmd, out := child(t, "victim", owner)
		// From just after the start to beyond the end, Open vSwitch's start included.
		time.Sleep(10*time.Millisecond + took*time.Duration(i)/4)
		cmd.Process.Kill()
		rest, _ := io.ReadAll(out)
		cmd.Wait()
		if s, err := Default().load("victim"); err == nil && s.Phase != phaseUp {
			partial++
		}
		t.Logf("kill %d: said %q", i, rest)
		if err := Default().Collect(t.Context()); err != nil {
			t.Errorf("kill %d: %v", i, err)
		}
		if st, err := Default().Show(t.Context(), "victim"); err == nil {
			if owner == "self" || st.Phase != "up" || st.Problem != "" {
				t.Errorf("kill %d: the lab is still there: %+v", i, st)
			}
			mustDown(t, "victim") // it was whole, and stays until it is taken down
		}
		checkWorld(t, before)
	}
	if partial == 0 {
		t.Error("no kill met a lab half made: the test shows nothing")
	}
}

func TestUpUndoesItself(t *testing.T) {
	before := world(t)
	for _, limit := range []time.Duration{1, 30 * time.Millisecond, 80 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		if _, err := Up(ctx, Spec{Name: "demo", Hosts: twoHosts}); err == nil {
			t.Logf("ready within %v", limit)
			mustDown(t, "demo")
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("limit %v: %v", limit, err)
		}
		cancel()
		checkWorld(t, before)
	}
	// Something of somebody else's is in the way.
	other := mustUp(t, Spec{Name: "other", Hosts: twoHosts})
	sh(t, "ovs-vsctl --timeout=5 --db=unix:%s/db.sock add-br foreign -- set bridge foreign datapath_type=netdev other-config:datapath-id=%s",
		other.OVSRunDir(), datapathOf("demo"))
	with := world(t)
	_, err := Up(t.Context(), Spec{Name: "demo", Hosts: twoHosts})
	if err == nil || !strings.Contains(err.Error(), "foreign") {
		t.Errorf("datapath id in use: %v", err)
	}
	checkWorld(t, with)
	sh(t, "ovs-vsctl --timeout=5 --db=unix:%s/db.sock del-br foreign", other.OVSRunDir())
	mustDown(t, "other")
	checkWorld(t, before)
}

func TestMarkedThingsWithoutStateAreRemoved(t *testing.T) {
	before := world(t)
	l := mustUp(t, Spec{Name: "lost", Hosts: twoHosts})
	mustUp(t, Spec{Name: "kept", Hosts: twoHosts})
	with := ""
	if err := os.Remove(Default().statePath("lost")); err != nil {
		t.Fatal(err)
	}
	// Things that only look like ours.
	sh(t, "ip netns add nsl-mine-x; ip link add nslffffffp1 type veth peer name fffff; ip link set nslffffffp1 alias 'netsplit-lab=x owner=1:1 run=/elsewhere'")
	for _, name := range []string{"torn.json", ".torn.json3503302768838872576"} { // the second: a save that was killed
		if err := os.WriteFile(filepath.Join(Default().labsDir(), name), []byte("{"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := Default().Collect(t.Context()); err != nil {
		t.Error(err)
	}
	if with = world(t); strings.Contains(with, l.st.ID) || strings.Contains(with, "nsl-lost") || strings.Contains(with, "torn") {
		t.Errorf("left of the lost lab %s: %s", l.st.ID, with)
	}
	for _, foreign := range []string{"nsl-mine-x", "nslffffffp1", "nsl-kept-n1"} {
		if !strings.Contains(with, foreign) {
			t.Errorf("%s was removed", foreign)
		}
	}
	marks, err := Default().ownOVS().bridges(t.Context())
	if err != nil || len(marks) != 1 {
		t.Errorf("bridges %v, %v", marks, err)
	}
	sh(t, "ip netns del nsl-mine-x; ip link del nslffffffp1")
	mustDown(t, "kept")
	checkWorld(t, before)
}

func TestLabsSideBySide(t *testing.T) {
	before := world(t)
	sh(t, "ip netns add foreign; ip link add foreign0 type veth peer name foreign1; nsenter --net=/run/netns/foreign sleep 1000 >/dev/null 2>&1 &")
	a := mustUp(t, Spec{Name: "a", Hosts: twoHosts})
	sh(t, "ovs-vsctl --timeout=5 --db=unix:%s/db.sock add-br foreign -- set bridge foreign datapath_type=netdev", a.OVSRunDir())
	var wg sync.WaitGroup
	names := []string{"b", "c", "d"}
	for _, n := range names { // three processes at once
		wg.Go(func() {
			cmd, out := child(t, n, "none")
			rest, _ := io.ReadAll(out)
			if err := cmd.Wait(); err != nil {
				t.Errorf("%s: %v: %s", n, err, rest)
			}
		})
	}
	wg.Wait()
	list, err := List(t.Context())
	if err != nil || len(list) != 4 {
		t.Fatalf("%+v, %v", list, err)
	}
	seen := map[string]string{}
	for _, st := range list {
		if st.Problem != "" {
			t.Errorf("%s: %s", st.Name, st.Problem)
		}
		for _, v := range []string{st.Bridge, st.Datapath.String(), st.Hosts[0].IP, st.Hosts[1].IP, st.Hosts[0].Netns} {
			if seen[v] != "" {
				t.Errorf("%s is shared by %s and %s", v, seen[v], st.Name)
			}
			seen[v] = st.Name
		}
	}
	normal(t, a)
	if !carries(t, a, "n1", "n2", "tcp", "hello", patience) {
		t.Error("lab a does not carry")
	}
	for i, n := range names { // all downs at once, too
		if i == 0 {
			continue
		}
		wg.Go(func() {
			if err := Down(t.Context(), n); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if !carries(t, a, "n1", "n2", "tcp", "hello", patience) {
		t.Error("lab a does not carry once its neighbours are down")
	}
	if _, err := Up(t.Context(), Spec{Name: "a", Hosts: twoHosts}); err == nil || !strings.Contains(err.Error(), "up already") {
		t.Errorf("a second lab a: %v", err)
	}
	if out := sh(t, "ovs-vsctl --timeout=5 --db=unix:%s/db.sock list-br", a.OVSRunDir()); !strings.Contains(out, "foreign\n") {
		t.Errorf("foreign bridge gone: %s", out)
	}
	mustDown(t, "b")
	mustDown(t, "a")
	if out := sh(t, "ip netns pids foreign; ip -o link show foreign0"); !strings.Contains(out, "foreign1") || len(strings.Fields(strings.Split(out, "\n")[0])) != 1 {
		t.Errorf("foreign things: %s", out)
	}
	sh(t, "kill $(ip netns pids foreign); ip link del foreign0; ip netns del foreign")
	checkWorld(t, before)
}

func TestSwitchKilled(t *testing.T) {
	before := world(t)
	l := mustUp(t, Spec{Name: "demo", Hosts: twoHosts})
	for _, c := range []struct{ name, daemon string }{{"switch", "ovs-vswitchd"}, {"database", "ovsdb-server"}, {"both", ""}} {
		t.Run(c.name, func(t *testing.T) {
			normal(t, l)
			if !carries(t, l, "n1", "n2", "tcp", "before", patience) {
				t.Fatal("the lab does not carry")
			}
			killed := 0
			for _, d := range Default().ownDaemons() {
				if c.daemon == "" || d.name == c.daemon {
					unix.Kill(d.PID, unix.SIGKILL)
					killed++
				}
			}
			if killed == 0 {
				t.Fatal("no daemon found")
			}
			for range 100 {
				left := 0
				for _, d := range Default().ownDaemons() {
					if c.daemon == "" || d.name == c.daemon {
						left++
					}
				}
				if left == 0 {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if err := l.RestartSwitch(t.Context()); err != nil {
				t.Fatal(err)
			}
			normal(t, l)
			if !carries(t, l, "n1", "n2", "tcp", "after", patience) {
				t.Error("the lab does not carry after the restart")
			}
		})
	}
	// Killed again, and nobody restarts it: Down works all the same.
	for _, d := range Default().ownDaemons() {
		unix.Kill(d.PID, unix.SIGKILL)
	}
	mustDown(t, "demo")
	checkWorld(t, before)
}

// TestOtherNamespacesSwitchIsNotOurs: netsplit in a container and outside have
// the same paths, and from outside the container's processes can be seen.
func TestOtherNamespacesSwitchIsNotOurs(t *testing.T) {
	sh(t, "ip netns add elsewhere")
	defer sh(t, "ip netns del elsewhere")
	mustUp(t, Spec{Name: "demo", Hosts: twoHosts})
	daemons := len(Default().ownDaemons())
	if daemons == 0 {
		t.Fatal("no daemon found")
	}
	// The same, seen from another network namespace.
	fake := exec.Command("nsenter", "--net=/run/netns/elsewhere", "env", "OVS_RUNDIR="+Default().ownOVS().runDir,
		"sh", "-c", "printf ovs-vswitchd > /proc/self/comm; echo ready; read x")
	in, _ := fake.StdinPipe()
	out, _ := fake.StdoutPipe()
	if err := fake.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q", line)
	}
	comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", fake.Process.Pid))
	if string(comm) != "ovs-vswitchd\n" {
		t.Fatalf("it is called %q", comm)
	}
	if got := len(Default().ownDaemons()); got != daemons {
		t.Errorf("%d daemons are ours, want %d", got, daemons)
	}
	mustDown(t, "demo")
	in.Close()
	if err := fake.Wait(); err != nil && fake.ProcessState.ExitCode() != 1 {
		t.Errorf("another namespace's switch was ended: %v", err)
	}
}

func TestSystemOVSIsUsedAndLeftAlone(t *testing.T) {
	sys := &Manager{RunDir: t.TempDir(), SystemOVS: "/nowhere"}
	// Somebody else's switch: an Open vSwitch where the machine's own would be.
	if err := sys.startOVS(t.Context(), sys.ownOVS()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sys.stopOVS(context.Background()); err != nil {
			t.Error(err)
		}
		os.Unsetenv("OVS_RUNDIR")
	}()
	t.Setenv("OVS_RUNDIR", sys.ownOVS().runDir)
	if _, err := sys.ownOVS().vsctl(t.Context(), "add-br", "theirs", "--", "set", "bridge", "theirs", "datapath_type=netdev", "external-ids:netsplit-lab=imposter"); err != nil {
		t.Fatal(err)
	}
	before := world(t)
	l := mustUp(t, Spec{Name: "demo", Hosts: twoHosts})
	if l.OVSRunDir() != sys.ownOVS().runDir || len(Default().ownDaemons()) != 0 {
		t.Errorf("lab on %s, own daemons %v", l.OVSRunDir(), Default().ownDaemons())
	}
	normal(t, l)
	if !carries(t, l, "n1", "n2", "tcp", "hello", patience) {
		t.Error("the lab does not carry")
	}
	if err := l.RestartSwitch(t.Context()); err == nil {
		t.Error("restarted somebody else's switch")
	}
	mustDown(t, "demo")
	checkWorld(t, before)

	// It dies under a lab, and its database comes back with our record in it.
	l = mustUp(t, Spec{Name: "demo", Hosts: twoHosts})
	for _, d := range sys.ownDaemons() {
		unix.Kill(d.PID, unix.SIGKILL)
	}
	for len(sys.ownDaemons()) > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	mustDown(t, "demo")
	if err := sys.startOVS(t.Context(), sys.ownOVS()); err != nil {
		t.Fatal(err)
	}
	if err := Default().Collect(t.Context()); err != nil {
		t.Error(err)
	}
	rows, err := sys.ownOVS().table(t.Context(), "bridge", []string{"name"})
	if err != nil || len(rows) != 1 || rows[0][0] != "theirs" {
		t.Errorf("bridges %v, %v", rows, err)
	}
	for _, name := range []string{l.st.MirrorReader, l.st.GateReader} {
		if _, err := netlink.LinkByName(name); err == nil {
			t.Errorf("link %s is left", name)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	many := make([]model.NodeID, MaxHosts+1)
	for i := range many {
		many[i] = model.NodeID(fmt.Sprint("n", i))
	}
	for _, c := range []struct {
		name string
		spec Spec
		want string
	}{
		{"name", Spec{Name: "Demo Lab", Hosts: twoHosts}, "lower-case letters"},
		{"path in name", Spec{Name: "../x", Hosts: twoHosts}, "lower-case letters"},
		{"no host", Spec{Name: "demo"}, "at least one"},
		{"too many", Spec{Name: "demo", Hosts: many}, "at most 200"},
		{"host name", Spec{Name: "demo", Hosts: []model.NodeID{"a/b"}}, "a/b"},
		{"twice", Spec{Name: "demo", Hosts: []model.NodeID{"a", "a"}}, "twice"},
		{"controller", Spec{Name: "demo", Hosts: twoHosts, Controller: "localhost"}, "tcp:127.0.0.1:6653"},
		{"dead owner", Spec{Name: "demo", Hosts: twoHosts, Owner: 1 << 22}, "does not run"},
	} {
		if _, err := Up(t.Context(), c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := Down(t.Context(), "../x"); err == nil || errors.Is(err, ErrNoLab) {
		t.Error(err)
	}
	sh(t, "ip netns add nsl-demo-n2")
	if _, err := Up(t.Context(), Spec{Name: "demo", Hosts: twoHosts}); err == nil || !strings.Contains(err.Error(), "ip netns del nsl-demo-n2") {
		t.Errorf("namespace in the way: %v", err)
	}
	sh(t, "ip netns del nsl-demo-n2")

	// A machine without Open vSwitch, ip or ethtool.
	for _, missing := range []struct{ program, pkg string }{{"ovs-vsctl", "openvswitch-switch"}, {"ethtool", "ethtool"}, {"ip", "iproute2"}} {
		dir := t.TempDir()
		for _, p := range []string{"ovs-vsctl", "ip", "ethtool", "nsenter"} {
			if full, err := exec.LookPath(p); err == nil && p != missing.program {
				os.Symlink(full, filepath.Join(dir, p))
			}
		}
		path := os.Getenv("PATH")
		os.Setenv("PATH", dir)
		_, err := Up(t.Context(), Spec{Name: "demo", Hosts: twoHosts})
		os.Setenv("PATH", path)
		if err == nil || !strings.Contains(err.Error(), "apt-get install "+missing.pkg) {
			t.Errorf("without %s: %v", missing.program, err)
		}
	}
}

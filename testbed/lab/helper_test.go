package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"netsplit/model"
)

// helperArg as first argument makes the test binary another process that uses
// the lab: "up NAME OWNER" makes a lab of two hosts and waits to be killed;
// "recv tcp|udp ADDR LIMIT" and "send tcp|udp ADDR TEXT" carry payload.
const helperArg = "lab-helper"

func helper(args []string) int {
	if err := helperRun(args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func helperRun(args []string) error {
	switch args[0] {
	case "up":
		spec := Spec{Name: args[1], Hosts: []model.NodeID{"n1", "n2"}}
		if args[2] == "self" {
			spec.Owner = os.Getpid()
		}
		if _, err := Up(context.Background(), spec); err != nil {
			return err
		}
		fmt.Println("up")
		if args[2] == "self" {
			time.Sleep(time.Hour)
		}
		return nil
	case "ping":
		return ping(args[1])
	case "recv":
		return recv(args[1], args[2], args[3])
	case "send":
		return send(args[1], args[2], args[3])
	}
	return fmt.Errorf("helper: %q", args)
}

// ping sends ICMP echo requests until one is answered (RFC 792).
func ping(addr string) error {
	c, err := net.Dial("ip4:icmp", addr)
	if err != nil {
		return err
	}
	buf := make([]byte, 1500)
	for range 10 {
		if _, err = c.Write([]byte{8, 0, 0xf7, 0xfd, 0, 1, 0, 1}); err != nil {
			continue // host unreachable, of an earlier one
		}
		c.SetDeadline(time.Now().Add(time.Second))
		for {
			n, rerr := c.Read(buf)
			if rerr != nil {
				err = rerr
				break
			}
			if n >= 8 && buf[n-8] == 0 && string(buf[n-4:n]) == "\x00\x01\x00\x01" {
				return nil
			}
		}
		c.SetDeadline(time.Time{})
	}
	return fmt.Errorf("no echo reply: %w", err)
}

// recv prints what arrives within the limit: one datagram, or everything of
// one connection.
func recv(network, addr, limit string) error {
	d, err := time.ParseDuration(limit)
	if err != nil {
		return err
	}
	end := time.Now().Add(d)
	buf := make([]byte, 1<<20)
	if network == "udp" {
		c, err := net.ListenPacket("udp", addr)
		if err != nil {
			return err
		}
		fmt.Println("ready")
		c.SetDeadline(end)
		n, _, err := c.ReadFrom(buf)
		fmt.Print(string(buf[:n]))
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	l.(*net.TCPListener).SetDeadline(end)
	c, err := l.Accept()
	if err != nil {
		return err
	}
	c.SetDeadline(end)
	for {
		n, err := c.Read(buf)
		fmt.Print(string(buf[:n]))
		if err != nil {
			return nil
		}
	}
}

func send(network, addr, text string) error {
	c, err := net.DialTimeout(network, addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte(text))
	return err
}

// on makes a command that runs this binary as a helper on a host of the lab.
func on(l *Lab, host model.NodeID, args ...string) *exec.Cmd {
	h, _ := l.testbedHost(host)
	argv := append(append([]string{}, h.Exec...), "/proc/self/exe", helperArg)
	// The prefix replaces itself: name the binary, not /proc/self/exe.
	exe, _ := os.Executable()
	argv[len(argv)-2] = exe
	return exec.Command(argv[0], append(argv[1:], args...)...)
}

func (l *Lab) testbedHost(n model.NodeID) (model.TestbedHost, bool) {
	t := l.Testbed()
	return t.Host(n)
}

// sh runs a shell command and fails the test unless it succeeds.
func sh(t *testing.T, format string, args ...any) string {
	t.Helper()
	script := fmt.Sprintf(format, args...)
	out, err := exec.Command("sh", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

// world is everything that a lab touches, as text.
func world(t *testing.T) string {
	t.Helper()
	var out []string
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		out = append(out, fmt.Sprintf("link %s %s %s", l.Attrs().Name, l.Type(), l.Attrs().Alias))
	}
	filepath.Walk("/run", func(path string, fi os.FileInfo, err error) error {
		if err == nil && path != netnsDir && !strings.HasSuffix(path, ".log") && !strings.HasPrefix(path, "/run/openvswitch/") {
			out = append(out, "file "+path)
		}
		return nil
	})
	for _, pid := range pids() {
		if _, err := procStat(pid); err != nil {
			continue
		}
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if len(cmd) > 0 {
			out = append(out, fmt.Sprintf("process %d %s", pid, strings.ReplaceAll(string(cmd), "\x00", " ")))
		}
	}
	if m := Default(); m.systemOVS().answers(t.Context()) {
		rows, err := m.systemOVS().table(t.Context(), "bridge", []string{"name", "external_ids", "ports"})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			out = append(out, fmt.Sprint("bridge ", r))
		}
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

func checkWorld(t *testing.T, before string) {
	t.Helper()
	// A namespace's virtual links and killed processes take a moment to go.
	var after string
	for range 100 {
		if after = world(t); after == before {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("something is left or lost\nbefore:\n%s\nafter:\n%s", before, after)
}

// normal makes the bridge forward as a learning switch does. A switch that
// has just found a new database takes a moment.
func normal(t *testing.T, l *Lab) {
	t.Helper()
	var out []byte
	var err error
	for range 100 {
		out, err = exec.Command("ovs-ofctl", "-OOpenFlow13", "--timeout=5", "add-flow",
			fmt.Sprintf("unix:%s/%s.mgmt", l.OVSRunDir(), l.Bridge()), "priority=0,actions=NORMAL").CombinedOutput()
		if err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("add-flow: %v: %s", err, out)
}

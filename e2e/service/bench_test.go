package service

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/e2e/harness"
)

// bench is a network set up by hand, as a user may have one: an Open vSwitch
// of its own with one bridge, hosts that are network namespaces, and a testbed
// file that says so.
type bench struct {
	*harness.OVS
	t     *testing.T
	hosts []string
	ip    map[string]string
	file  string // testbed file
}

const (
	bridge   = "hand0"
	datapath = "00000000000000a7"
)

func newBench(t *testing.T, hosts ...string) *bench {
	t.Helper()
	b := &bench{OVS: harness.StartOVS(t, bridge), t: t, hosts: hosts, ip: map[string]string{}}
	b.file = b.Path("testbed.yaml")
	b.VSCtl("add-br", bridge, "--", "set", "bridge", bridge, "datapath_type=netdev", "protocols=OpenFlow13", "fail-mode=secure",
		"other-config:datapath-id="+datapath)
	var y strings.Builder
	fmt.Fprintf(&y, "name: by-hand\nhosts:\n")
	for i, h := range hosts {
		ip, mac, ns, port := fmt.Sprintf("10.77.0.%d", i+1), fmt.Sprintf("02:77:00:00:00:%02x", i+1), "hand-"+h, fmt.Sprintf("hp%d", i+1)
		b.ip[h] = ip
		harness.Output(t, "ip", "netns", "add", ns)
		t.Cleanup(func() { harness.Output(t, "ip", "netns", "del", ns) })
		harness.Output(t, "ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", ns, "address", mac)
		t.Cleanup(func() { _ = exec.Command("ip", "link", "del", port).Run() })
		harness.Output(t, "ip", "link", "set", port, "up")
		for _, c := range []string{"ip link set lo up", "ip addr add " + ip + "/24 dev eth0", "ip link set eth0 up", "ethtool -K eth0 tx off"} {
			harness.Output(t, "ip", append([]string{"netns", "exec", ns}, strings.Fields(c)...)...)
		}
		b.VSCtl("add-port", bridge, port, "--", "set", "interface", port, fmt.Sprintf("ofport_request=%d", i+11))
		fmt.Fprintf(&y, "  - {name: %s, datapath: %q, port: %d, mac: %q, ip: %s, exec: [nsenter, --net=/run/netns/%s]}\n", h, datapath, i+11, mac, ip, ns)
	}
	if err := os.WriteFile(b.file, []byte(y.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return b
}

// connect points the bridge at a controller, which a user does once.
func (b *bench) connect(addr string) {
	b.t.Helper()
	b.controller("tcp:" + addr)
}

func (b *bench) controller(target string) {
	b.t.Helper()
	b.VSCtl("--", "--id=@c", "create", "controller", `target="`+target+`"`, "connection_mode=out-of-band", "max_backoff=1000",
		"--", "add", "bridge", bridge, "controller", "@c")
}

// pings sends pings from one host to another at once and says how many came
// back, and how many arrived at the receiver.
func (b *bench) pings(from, to string) (back, arrived int) {
	b.t.Helper()
	const n = 3
	before := b.echoes(to)
	r := harness.RunCommand(b.t, "ip", "netns", "exec", "hand-"+from, "ping", "-n", "-q", "-i", "0.05", "-c", strconv.Itoa(n), "-W", "0.5", b.ip[to])
	m := regexp.MustCompile(`(\d+) received`).FindStringSubmatch(r.Stdout)
	if m == nil {
		b.t.Errorf("ping: %s", r)
		return 0, 0
	}
	back, _ = strconv.Atoi(m[1])
	return back, b.echoes(to) - before
}

// echoes counts the pings that a host's kernel received.
func (b *bench) echoes(host string) int {
	b.t.Helper()
	out := harness.Output(b.t, "ip", "netns", "exec", "hand-"+host, "cat", "/proc/net/snmp")
	var names []string
	for _, line := range strings.Split(out, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "Icmp:" {
			continue
		}
		if names == nil {
			names = f
			continue
		}
		for i, name := range names {
			if name == "InEchos" {
				n, err := strconv.Atoi(f[i])
				if err != nil {
					b.t.Fatal(err)
				}
				return n
			}
		}
	}
	b.t.Fatalf("no InEchos in %s", out)
	return 0
}

// expect pings over every ordered pair of hosts; pass says which packets pass
// from one host to another.
func (b *bench) expect(what string, pass func(from, to string) bool) {
	b.t.Helper()
	n := len(b.hosts)
	back, arrived := make([]int, n), make([]int, n) // by sender
	for step := 1; step < n; step++ {               // in each round every host is pinged by one other
		to := func(i int) string { return b.hosts[(i+step)%n] }
		var round sync.WaitGroup
		for i, from := range b.hosts {
			round.Go(func() { back[i], arrived[i] = b.pings(from, to(i)) })
		}
		round.Wait()
		for i, from := range b.hosts {
			there, both := pass(from, to(i)), pass(from, to(i)) && pass(to(i), from)
			if (arrived[i] > 0) != there || (back[i] > 0) != both {
				b.t.Errorf("%s: ping %s > %s: %d of 3 arrived, %d came back; packets should pass there: %v, there and back: %v", what, from, to(i), arrived[i], back[i], there, both)
			}
		}
	}
}

func everything(string, string) bool { return true }

// passing waits until pings pass between all hosts, and returns how long it took.
func (b *bench) passing(limit time.Duration) time.Duration {
	b.t.Helper()
	began := time.Now()
	harness.Until(b.t, limit, "pings pass", func() error {
		for _, from := range b.hosts {
			for _, to := range b.hosts {
				if from < to {
					if err := exec.Command("ip", "netns", "exec", "hand-"+from, "ping", "-n", "-c", "1", "-W", "1", b.ip[to]).Run(); err != nil {
						return fmt.Errorf("%s to %s: %w", from, to, err)
					}
				}
			}
		}
		return nil
	})
	return time.Since(began)
}

package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
	"netsplit/model"
	"netsplit/testbed/config"
)

const learnAt = "127.0.0.1:6653"

// speak has every host ping every other one once, by IPv4 and IPv6.
func (r *rack) speak() {
	for _, a := range r.hosts {
		for _, b := range r.hosts {
			if a != b {
				for _, ip := range []string{b.ip, b.ip6()} {
					_ = exec.Command("ip", "netns", "exec", a.netns(), "ping", "-n", "-q", "-c", "1", "-W", "1", ip).Run()
				}
			}
		}
	}
}

func (h *host) ip6() string { return fmt.Sprintf("fd79::%d", h.number) }

// TestLearn: two bridges that nobody described, one that rules of others have
// forward, one that forwards by itself; what is learned is what is true, while
// the network stays as it is; doctor and serve take the file, and a cut over both
// bridges holds.
func TestLearn(t *testing.T) {
	harness.LeavesNothing(t)
	r := twoBridges(t, []string{"a", "b"}, []string{"c", "d"})
	for _, h := range r.hosts {
		r.in(h, "ip", "addr", "add", h.ip6()+"/64", "dev", "eth0", "nodad")
	}
	d := r.hosts[3] // has IPv6 only
	r.in(d, "ip", "addr", "del", d.ip+"/24", "dev", "eth0")
	r.VSCtl("set-fail-mode", "rk2", "standalone")
	r.connect(learnAt)
	for _, rule := range []string{"table=0,priority=0,actions=NORMAL", "table=0,priority=7,in_port=11,actions=goto_table:3", "table=3,priority=1,actions=NORMAL",
		"table=0,priority=300,tcp,tp_dst=23,actions=drop", "table=0,priority=40,in_port=12,icmp6,icmpv6_type=135,actions=NORMAL"} {
		r.OFCtl("rk1", "add-flow", rule)
	}
	before := r.foreign("rk1")

	// One that is killed leaves nothing for longer than its rules live.
	killed := harness.Start(t, "testbed", "learn", "--openflow", learnAt, "--for", "10m")
	harness.Until(t, time.Minute, "rules of ours on both bridges", func() error {
		if r.ours("rk1") == 0 || r.ours("rk2") == 0 {
			return fmt.Errorf("%d and %d", r.ours("rk1"), r.ours("rk2"))
		}
		return nil
	})
	killed.Kill()
	harness.Until(t, time.Minute, "they expire", func() error {
		if n, m := r.ours("rk1"), r.ours("rk2"); n+m > 0 {
			return fmt.Errorf("%d and %d", n, m)
		}
		return nil
	})

	// Traffic of the first bridge goes on before, meanwhile and after.
	a, b := r.hosts[0], r.hosts[1]
	pings := harness.StartCommand(t, exec.Command("ip", "netns", "exec", a.netns(), "ping", "-n", "-q", "-i", "0.2", "-W", "1", b.ip))
	file := filepath.Join(t.TempDir(), "learned.yaml")
	l := harness.Start(t, "testbed", "learn", "--openflow", learnAt, "--for", "10m", "-o", file, "--exec", "nsenter --net=/run/netns/{{.Name}}")
	harness.Until(t, 3*time.Minute, "all were heard", func() error {
		r.speak()
		observed := func(port, what string) bool {
			for line := range strings.Lines(l.Stderr()) {
				if strings.Contains(line, port) && strings.Contains(line, what) {
					return true
				}
			}
			return false
		}
		if !observed("link: ", "rkt1") || !observed("(rack-a)", a.ip) || !observed("(rack-a)", a.ip6()) || !observed("(rack-b)", b.ip) || !observed("(rack-c)", r.hosts[2].ip) || !observed("(rack-d)", d.ip6()) {
			return fmt.Errorf("it said %s", l.Stderr())
		}
		return nil
	})
	if !r.ping(a, r.hosts[2]) {
		t.Error("a does not reach c over the bridge that has no rules")
	}
	// On the second bridge, over the end of it and until the bridge is on its own.
	alone := harness.StartCommand(t, exec.Command("ip", "netns", "exec", d.netns(), "ping", "-n", "-q", "-i", "0.2", "-W", "1", r.hosts[2].ip6()))
	l.Signal(t, syscall.SIGINT)
	if res := l.Wait(t, time.Minute); res.Code != 0 {
		t.Fatal(res)
	}
	pings.Signal(t, syscall.SIGINT)
	if res := pings.Wait(t, time.Minute); !strings.Contains(res.Stdout, " 0% packet loss") {
		t.Errorf("traffic of others: %s", res)
	}
	if after := r.foreign("rk1"); after != before || r.ours("rk1") != 0 {
		t.Errorf("%d rules of ours are left; rules of others before:\n%s\nafter:\n%s", r.ours("rk1"), before, after)
	}

	// What is true.
	want := model.Testbed{Name: "learned", Links: []model.SwitchLink{{A: at(t, "rk1", 50), B: at(t, "rk2", 51)}}}
	for _, h := range r.hosts[:3] {
		p := at(t, h.bridge, h.port)
		w := model.TestbedHost{Name: model.NodeID(h.netns()), Datapath: p.Datapath, Port: p.Port, MAC: h.mac, Exec: []string{"nsenter", "--net=/run/netns/" + h.netns()}}
		if err := w.IP.UnmarshalText([]byte(h.ip)); err != nil {
			t.Fatal(err)
		}
		want.Hosts = append(want.Hosts, w)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", text)
	got, err := config.Parse(text)
	if err != nil || !reflect.DeepEqual(*got, want) {
		t.Fatalf("%v: learned %+v, true is %+v", err, got, want)
	}
	for _, said := range []string{"# It has " + a.ip6() + ", too.", "# - name: rack-d", d.ip6()} {
		if !strings.Contains(string(text), said) {
			t.Errorf("it does not say %q", said)
		}
	}
	if res := harness.Run(t, "testbed", "learn", "--openflow", learnAt, "-o", file); res.Code != 2 || !strings.Contains(res.Stderr, "exists: move it away") {
		t.Errorf("over a file: %s", res)
	}

	// The rule that has the second bridge forward goes by itself, and it goes on
	// by itself.
	harness.Until(t, time.Minute, "the bridge is on its own again", func() error {
		// Open vSwitch breaks the connection off when it takes over itself.
		res := harness.RunCommand(t, "ovs-ofctl", "-O", "OpenFlow13", "dump-flows", "unix:"+r.Path("rk2.mgmt"))
		if res.Code != 0 || strings.Contains(res.Stdout, "cookie=0x4e") {
			return fmt.Errorf("%s", res)
		}
		return nil
	})
	harness.Until(t, time.Minute, "c and d reach one another", func() error {
		return exec.Command("ip", "netns", "exec", d.netns(), "ping", "-n", "-q", "-c", "1", "-W", "1", r.hosts[2].ip6()).Run()
	})
	alone.Signal(t, syscall.SIGINT)
	res := alone.Wait(t, time.Minute)
	t.Logf("a bridge in standalone mode, left: %s", res.Stdout)
	if strings.Contains(res.Stdout, " 100% packet loss") {
		t.Error(res)
	}

	// It is used as it is.
	r.OFCtl("rk1", "del-flows")
	r.file = file
	r.connect("127.0.0.1:6654")
	r.diagnose(0)
	daemon := serve(t, "--testbed", file, "--runs-dir", t.TempDir(), "--openflow", learnAt)
	r.connect(daemon.OpenFlow)
	daemon.Healthy()
	daemon.Call("POST", "/v1/partitions", wire.PartitionSpec{Name: "one", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"rack-a"}, {"rack-c"}}}}, nil)
	daemon.State("one", "in_force")
	if r.ping(a, r.hosts[2]) || !r.ping(a, b) || !r.ping(b, r.hosts[2]) {
		t.Errorf("cut: a reaches c: %v, b: %v; b reaches c: %v", r.ping(a, r.hosts[2]), r.ping(a, b), r.ping(b, r.hosts[2]))
	}
	daemon.Heal("one")
	if !r.ping(a, r.hosts[2]) {
		t.Error("healed, and a does not reach c")
	}
}

func at(t *testing.T, bridge string, port int) model.SwitchPort {
	t.Helper()
	id, err := model.ParseDatapathID(dpid(bridge))
	if err != nil {
		t.Fatal(err)
	}
	return model.SwitchPort{Datapath: id, Port: model.Port{Number: uint32(port)}}
}

// TestLearnSaysWhyNot: no switch, a switch of another version, nobody heard.
func TestLearnSaysWhyNot(t *testing.T) {
	harness.LeavesNothing(t)
	r := newRack(t, []string{"a"})
	r.in(r.hosts[0], "sysctl", "-q", "-w", "net.ipv6.conf.all.disable_ipv6=1")
	learn := func(limit string, want ...string) {
		t.Helper()
		res := harness.Run(t, "testbed", "learn", "--openflow", learnAt, "--for", limit)
		for _, w := range want {
			if res.Code != 1 || !strings.Contains(res.Stderr, w) || res.Stdout != "" {
				t.Errorf("want %q: %s", w, res)
			}
		}
	}
	learn("1s", "no switch connected to tcp:127.0.0.1:6653", "ovs-vsctl set-controller")
	r.VSCtl("set", "bridge", "rk1", "protocols=OpenFlow10")
	r.connect(learnAt)
	learn("10s", "no switch connected", "does not speak OpenFlow 1.3", "protocols=OpenFlow13")
	r.VSCtl("set", "bridge", "rk1", "protocols=OpenFlow13")
	learn("10s", "no host sent anything", "ping")
}

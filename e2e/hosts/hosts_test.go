package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
	"netsplit/e2e/traffic"
	"netsplit/flowrules"
	"netsplit/internal/labtest"
	"netsplit/model"
)

// lease is how long the rules of a dead daemon hold at most.
const lease = 5 * time.Second

var (
	pair  = model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{"h1"}, {"h2"}}}
	alone = model.Partition{Shape: model.Isolated, Groups: [][]model.NodeID{{"h2"}}}
)

// TestEveryShapeWithEveryTraffic: what the hosts let pass is what the oracle says.
func TestEveryShapeWithEveryTraffic(t *testing.T) { newTestbed(t).EveryShape(t) }

// TestTheProofMeetsEveryRule: on a network where nothing else happens, the rules at
// both ends of a link have each shown that they drop, when a cut is said to be in
// force; and it is not said to be healed as long as only ARP passes.
func TestTheProofMeetsEveryRule(t *testing.T) {
	b := newTestbed(t)
	counted := func(host int, want ...string) {
		t.Helper()
		rules := b.sh("ip netns exec nb-h%d nft list ruleset", host)
		for _, w := range want {
			m := regexp.MustCompile(`counter packets (\d+) .*` + regexp.QuoteMeta(`comment "`+w+`"`)).FindStringSubmatch(rules)
			if m == nil || len(m[1]) == 1 && m[1] < "3" {
				t.Errorf("h%d: %q was met %v times, want 3 at least:\n%s", host, w, m, rules)
			}
		}
	}
	b.cut("one", pair)
	counted(1, "egress ether daddr 02:4e:53:00:00:02", "egress arp daddr ip 10.77.0.2", "ingress ether saddr 02:4e:53:00:00:02")
	counted(2, "egress ether daddr 02:4e:53:00:00:01", "egress arp daddr ip 10.77.0.1", "ingress ether saddr 02:4e:53:00:00:01")

	b.sh("ip netns exec nb-h2 nft 'table netdev mine { chain in { type filter hook ingress device e0 priority -2000; ip saddr 10.77.0.1 drop; }; }'")
	if _, err := b.api.DeletePartition(context.Background(), "one", limit); err == nil || !strings.Contains(err.Error(), "h1>h2") {
		t.Errorf("healed though only ARP passes: %v", err)
	}
	b.state("one", "healing")
	b.sh("ip netns exec nb-h2 nft delete table netdev mine")
	b.heal("one")

	narrow := pair
	narrow.Only = []model.Traffic{{Proto: "tcp", Port: 7000}, {Proto: "icmp"}}
	b.cut("some", narrow)
	for _, far := range [][2]int{{1, 2}, {2, 1}} {
		for _, at := range []string{"egress ether daddr", "ingress ether saddr"} {
			m := fmt.Sprintf("%s 02:4e:53:00:00:0%d meta l4proto ", at, far[1])
			counted(far[0], m+"tcp tcp dport 7000", m+"tcp tcp sport 7000", m+"icmp", m+"ipv6-icmp icmpv6 type != 133-137")
		}
	}
	b.heal("some")
}

// TestOtherTablesAreLeftAlone: rules of others stay, accept nothing that is cut, and
// take nothing away from ours.
func TestOtherTablesAreLeftAlone(t *testing.T) {
	b := newTestbed(t)
	const others = `table netdev mine { chain in { type filter hook ingress device e0 priority -2000; ether type 0x0800 counter packets 0 bytes 0 accept; }
}
table inet mine { chain in { type filter hook input priority 0; ip saddr 10.77.0.0/24 accept; }
}
`
	b.sh("ip netns exec nb-h2 nft -f - <<'END'\n%sEND", strings.ReplaceAll(others, "; }", "\n }"))
	list := func() string {
		return b.sh("ip netns exec nb-h2 sh -c 'nft -s list table netdev mine; nft -s list table inet mine'")
	}
	before := list()
	p, err := flowrules.Resolve(alone, b.Where)
	if err != nil {
		t.Fatal(err)
	}
	b.cut("one", alone)
	b.Expect(t, "beside rules that accept", p)
	if after := list(); after != before {
		t.Errorf("before:\n%s\nwhile cut:\n%s", before, after)
	}
	b.sh("ip netns exec nb-h2 nft flush ruleset")
	b.Expect(t, "after somebody flushed all rules", p)
	b.sh("ip netns exec nb-h2 nft -f - <<'END'\n%sEND", strings.ReplaceAll(others, "; }", "\n }"))
	b.heal("one")
	b.Expect(t, "healed", []model.Partition{}...)
	b.Signal(t, syscall.SIGTERM)
	if r := b.Wait(t, limit); r.Code != 0 {
		t.Errorf("the daemon: %s", r)
	}
	if left := b.sh("ip netns exec nb-h2 nft -s list ruleset"); strings.Contains(left, "netsplit") || list() != before {
		t.Errorf("left when the daemon had ended:\n%s", left)
	}
}

// TestNothingStaysCut: whoever dies or hangs, the network heals in the stated time.
func TestNothingStaysCut(t *testing.T) {
	b := newTestbed(t)
	b.cut("stopped", alone)
	b.Signal(t, syscall.SIGSTOP)
	took, held := b.opens()
	b.Signal(t, syscall.SIGCONT)
	if held > lease+2*time.Second || took < lease/2 {
		t.Errorf("packets were held back %v after the daemon stopped, and passed after %v; want %v at most", held, took, lease)
	}
	if st := b.state("stopped", "failed"); !strings.Contains(st.Reason, "not renewed in time") {
		t.Errorf("the partition of a daemon that hung: %+v", st)
	}

	b.cut("beside", model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{"h4"}, {"h5"}}})
	b.cut("agent", alone)
	b.sh("kill -9 %s", b.agent())
	if st := b.state("agent", "failed"); !strings.Contains(st.Reason, "host h2: the agent has ended") {
		t.Errorf("the partition of a host whose agent died: %+v", st)
	}
	if st := b.state("beside", "in_force"); st.Reason != "" || st.Leaked != 0 {
		t.Errorf("the partition of other hosts: %+v", st)
	}
	b.heal("beside")
	b.opens()

	b.cut("daemon", alone) // on an agent started anew
	b.Kill()
	took, _ = b.opens()
	t.Logf("packets passed %v after kill -9", took.Round(time.Millisecond))
	for _, h := range b.Hosts {
		harness.Until(t, limit, "the table is gone", func() error {
			if left := b.sh("ip netns exec %s nft list ruleset", h.(*traffic.Station).Netns); left != "" {
				return fmt.Errorf("on %s:\n%s", h.ID(), left)
			}
			return nil
		})
	}
	b.serve()
	if st := b.state("daemon", "healed"); st.Reason == "" {
		t.Errorf("the partition of a dead daemon: %+v", st)
	}
	b.cut("next", pair)
	b.heal("next")
}

// TestAnAgentIsStartedAgain without a cut that needs it: an idle one, and one that dies
// while its partition is healing, its rules gone already.
func TestAnAgentIsStartedAgain(t *testing.T) {
	b := newTestbed(t)
	well := func() {
		t.Helper()
		b.daemon.Healthy()
	}
	kill := func() {
		old := b.agent()
		b.sh("kill -9 %s", old)
		harness.Until(t, limit, "there is another agent", func() error {
			if now := b.agent(); now == old || now == "" {
				return errors.New("there is none")
			}
			return nil
		})
		well()
	}
	kill()

	b.cut("one", pair)
	b.sh("ip netns exec nb-h2 nft 'table netdev mine { chain in { type filter hook ingress device e0 priority -2000; ip saddr 10.77.0.1 drop; }; }'")
	if _, err := b.api.DeletePartition(context.Background(), "one", limit); err == nil {
		t.Error("healed though packets are dropped")
	}
	b.state("one", "healing")
	kill()
	b.sh("ip netns exec nb-h2 nft delete table netdev mine")
	if _, err := b.api.DeletePartition(context.Background(), "one", limit); err != nil {
		t.Error(err)
	}
	b.state("one", "healed")

	b.cut("two", pair) // and what it lost is told, though another has started since
	kill()
	b.state("two", "failed")
	b.opens()
}

// TestSendersAreNotTold: to a sender, packets that are cut are as lost on the wire.
func TestSendersAreNotTold(t *testing.T) {
	b := newTestbed(t)
	l := listen(t, b.Hosts[1].(*traffic.Station))
	var conn *net.TCPConn
	if err := labtest.In("nb-h1", func() error {
		c, err := net.Dial("tcp", l.Addr().String())
		if err == nil {
			conn = c.(*net.TCPConn)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	b.cut("one", pair)
	if err := labtest.In("nb-h1", func() error {
		to := &unix.SockaddrInet4{Port: 9, Addr: [4]byte{10, 77, 0, 2}}
		for kind, proto := range map[int]int{unix.SOCK_DGRAM: 0, unix.SOCK_RAW: unix.IPPROTO_ICMP} {
			fd, err := unix.Socket(unix.AF_INET, kind, proto)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if err := unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_RECVERR, 1); err != nil {
				return err
			}
			for range 3 {
				if err := unix.Sendto(fd, []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0}, 0, to); err != nil {
					t.Errorf("a socket of kind %d was told: %v", kind, err)
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	// TCP backs off only from what it believes to be on its way.
	if _, err := conn.Write([]byte("later")); err != nil {
		t.Fatal(err)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	harness.Until(t, limit, "TCP backs off", func() error {
		var info *unix.TCPInfo
		cerr := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
		if err == nil && cerr == nil && info.Backoff < 2 {
			err = fmt.Errorf("backoff %d after %d retransmissions", info.Backoff, info.Total_retrans)
		}
		return err
	})
	b.heal("one")
	buf := make([]byte, 5)
	_ = far.SetReadDeadline(time.Now().Add(limit))
	if _, err := io.ReadFull(far, buf); err != nil || string(buf) != "later" {
		t.Errorf("after the heal: %q, %v", buf, err)
	}
}

// agent is the process of the agent on h2; "" if there is none. Threads of the test
// are in that namespace now and then.
func (b *testbed) agent() string {
	b.t.Helper()
	pids := strings.Fields(b.sh("ip netns pids nb-h2"))
	pids = slices.DeleteFunc(pids, func(pid string) bool { return pid == strconv.Itoa(os.Getpid()) })
	return strings.Join(pids, " ")
}

func listen(t *testing.T, h *traffic.Station) (l net.Listener) {
	t.Helper()
	if err := labtest.In(h.Netns, func() (err error) {
		l, err = net.Listen("tcp", h.IP().String()+":7000")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// TestNothingPassesOnceInForce: while packets come all the time, none arrives from
// the moment on at which a partition is said to be in force.
func TestNothingPassesOnceInForce(t *testing.T) {
	b := newTestbed(t)
	flood := harness.StartCommand(t, exec.Command("ip", "netns", "exec", "nb-h1", "ping", "-q", "-i", "0.002", "-s", "1000", "10.77.0.2"))
	defer flood.Kill()
	for i := range 8 {
		p := pair
		if i%2 == 1 {
			p.Only = []model.Traffic{{Proto: "icmp"}}
		}
		name := fmt.Sprintf("cut%d", i)
		b.cut(name, p)
		if st := b.heal(name); st.Dropped <= st.Probes/2 {
			t.Errorf("cut %d dropped nothing of the flood: %+v", i, st)
		}
	}
}

// TestWhatItDoesNotDo: campaigns and what else takes a switch are refused with a
// sentence that says what works; partitions heal by themselves when asked to.
func TestWhatItDoesNotDo(t *testing.T) {
	b := newTestbed(t)
	_, err := b.api.CreateCampaign(context.Background(), wire.CampaignSpec{Target: "redis-sentinel", Strategy: "random", Seed: 1}, 0)
	if err == nil || !strings.Contains(err.Error(), "campaigns take a switch") || !strings.Contains(err.Error(), "netsplit partition") {
		t.Errorf("a campaign: %v", err)
	}
	for _, args := range [][]string{{"--gate", "port"}, {"--role", "equal"}, {"--allowed-datapath", "1"}} {
		r := harness.Run(t, append([]string{"serve", "--testbed", b.file, "--runs-dir", t.TempDir()}, args...)...)
		if r.Code != 2 || !strings.Contains(r.Stderr, "has no switch") {
			t.Errorf("%v: %s", args, r)
		}
	}
	second := harness.Run(t, "serve", "--testbed", b.file, "--runs-dir", t.TempDir(), "--listen", "127.0.0.1:0")
	if second.Code != 1 || !strings.Contains(second.Stderr, "another netsplit cuts this host") {
		t.Errorf("a second daemon on the same hosts: %s", second)
	}
	var hosts wire.Hosts
	if b.daemon.Call("GET", "/v1/hosts", nil, &hosts); len(hosts.Items) != 5 || hosts.Items[0].Datapath != "" {
		t.Errorf("hosts: %+v", hosts)
	}
	var switches wire.Switches
	if b.daemon.Call("GET", "/v1/switches", nil, &switches); len(switches.Items) != 0 {
		t.Errorf("switches: %+v", switches)
	}
	if status, said, err := b.daemon.Try("GET", "/healthz", nil); err != nil || status != 200 {
		t.Errorf("health: %d %s, %v", status, said, err)
	}
	out := harness.Run(t, "partition", "cut", "isolate", "h2", "--for", "200ms", "--name", "timed", "--api", b.daemon.API)
	if out.Code != 0 {
		t.Fatalf("netsplit partition cut: %s", out)
	}
	if p := b.state("timed", "healed"); p.Healed.Sub(*p.InForce) < 200*time.Millisecond {
		t.Errorf("in force %v, healed %v: too early", p.InForce, p.Healed)
	}
	reset := wire.PartitionSpec{Name: "reset", Partition: wire.Partition{Shape: "isolate", Effect: "reset", Groups: [][]string{{"h2"}}}}
	if _, err := b.api.CreatePartition(context.Background(), reset, 0); err == nil || !strings.Contains(err.Error(), "send no resets") {
		t.Errorf("effect reset: %v", err)
	}
	if !b.Open(t) {
		t.Error("still cut after its time")
	}
}

package nft

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"netsplit/flowrules/hostrules"
	"netsplit/internal/labtest"
	"netsplit/model"
)

func TestMain(m *testing.M) { os.Exit(labtest.Main(m.Run)) }

// sh runs a script in the sandbox's network namespace.
func sh(t testing.TB, format string, args ...any) string {
	t.Helper()
	script := fmt.Sprintf(format, args...)
	out, err := exec.Command("sh", "-ec", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

// device makes a pair of devices that send nothing by themselves, one of them with
// an address, and removes it.
func device(t testing.TB) {
	t.Helper()
	sh(t, "ip link add nd0 type veth peer name nd1; for d in nd0 nd1; do echo 1 > /proc/sys/net/ipv6/conf/$d/disable_ipv6; done; ip addr add 10.8.0.1/24 dev nd0; ip link set nd0 up; ip link set nd1 up")
	t.Cleanup(func() { sh(t, "ip link del nd0") })
}

func open(t testing.TB, name string) *Table {
	t.Helper()
	tb, err := Open(name, netip.MustParseAddr("10.8.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tb.Close() })
	return tb
}

// hosts are the one that we are and one of each family.
var hosts = []hostrules.Host{
	{Name: "n1", MAC: hostrules.MAC{2, 0, 0, 0, 0, 1}, IP: netip.MustParseAddr("10.8.0.1")},
	{Name: "n2", MAC: hostrules.MAC{2, 0, 0, 0, 0, 2}, IP: netip.MustParseAddr("10.8.0.2")},
	{Name: "n3", MAC: hostrules.MAC{2, 0, 0, 0, 0, 3}, IP: netip.MustParseAddr("fd08::3")},
}

func cut(only ...model.Traffic) model.Partition {
	return model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"n1"}, {"n2", "n3"}}, Only: only}
}

var manyKinds = cut(model.Traffic{Proto: "tcp"}, model.Traffic{Proto: "tcp", Port: 7000}, model.Traffic{Proto: "tcp", Opening: true},
	model.Traffic{Proto: "tcp", Port: 7000, Opening: true}, model.Traffic{Proto: "udp", Port: 53}, model.Traffic{Proto: "icmp"}, model.Traffic{Proto: "arp"})

// TestTheKernelHoldsWhatTheRulesSay: nft, which read the text of each rule into a
// table of its own, lists the same as for ours.
func TestTheKernelHoldsWhatTheRulesSay(t *testing.T) {
	device(t)
	tb := open(t, "netsplit-a")
	rules := append(hostrules.Compile("n1", hosts, []model.Partition{cut()}), hostrules.Compile("n1", hosts, []model.Partition{manyKinds})...)
	if _, err := tb.Set(rules, time.Minute); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, hook := range []hostrules.Hook{hostrules.Egress, hostrules.Ingress} {
		fmt.Fprintf(&text, "table netdev other {\nchain %[1]s {\ntype filter hook %[1]s device nd0 priority 0\n", hook)
		for _, r := range rules {
			if r.Hook == hook {
				fmt.Fprintln(&text, r)
			}
		}
		fmt.Fprintf(&text, "}\n}\n")
	}
	cmd := exec.Command("nft", "-f", "-")
	cmd.Stdin = &text
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("nft: %v: %s\n%s", err, out, text.String())
	}
	t.Cleanup(func() { sh(t, "nft delete table netdev other") })
	for _, hook := range []hostrules.Hook{hostrules.Egress, hostrules.Ingress} {
		ours, theirs := list(t, "netsplit-a", hook), list(t, "other", hook)
		if d := cmp.Diff(theirs, ours); d != "" || len(ours) < len(rules)/3 {
			t.Errorf("%s: by nft (-), ours (+): %s", hook, d)
		}
	}
}

// list is what the rules of a chain match, as nft reads it, without the one that
// looks for the lease.
func list(t *testing.T, table string, hook hostrules.Hook) []string {
	t.Helper()
	var out []string
	for _, l := range strings.Split(sh(t, "nft list chain netdev %s %s", table, hook), "\n") {
		l, _, _ = strings.Cut(strings.TrimSpace(l), " counter")
		if strings.Contains(l, "addr") && !strings.HasSuffix(l, " accept") {
			out = append(out, l)
		}
	}
	return out
}

func keys(rules []hostrules.Rule, hook hostrules.Hook) (out []string) {
	for _, r := range rules {
		if r.Hook == hook {
			out = append(out, r.Key())
		}
	}
	return out
}

// TestRulesStayInOrderAndKeepTheirCounts, whatever they are turned into.
func TestRulesStayInOrderAndKeepTheirCounts(t *testing.T) {
	device(t)
	tb := open(t, "netsplit-a")
	sh(t, "ip neigh add 10.8.0.2 lladdr 02:00:00:00:00:02 dev nd0")
	ping := func() { exec.Command("ping", "-c", "1", "-W", "0.01", "10.8.0.2").Run() }
	icmp, arp := cut(model.Traffic{Proto: "icmp"}), cut(model.Traffic{Proto: "arp"})
	pings := []uint64{0, 1, 2, 3, 0, 0, 1} // that the rule for icmp had counted by each step
	for i, ps := range [][]model.Partition{{icmp}, {manyKinds}, {icmp, arp}, {cut()}, {arp}, {icmp, manyKinds}, nil} {
		rules := hostrules.Compile("n1", hosts, ps)
		before, err := tb.Set(rules, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if n := before["egress ether daddr 02:00:00:00:00:02 meta l4proto icmp"]; n != pings[i] {
			t.Errorf("step %d: %d pings were counted, want %d", i, n, pings[i])
		}
		for _, hook := range []hostrules.Hook{hostrules.Egress, hostrules.Ingress} {
			var got []string
			have, err := tb.lib.GetRules(tb.table, tb.chains[hook])
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range have {
				if key, ok := userdata.GetString(r.UserData, userdata.TypeComment); ok {
					got = append(got, key)
				}
			}
			if d := cmp.Diff(keys(rules, hook), got); d != "" {
				t.Fatalf("step %d, %s: (-want +got) %s", i, hook, d)
			}
		}
		ping()
	}
	if left, err := tb.Dropped(); err != nil || len(left) != 0 {
		t.Errorf("without rules: %v, %v", left, err)
	}
}

// TestTheLeaseEnds: packets pass when it has run out, and not before; and that is
// said, once there are rules.
func TestTheLeaseEnds(t *testing.T) {
	device(t)
	tb := open(t, "netsplit-a")
	sh(t, "ip neigh add 10.8.0.2 lladdr 02:00:00:00:00:02 dev nd0")
	sent := func() bool { // what leaves nd0 arrives at nd1
		received := func() string { return sh(t, "cat /sys/class/net/nd1/statistics/rx_packets") }
		before := received()
		exec.Command("ping", "-c", "1", "-W", "0.01", "10.8.0.2").Run()
		return received() != before
	}
	rules := hostrules.Compile("n1", hosts, []model.Partition{cut()})
	// The kernel opens a device for what is sent some time after it is up.
	for end := time.Now().Add(time.Minute / 2); !sent(); {
		if time.Now().After(end) {
			t.Fatal("nothing leaves without rules")
		}
	}
	if _, err := tb.Set(nil, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond)
	if _, err := tb.Set(rules, time.Minute); err != nil {
		t.Errorf("a lease that ended without rules was of no use to anybody: %v", err)
	}
	if err := tb.Renew(time.Minute); err != nil {
		t.Error(err)
	}
	if sent() {
		t.Error("a packet left while the lease lasted")
	}
	const lease = 300 * time.Millisecond
	began := time.Now()
	if err := tb.Renew(lease); err != nil {
		t.Fatal(err)
	}
	for !sent() {
		if time.Since(began) > time.Minute/2 {
			t.Fatal("nothing leaves though the lease ended")
		}
	}
	if took := time.Since(began); took < lease {
		t.Errorf("a packet left %v after a lease of %v began", took, lease)
	}
	if err := tb.Renew(time.Minute); !errors.Is(err, ErrExpired) {
		t.Errorf("renewed too late: %v", err)
	}
	if !sent() {
		t.Error("cut again by itself")
	}
	if _, err := tb.Set(rules, time.Minute); !errors.Is(err, ErrExpired) {
		t.Errorf("set too late: %v", err)
	}
	if sent() {
		t.Error("not cut again when asked to")
	}
}

// TestATableHasOneOwner: nobody else takes it, and it goes with its owner.
func TestATableHasOneOwner(t *testing.T) {
	device(t)
	tb := open(t, "netsplit-a")
	if _, err := Open("netsplit-a", netip.MustParseAddr("10.8.0.1")); !errors.Is(err, unix.EEXIST) || !strings.Contains(err.Error(), "another netsplit") {
		t.Errorf("a second one: %v", err)
	}
	if out, err := exec.Command("nft", "delete", "table", "netdev", "netsplit-a").CombinedOutput(); err == nil {
		t.Errorf("somebody else deleted it: %s", out)
	}
	sh(t, "nft flush ruleset")
	if !strings.Contains(sh(t, "nft list ruleset"), "netsplit-a") {
		t.Error("somebody else flushed it")
	}
	if err := tb.Close(); err != nil {
		t.Fatal(err)
	}
	if left := sh(t, "nft list ruleset"); left != "" {
		t.Errorf("left: %s", left)
	}
	if _, err := Open("netsplit-a", netip.MustParseAddr("10.8.0.9")); err == nil || !strings.Contains(err.Error(), "10.8.0.9") {
		t.Errorf("an address that no device has: %v", err)
	}
}

// TestManyRulesAtOnce: as a host of a large testbed has them.
func TestManyRulesAtOnce(t *testing.T) {
	device(t)
	tb := open(t, "netsplit-a")
	var rules []hostrules.Rule
	for i := range 1000 {
		ip := netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)})
		for _, hook := range []hostrules.Hook{hostrules.Egress, hostrules.Ingress} {
			rules = append(rules, hostrules.Rule{Hook: hook, Match: hostrules.Match{IP: ip, Proto: hostrules.ProtoTCP, DstPort: 7000}})
		}
	}
	for _, n := range []int{100, 2000, 1, 2000, 0} {
		if _, err := tb.Set(rules[:n], time.Minute); err != nil {
			t.Fatalf("%d rules: %v", n, err)
		}
		have, err := tb.Dropped()
		if err != nil || len(have) != n {
			t.Errorf("%d rules are in force, want %d: %v", len(have), n, err)
		}
	}
}

// TestARefusedTransactionIsToldAtOnce, however many answers it has, and none of them
// is taken for the answer to the next.
func TestARefusedTransactionIsToldAtOnce(t *testing.T) {
	device(t)
	tb := open(t, "netsplit-a")
	var msgs []netlink.Message
	for handle := range uint64(1000) {
		msgs = append(msgs, tb.message(unix.NFT_MSG_DELRULE, 0, []netlink.Attribute{text(unix.NFTA_RULE_TABLE, "netsplit-a"),
			text(unix.NFTA_RULE_CHAIN, string(hostrules.Egress)), {Type: unix.NFTA_RULE_HANDLE, Data: binary.BigEndian.AppendUint64(nil, 1000+handle)}}))
	}
	began := time.Now()
	if err := tb.commit(msgs); !errors.Is(err, unix.ENOENT) {
		t.Errorf("rules that are not there were removed: %v", err)
	}
	if err := tb.conn.SetReadBuffer(1); err != nil { // as small as the kernel lets it be
		t.Fatal(err)
	}
	if err := tb.commit(msgs); !errors.Is(err, unix.ENOBUFS) {
		t.Errorf("answers that nobody could hold: %v", err)
	}
	if took := time.Since(began); took > answerLimit {
		t.Errorf("it took %v", took)
	}
	if _, err := tb.Set(hostrules.Compile("n1", hosts, []model.Partition{cut()}), time.Minute); err != nil {
		t.Error(err)
	}
}

// TestATableThatIsNotAnsweredIsGivenUp: it says so from then on, and holds nothing.
func TestATableThatIsNotAnsweredIsGivenUp(t *testing.T) {
	device(t)
	tb := open(t, "netsplit-a")
	if err := tb.giveUp(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	_, set := tb.Set(nil, time.Minute)
	_, dropped := tb.Dropped()
	for _, err := range []error{set, dropped, tb.Renew(time.Minute)} {
		if !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
	if left := sh(t, "nft list ruleset"); left != "" {
		t.Errorf("left: %s", left)
	}
	open(t, "netsplit-a")
}

// TestADeviceThatGoesIsTold: its chains go with it.
func TestADeviceThatGoesIsTold(t *testing.T) {
	sh(t, "ip link add nd2 type veth peer name nd3; ip addr add 10.8.1.1/24 dev nd2; ip link set nd2 up")
	tb, err := Open("netsplit-b", netip.MustParseAddr("10.8.1.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	if _, err := tb.Set(hostrules.Compile("n1", hosts, []model.Partition{cut()}), time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := tb.Renew(time.Minute); err != nil {
		t.Fatal(err)
	}
	sh(t, "ip link del nd2")
	if err := tb.Renew(time.Minute); err == nil || !strings.Contains(err.Error(), "nd2") {
		t.Errorf("%v", err)
	}
}

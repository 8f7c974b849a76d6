package testbed

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/testbed/agent"
)

// Called "ssh" or "near", the test binary is an agent of another machine or of this one.
func TestMain(m *testing.M) {
	dir := filepath.Dir(os.Args[0])
	switch filepath.Base(os.Args[0]) {
	case "near":
		pretend(dir, 0, 0)
	case "ssh":
		pretend(dir, 30*time.Millisecond, -20*time.Millisecond)
	default:
		os.Exit(m.Run())
	}
}

// pretend is an agent whose answers take twice half, and whose clock shows skew more
// than ours. What one sends goes into the file "sent", and arrives 1 ms later if that
// is before the time in the file "cut".
func pretend(dir string, half, skew time.Duration) {
	type m = map[string]any
	say := json.NewEncoder(os.Stdout)
	_ = say.Encode(m{"id": 0, "version": agent.ProtocolVersion})
	now := func() int64 { return time.Now().Add(skew).UnixNano() }
	for in := json.NewDecoder(bufio.NewReader(os.Stdin)); ; {
		var r struct {
			ID    uint64 `json:"id"`
			Op    string `json:"op"`
			Query struct {
				From int64 `json:"from_ns"`
				To   int64 `json:"to_ns"`
			} `json:"query"`
			Emit struct {
				ProbePackets []any `json:"probe_packets"`
			} `json:"emit"`
		}
		if in.Decode(&r) != nil {
			return
		}
		time.Sleep(half)
		answer := m{"id": r.ID}
		switch r.Op {
		case "clock":
			answer["now_ns"] = now()
		case "emit":
			f, _ := os.OpenFile(filepath.Join(dir, "sent"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
			fmt.Fprintln(f, time.Now().UnixNano())
			f.Close()
			sent := make([]bool, len(r.Emit.ProbePackets))
			for i := range sent {
				sent[i] = true
			}
			answer["sent"] = sent
		default:
			if r.Op == "first" {
				r.Query.To = now()
			}
			time.Sleep(time.Duration(r.Query.To - now()))
			n, first := 0, int64(0)
			sent, _ := os.ReadFile(filepath.Join(dir, "sent"))
			cut, _ := os.ReadFile(filepath.Join(dir, "cut"))
			for _, at := range strings.Fields(string(sent)) {
				at, _ := strconv.ParseInt(at, 10, 64)
				until, _ := strconv.ParseInt(string(cut), 10, 64)
				if stamp := at + int64(time.Millisecond+skew); at < until && stamp >= r.Query.From && stamp < r.Query.To {
					n++
					first = stamp
				}
			}
			answer["count"], answer["first_ns"] = m{"packets": n}, first
		}
		time.Sleep(half)
		_ = say.Encode(answer)
	}
}

// hasty is a switch whose rules count everything at once, whatever it forwards, but
// nothing while it waits.
type hasty struct {
	counted uint64
	waits   func() bool // nil: never
}

func (*hasty) Cut(context.Context, uint32, model.Partition) error { return nil }
func (*hasty) Heal(context.Context, uint32) error                 { return nil }
func (*hasty) LeaseExpiry(model.Partition) (time.Time, error)     { return time.Time{}, nil }
func (*hasty) Verify(context.Context, model.Partition) error      { return nil }
func (*hasty) DropsBy(context.Context, uint32) ([]model.RuleDrops, error) {
	return nil, errors.New("not asked for")
}
func (*hasty) CountedFor([]model.Link, []model.ProbePacket) map[model.Link][][]uint32 { return nil }

func (h *hasty) Drops(_ context.Context, _ uint32, of []model.ProbePacket) (map[model.Link][]model.Met, error) {
	if h.waits == nil || !h.waits() {
		h.counted += 1000
	}
	met := make([]model.Met, len(of))
	for i := range met {
		met[i] = model.Met{Rule: "r", Packets: h.counted}
	}
	return map[model.Link][]model.Met{{Src: "a", Dst: "b"}: met}, nil
}

// pair is a testbed of the hosts a, near, and b, far: cut stops what a sends at that time.
func pair(t *testing.T, cut time.Time) *Cut {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &Testbed{cuts: &hasty{}, agents: agents{on: map[model.NodeID]*agent.Client{}}, macs: map[model.NodeID]net.HardwareAddr{}}
	for i, name := range []string{"near", "ssh"} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		h := model.TestbedHost{Name: model.NodeID(rune('a' + i)), IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), Exec: []string{filepath.Join(dir, name)}, Agent: "there"}
		b.Testbed.Hosts = append(b.Testbed.Hosts, h)
		b.macs[h.Name] = net.HardwareAddr{2, 0, 0, 0, 0, byte(i + 1)}
		a, err := agent.Start(t.Context(), h, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		b.agents.put(h.Name, a)
	}
	if err := os.WriteFile(filepath.Join(dir, "cut"), []byte(strconv.FormatInt(cut.UnixNano(), 10)), 0o600); err != nil {
		t.Fatal(err)
	}
	c := b.NewCut(model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"b"}, {"a"}}})
	if l := c.partition.Links(); len(l) != 1 || l[0].Src != "a" {
		t.Fatal(l)
	}
	return c
}

// TestAProofAllowsForClocks: where the receiver's clock is behind, what still passes is
// not missed, and nothing of it counts as leaked once the cut is in force.
func TestAProofAllowsForClocks(t *testing.T) {
	really := time.Now().Add(500 * time.Millisecond)
	c := pair(t, really)
	at, err := c.Prove(t.Context())
	if err != nil || at.Before(really) {
		t.Fatalf("in force %v after packets ceased to pass, %v", at.Sub(really), err)
	}
	if n, err := c.Crossed(t.Context(), at, time.Now()); err != nil || Sum(n) != 0 {
		t.Errorf("leaked: %v, %v", n, err)
	}
}

// TestLateCountersAreAskedAgain: a switch that counted before and is late now is not
// believed by its silence; each round is counted.
func TestLateCountersAreAskedAgain(t *testing.T) {
	c := pair(t, time.Now())
	dir := filepath.Dir(c.tb.Testbed.Hosts[0].Exec[0])
	sent := func() int {
		b, _ := os.ReadFile(filepath.Join(dir, "sent"))
		return strings.Count(string(b), "\n")
	}
	if _, err := c.Prove(t.Context()); err != nil || sent() != provingRounds+1 {
		t.Fatalf("%d packets, %v", sent(), err)
	}
	before := sent()
	c.tb.cuts.(*hasty).waits = func() bool { return sent() <= before+1 } // not for the first packet
	if _, err := c.Prove(t.Context()); err != nil || sent()-before != 1+provingRounds+1 {
		t.Errorf("%d packets, %v; want one that nobody counted, %d that were, and one that does not arrive", sent()-before, err, provingRounds)
	}
}

// TestAGateThatCountsLateIsAskedAgain, by a script's run that takes the gate in its midst.
func TestAGateThatCountsLateIsAskedAgain(t *testing.T) {
	c := pair(t, time.Now())
	dir := filepath.Dir(c.tb.Testbed.Hosts[0].Exec[0])
	sent := func() int {
		b, _ := os.ReadFile(filepath.Join(dir, "sent"))
		return strings.Count(string(b), "\n")
	}
	probePackets := c.partition.ProbePackets()
	late := 1
	gate := &hasty{waits: func() bool { return sent() <= late }}
	count := func(ctx context.Context, of []model.ProbePacket) (map[model.Link][]model.Met, error) {
		return gate.Drops(ctx, 0, of)
	}
	if err := c.gated(t.Context(), c.every(probePackets), probePackets, count); err != nil || sent() != 1+provingRounds {
		t.Errorf("%d packets, %v; want one that nobody counted, and %d that were", sent(), err, provingRounds)
	}
	before := sent()
	late = 1 << 30
	if err := c.gated(t.Context(), c.every(probePackets), probePackets, count); !errors.Is(err, errUncounted) || sent()-before != lateTries {
		t.Errorf("a gate that counts nothing: %d packets, %v; want %d", sent()-before, err, lateTries)
	}
}

// TestOnlyLateCountersAreAskedAgain: what else hinders a round is told at once.
func TestOnlyLateCountersAreAskedAgain(t *testing.T) {
	for err, want := range map[error]int{fmt.Errorf("2 packets are %w", errUncounted): lateTries, errors.New("host c: agent: gave up"): 1, nil: 1} {
		n := 0
		if got := again(func() error { n++; return err }); got != err || n != want {
			t.Errorf("%v: %d tries, want %d: %v", err, n, want, got)
		}
	}
}

// TestAProofThatIsNotMadeSaysWhy, and does not blame the host that was being asked when
// its time was over.
func TestAProofThatIsNotMadeSaysWhy(t *testing.T) {
	none := func(model.Link, model.ProbePacket) bool { return false }
	for what, proof := range map[string]struct {
		make func(context.Context) error
		says string
	}{
		"of a cut": {func(ctx context.Context) error {
			_, err := pair(t, time.Now().Add(time.Hour)).Prove(ctx)
			return err
		}, "packets "},
		"of a heal": {func(ctx context.Context) error { return pair(t, time.Now()).Healed(ctx, none) }, "over a>b"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		err := proof.make(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), proof.says) || strings.ContainsAny(err.Error(), "\n") || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v; want %q alone", what, err, proof.says)
		}
	}
	stuck := pair(t, time.Now())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := stuck.Healed(ctx, none); err == nil || !errors.Is(err, context.Canceled) {
		t.Errorf("no try came to its end: %v", err)
	}
}

// TestWhatHindersAHostIsToldOnce, however many links it has, and in their order.
func TestWhatHindersAHostIsToldOnce(t *testing.T) {
	links := []model.Link{{Src: "a", Dst: "b"}, {Src: "a", Dst: "c"}, {Src: "b", Dst: "a"}, {Src: "c", Dst: "a"}}
	err := (&Cut{}).over(links, func(l model.Link) error {
		if l.Src == "c" {
			return nil
		}
		return fmt.Errorf("host %s: network is down", l.Src)
	})
	if want := "host a: network is down\nhost b: network is down"; err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

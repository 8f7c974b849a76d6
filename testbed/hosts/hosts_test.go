package hosts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netsplit/flowrules/hostrules"
	"netsplit/model"
	"netsplit/testbed/nft"
)

// fake is an agent without a kernel.
type fake struct {
	mu      sync.Mutex
	rules   []hostrules.Rule
	dropped map[string]uint64
	renewed int
	refuses int   // so many sets of rules, and keeps those it has
	fails   error // what it answers
	givesUp bool  // its table when it is given rules next
	mute    error // what it answers when it is asked for its counts
}

func (f *fake) Filter(_ context.Context, _ string, _ netip.Addr, rules []hostrules.Rule, _ time.Duration) (map[string]uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails != nil {
		return nil, f.fails
	}
	if f.refuses > 0 {
		f.refuses--
		return nil, errors.New("no room")
	}
	if f.givesUp {
		f.rules, f.dropped, f.givesUp = nil, nil, false
		return nil, errors.New("the table was given up")
	}
	before, after := maps.Clone(f.dropped), map[string]uint64{}
	for _, r := range rules {
		after[r.Key()] = f.dropped[r.Key()]
	}
	f.rules, f.dropped = rules, after
	return before, nil
}

func (f *fake) Renew(context.Context, time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed++
	return f.fails
}

func (f *fake) Dropped(context.Context) (map[string]uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.dropped), errors.Join(f.fails, f.mute)
}

// drop has the first rule for a link that fits count packets.
func (f *fake) drop(t *testing.T, l model.Link, only string, n uint64) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rules {
		if r.Link == l && (r.Only == model.Traffic{} || r.Only.String() == only) {
			f.dropped[r.Key()] += n
			return
		}
	}
	t.Fatalf("no rule for %s %s", l, only)
}

func (f *fake) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = err
}

func (f *fake) refuse(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuses = n
}

type tb struct {
	*Hosts
	mu     sync.Mutex
	agents map[model.NodeID]*fake
	lost   chan error
}

func newTestbed(t *testing.T) *tb {
	t.Helper()
	b := &tb{agents: map[model.NodeID]*fake{}, lost: make(chan error, 100)}
	cfg := Config{Testbed: model.Testbed{Name: "t"}, Lost: func(_ model.NodeID, err error) { b.lost <- err }, renewEvery: 5 * time.Millisecond,
		Agent: func(_ context.Context, h model.NodeID) (Agent, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.agents[h], nil
		}}
	for i := range 4 {
		name := model.NodeID(fmt.Sprintf("n%d", i+1))
		b.agents[name] = new(fake)
		cfg.Testbed.Hosts = append(cfg.Testbed.Hosts, model.TestbedHost{Name: name, MAC: fmt.Sprintf("02:00:00:00:00:%02x", i+1), IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})})
	}
	h, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	b.Hosts = h
	return b
}

func partial(a, b model.NodeID, only ...model.Traffic) model.Partition {
	return model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{a}, {b}}, Only: only}
}

// TestDropsBelongToThePartitionsInForce: of those that overlap each counts what was
// dropped while it was in force, whichever rule dropped it.
func TestDropsBelongToThePartitionsInForce(t *testing.T) {
	b, ctx := newTestbed(t), t.Context()
	l := model.Link{Src: "n1", Dst: "n2"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	counts := func(id uint32, want uint64) {
		t.Helper()
		all, err := b.DropsBy(ctx, id)
		by := model.ByLink(all)
		if n := by[l] + by[l.Reverse()]; err != nil || n != want {
			t.Errorf("partition %d: %v dropped, want %d: %v", id, by, want, err)
		}
	}
	tcp := partial("n1", "n2", model.Traffic{Proto: "tcp"})
	must(b.Cut(ctx, 1, tcp))
	b.agents["n1"].drop(t, l, "tcp", 10) // before anybody else asks for a cut, and nobody looks
	must(b.Cut(ctx, 2, partial("n1", "n2")))
	b.agents["n1"].drop(t, l, "tcp", 3)
	b.agents["n1"].drop(t, l, "", 5)
	must(b.Cut(ctx, 4, partial("n1", "n3")))
	if by := b.CountedFor([]model.Link{l}, partial("n1", "n2").ProbePackets())[l]; fmt.Sprint(by) != "[[2] [1 2] [1 2]]" { // ARP, TCP twice
		t.Errorf("probe packets count for %v", by)
	}
	for id := uint32(1); id <= 2; id++ {
		all, err := b.DropsBy(ctx, id)
		for _, d := range all {
			if d.Shared != (id == 2 && strings.Contains(d.Rule, "tcp")) {
				t.Errorf("partition %d, %+v: want shared what the older one counts too", id, d)
			}
		}
		must(err)
	}
	must(b.Heal(ctx, 4))
	b.agents["n2"].drop(t, l, "", 2) // at the receiver
	counts(2, 10)
	counts(1, 13) // TCP alone
	b.agents["n1"].drop(t, l, "", 1)
	b.agents["n1"].drop(t, l, "tcp", 1)
	must(b.Cut(ctx, 3, tcp)) // which changes no rule
	b.agents["n1"].drop(t, l, "tcp", 1)
	counts(3, 1)
	counts(2, 13)
	must(b.Heal(ctx, 2))
	must(b.Heal(ctx, 3))
	b.agents["n1"].drop(t, l, "tcp", 1)
	counts(1, 16)
	b.agents["n1"].mu.Lock()
	for k := range b.agents["n1"].dropped {
		b.agents["n1"].dropped[k] = 0 // its rules were made anew
	}
	b.agents["n1"].mu.Unlock()
	counts(1, 16)
	if all, err := b.DropsBy(ctx, 1); err != nil || model.ByLink(all)[l] != 16 || model.ByLink(all)[l.Reverse()] != 0 {
		t.Errorf("%v, %v", all, err)
	}
	must(b.Heal(ctx, 1))
	must(b.Heal(ctx, 1))
	for name, a := range b.agents {
		if len(a.rules) != 0 {
			t.Errorf("%s is left with %v", name, a.rules)
		}
	}
	if _, err := b.DropsBy(ctx, 1); err == nil {
		t.Error("a healed partition still counts")
	}
	if len(b.lost) > 0 {
		t.Error(<-b.lost)
	}
}

// TestEachRuleCountsItsOwnProbePacket: what one end or one rule has counted shows
// nothing of another.
func TestEachRuleCountsItsOwnProbePacket(t *testing.T) {
	b, ctx := newTestbed(t), t.Context()
	l := model.Link{Src: "n1", Dst: "n2"}
	p := partial("n1", "n2")
	if err := b.Cut(ctx, 1, p); err != nil {
		t.Fatal(err)
	}
	of := p.ProbePackets() // ARP to everybody, TCP, TCP over IPv6
	past := of[1]
	past.Past = true
	of = append(of, past)
	count := func(host model.NodeID, rule string) {
		b.agents[host].mu.Lock()
		defer b.agents[host].mu.Unlock()
		b.agents[host].dropped[rule]++
	}
	expect := func(what string, want ...uint64) {
		t.Helper()
		by, err := b.Drops(ctx, 1, of)
		if err != nil || len(by[l]) != len(want) {
			t.Fatalf("%s: %v, %v", what, by, err)
		}
		for i, n := range want {
			if m := by[l][i]; m.Packets != n || m.Rule == "" {
				t.Errorf("%s: probe packet %d: %+v, want %d", what, i, m, n)
			}
		}
	}
	expect("nothing yet", 0, 0, 0, 0)
	count("n1", "egress arp daddr ip 10.0.0.2")
	expect("ARP at the sender", 1, 0, 0, 0)
	count("n1", "egress ether daddr 02:00:00:00:00:02")
	expect("the receiver's MAC at the sender", 1, 1, 1, 0)
	count("n2", "ingress ether saddr 02:00:00:00:00:01")
	expect("the sender's MAC at the receiver", 1, 1, 1, 1)
	count("n1", "egress ip daddr 10.0.0.2") // as behind a router
	expect("the receiver's address at the sender", 1, 2, 1, 1)
	if _, err := b.Drops(ctx, 2, of); err == nil {
		t.Error("a partition that is not in force counts")
	}
}

// TestAnAgentThatTakesLongToStart: a cut does not wait for all of it, but says so;
// it is started once, and a later cut finds it.
func TestAnAgentThatTakesLongToStart(t *testing.T) {
	b, ctx := newTestbed(t), t.Context()
	b.cfg.timeout = 200 * time.Millisecond
	old, start, started, started2 := b.cfg.Agent, make(chan struct{}), make(chan context.Context, 10), new(fake)
	b.agents["n2"].fail(errors.New("gone"))
	b.cfg.Agent = func(ctx context.Context, h model.NodeID) (Agent, error) {
		if h != "n2" {
			return old(ctx, h)
		}
		started <- ctx
		<-start
		return started2, ctx.Err()
	}
	for range 2 {
		began := time.Now()
		if err := b.Cut(ctx, 1, partial("n1", "n2")); err == nil || !strings.Contains(err.Error(), "host n2: its agent died and is being restarted") {
			t.Fatalf("%v", err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	}
	if len(started) != 1 {
		t.Errorf("%d starts", len(started))
	}
	close(start)
	for end := time.Now().Add(20 * time.Second); ; {
		err := b.Cut(ctx, 1, partial("n1", "n2"))
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if len(started2.rules) == 0 {
		t.Error("the new agent has no rules")
	}
	if (<-started).Err() != nil {
		t.Error("the start was given up with the cut that asked for it")
	}
	left, ended := make(chan struct{}), new(atomic.Bool)
	b.cfg.Agent = func(ctx context.Context, h model.NodeID) (Agent, error) {
		if h == "n3" {
			close(left)
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
			}
			time.Sleep(50 * time.Millisecond)
			ended.Store(ctx.Err() != nil)
		}
		return nil, errors.New("gone")
	}
	if err := b.Cut(ctx, 2, partial("n3", "n4")); err == nil {
		t.Error("cut without agents")
	}
	<-left
	if b.Close(); !ended.Load() {
		t.Error("Close does not end a start that is under way, or does not wait for its end")
	}
}

// TestARefusedCutIsUndone on the hosts that took it, and takes no other with it.
func TestARefusedCutIsUndone(t *testing.T) {
	b, ctx := newTestbed(t), t.Context()
	if err := b.Cut(ctx, 1, partial("n1", "n3")); err != nil {
		t.Fatal(err)
	}
	b.agents["n2"].fail(errors.New("host n2: no"))
	if err := b.Cut(ctx, 2, partial("n1", "n2")); err == nil || !strings.Contains(err.Error(), "n2") {
		t.Fatal(err)
	}
	for _, r := range b.agents["n1"].rules {
		if r.Link.Src == "n2" || r.Link.Dst == "n2" {
			t.Errorf("left: %s", r.Key())
		}
	}
	if len(b.agents["n1"].rules) == 0 {
		t.Error("the other partition is gone")
	}
	b.agents["n2"].fail(nil)
	if err := b.Cut(ctx, 3, partial("n1", "n2")); err != nil {
		t.Error(err)
	}
	for len(b.lost) > 0 { // n2 could not be asked to undo it
		<-b.lost
	}
	b.agents["n2"].refuse(1) // and keeps the rules of the partition before
	if err := b.Cut(ctx, 4, partial("n2", "n3")); err == nil {
		t.Error("a host refused")
	}
	if len(b.lost) > 0 {
		t.Errorf("nothing was lost: %v", <-b.lost)
	}
}

// TestATableThatWasGivenUpIsTold: its rules are put back with the cut that met it, and
// were away until then.
func TestATableThatWasGivenUpIsTold(t *testing.T) {
	b, ctx := newTestbed(t), t.Context()
	if err := b.Cut(ctx, 1, partial("n1", "n2")); err != nil {
		t.Fatal(err)
	}
	b.agents["n2"].mu.Lock()
	b.agents["n2"].givesUp = true
	b.agents["n2"].mu.Unlock()
	if err := b.Cut(ctx, 2, partial("n2", "n3")); err == nil || !strings.Contains(err.Error(), "given up") {
		t.Fatal(err)
	}
	if len(b.lost) != 1 {
		t.Fatalf("told %d times", len(b.lost))
	}
	if err := <-b.lost; !strings.Contains(err.Error(), "host n2 lost its rules") {
		t.Error(err)
	}
	if len(b.agents["n2"].rules) == 0 {
		t.Error("the rules were not put back")
	}
	for _, err := range []error{b.Heal(ctx, 1), b.Cut(ctx, 3, partial("n2", "n3")), b.Heal(ctx, 3)} {
		if err != nil {
			t.Error(err)
		}
	}
	if len(b.lost) > 0 {
		t.Errorf("told again: %v", <-b.lost)
	}
}

// TestLostRulesAreTold once, however often it is tried to renew them.
func TestLostRulesAreTold(t *testing.T) {
	b, ctx := newTestbed(t), t.Context()
	if err := b.Cut(ctx, 1, partial("n1", "n2")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(30 * time.Millisecond)
	if a := b.agents["n3"]; a.renewed != 0 {
		t.Error("a host without rules was told to renew them")
	}
	b.agents["n2"].fail(nft.ErrExpired)
	if err := <-b.lost; !errors.Is(err, nft.ErrExpired) {
		t.Error(err)
	}
	if _, err := b.DropsBy(ctx, 1); err == nil || !strings.Contains(err.Error(), "n2") {
		t.Errorf("counts of rules that are lost: %v", err)
	}
	b.agents["n2"].fail(nil)
	if err := b.Heal(ctx, 1); err != nil {
		t.Error(err)
	}
	time.Sleep(30 * time.Millisecond)
	if len(b.lost) > 0 {
		t.Errorf("told again: %v", <-b.lost)
	}
	// An agent that was started anew has no rules: those of another partition go.
	if err := b.Cut(ctx, 2, partial("n1", "n2")); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.agents["n2"] = new(fake)
	b.mu.Unlock()
	if err := b.Cut(ctx, 3, partial("n2", "n3")); err != nil {
		t.Fatal(err)
	}
	if err := <-b.lost; !strings.Contains(err.Error(), "host n2: its agent died") {
		t.Error(err)
	}
	// Nor is it told again when it is given the rules of what goes on.
	b.agents["n2"].fail(nft.ErrExpired)
	<-b.lost
	b.mu.Lock()
	b.agents["n2"] = new(fake)
	b.mu.Unlock()
	if err := b.Heal(ctx, 2); err != nil {
		t.Error(err)
	}
	if len(b.lost) > 0 || len(b.agents["n2"].rules) == 0 {
		t.Errorf("told %d times more, rules %v", len(b.lost), b.agents["n2"].rules)
	}
}

// TestACutThatNeedsNoRuleMeetsADeadAgent: the one that was started in its place is
// given the rules, and those before are told to be lost.
func TestACutThatNeedsNoRuleMeetsADeadAgent(t *testing.T) {
	b, ctx := newTestbed(t), t.Context()
	if err := b.Cut(ctx, 1, partial("n1", "n2")); err != nil {
		t.Fatal(err)
	}
	dead := b.agents["n2"]
	b.mu.Lock()
	b.agents["n2"] = new(fake)
	b.mu.Unlock()
	dead.fail(errors.New("host n2: its agent died"))
	if err := b.Cut(ctx, 2, partial("n2", "n1")); err != nil {
		t.Error(err)
	}
	if len(b.agents["n2"].rules) == 0 {
		t.Error("the agent that is there now has no rules")
	}
	if err := <-b.lost; !strings.Contains(err.Error(), "its agent died") {
		t.Error(err)
	}
	if len(b.lost) > 0 {
		t.Errorf("told again: %v", <-b.lost)
	}
}

// TestCountsOutliveAQuestionThatFailed: the agent that did not answer has its rules,
// and what they dropped counts.
func TestCountsOutliveAQuestionThatFailed(t *testing.T) {
	b, ctx := newTestbed(t), t.Context()
	if err := b.Cut(ctx, 1, partial("n1", "n2")); err != nil {
		t.Fatal(err)
	}
	a := b.agents["n2"]
	a.drop(t, model.Link{Src: "n1", Dst: "n2"}, "", 7)
	mute := func(err error) { a.mu.Lock(); a.mute = err; a.mu.Unlock() }
	mute(errors.New("host n2: no answer in time"))
	if err := b.Cut(ctx, 2, partial("n2", "n1")); err == nil || !strings.Contains(err.Error(), "no answer in time") {
		t.Error(err)
	}
	mute(nil)
	n := uint64(0)
	drops, err := b.DropsBy(ctx, 1)
	for _, d := range drops {
		n += d.Packets
	}
	if err != nil || n != 7 || len(b.lost) > 0 {
		t.Errorf("%d dropped, %v; told %d times", n, err, len(b.lost))
	}
}

// TestKeptUntil: what is cut is kept for a lease after it was last renewed, by hosts
// that answer.
func TestKeptUntil(t *testing.T) {
	b, p := newTestbed(t), partial("n1", "n2")
	before := time.Now()
	if err := b.Cut(t.Context(), 1, p); err != nil {
		t.Fatal(err)
	}
	first, err := b.LeaseExpiry(p)
	if err != nil || first.Before(before.Add(5*time.Second)) {
		t.Errorf("cut %v ago, kept until %v from now: %v", time.Since(before), time.Until(first), err)
	}
	until := func(what string, ok func(time.Time, error) bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			u, err := b.LeaseExpiry(p)
			if ok(u, err) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: not within 20 s: until %v, %v", what, u, err)
			}
		}
	}
	until("renewed", func(u time.Time, err error) bool { return err == nil && u.After(first) })
	b.agents["n3"].fail(errors.New("gone"))
	if _, err := b.LeaseExpiry(p); err != nil {
		t.Errorf("a host that has no part in it is gone: %v", err)
	}
	b.agents["n2"].fail(errors.New("gone"))
	until("n2 lost", func(_ time.Time, err error) bool { return err != nil && strings.Contains(err.Error(), "host n2") })
}

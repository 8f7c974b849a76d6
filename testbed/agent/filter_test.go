package agent

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"netsplit/flowrules/hostrules"
	"netsplit/model"
	"netsplit/testbed/nft"
)

// TestWhatAHostDropsHasNotArrived: what rules at ingress drop is not counted as
// arrived, and the rules end with their lease and with the agent.
func TestWhatAHostDropsHasNotArrived(t *testing.T) {
	h, ours, theirs := pair(t)
	c := start(t, h)
	ctx := context.Background()
	if err := c.Renew(ctx, time.Minute); err == nil {
		t.Error("renewed rules that were never set")
	}
	rules := []hostrules.Rule{{Hook: hostrules.Ingress, Link: model.Link{Src: "n1", Dst: "n2"}, Match: hostrules.Match{IP: ours}}}
	// count sends three packets and says how many of them arrive: it waits for
	// those it wants, and a while for those it does not.
	count := func(want int) int {
		t.Helper()
		from := time.Now()
		send(t, ours, theirs, 3)
		for wait := 0; ; wait++ {
			n, err := c.CountFrom(ctx, Sender{Addrs: []netip.Addr{ours}, Only: []model.Traffic{{Proto: "udp"}}}, from, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if want > 0 && n.Packets >= want || want == 0 && wait == 10 || wait == 250 {
				return n.Packets
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	if n := count(3); n != 3 {
		t.Fatalf("%d of 3 packets arrived without rules", n)
	}
	if _, err := c.Filter(ctx, "netsplit-agent", theirs, rules, time.Minute); err != nil {
		t.Fatal(err)
	}
	if n := count(0); n != 0 {
		t.Errorf("%d packets arrived", n)
	}
	dropped, err := c.Dropped(ctx)
	if n := dropped[rules[0].Key()]; err != nil || n < 3 {
		t.Errorf("%d of 3 packets were dropped: %v", n, err)
	}
	const lease = 100 * time.Millisecond
	if err := c.Renew(ctx, lease); err != nil {
		t.Fatal(err)
	}
	time.Sleep(lease)
	if n := count(3); n != 3 {
		t.Errorf("%d of 3 packets arrived after the lease", n)
	}
	if err := c.Renew(ctx, lease); !errors.Is(err, nft.ErrExpired) {
		t.Errorf("renewed after the lease: %v", err)
	}
	if before, err := c.Filter(ctx, "netsplit-agent", theirs, rules, time.Minute); !errors.Is(err, nft.ErrExpired) || before[rules[0].Key()] < 3 {
		t.Errorf("set after the lease: %v, %v", before, err)
	}
	if n := count(0); n != 0 {
		t.Errorf("%d packets arrived", n)
	}
	// The table of an agent that is killed goes with it: the next one makes its own.
	c.kill()
	next := start(t, h)
	if _, err := next.Filter(ctx, "netsplit-agent", theirs, nil, lease); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(5 * time.Second); !errors.Is(c.Err(), ErrGone); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a killed agent: %v", c.Err())
		}
	}
}

// Rules that are worked on behind those that were asked for later, as a cut behind
// its undoing, are refused.
func TestRulesThatComeTooLateAreRefused(t *testing.T) {
	h, ours, theirs := pair(t)
	c := start(t, h)
	rules := hostrules.Compile("n1", []hostrules.Host{{Name: "n1", IP: theirs}, {Name: "far", IP: ours}},
		[]model.Partition{{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"n1"}, {"far"}}}})
	if len(rules) == 0 {
		t.Fatal("a cut without rules")
	}
	answer := make(chan response, 1)
	c.mu.Lock()
	c.next++
	late := request{ID: c.next, Op: opFilter, Filter: &filter{Table: "netsplit-agent", Addr: theirs, Rules: rules, Lease: time.Minute}}
	c.waiting[late.ID] = answer
	c.mu.Unlock()
	if _, err := c.Filter(t.Context(), "netsplit-agent", theirs, nil, time.Minute); err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(late)
	if err == nil {
		err = c.write(t.Context(), append(line, '\n'))
	}
	if err != nil {
		t.Fatal(err)
	}
	if r := <-answer; !strings.Contains(r.Error, "too late") {
		t.Errorf("%+v", r)
	}
	from := time.Now()
	send(t, ours, theirs, 3)
	n, err := c.CountFrom(t.Context(), Sender{Addrs: []netip.Addr{ours}, Only: []model.Traffic{{Proto: "udp"}}}, from, time.Now().Add(50*time.Millisecond))
	if err != nil || n.Packets != 3 {
		t.Errorf("%+v, %v: want 3 packets", n, err)
	}
}

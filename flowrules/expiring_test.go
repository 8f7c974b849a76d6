package flowrules_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"netsplit/flowrules"
)

// TestWhatExpiresFollowsTheMessages: after each step from one plan to another, what
// is to be renewed is what the switch holds and what expires.
func TestWhatExpiresFollowsTheMessages(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 7))
		hosts := randomHosts(r)
		old, want := randomWorld(r, hosts).plan(t), randomWorld(r, hosts).plan(t)
		sw := newSwitch(hosts)
		turn(t, sw, old, 1, nil)
		e := old.Expiring(state(sw))
		for _, s := range flowrules.Diff(state(sw), want).Steps {
			e.Follow(s.Mods)
			for _, m := range s.Mods {
				do(t, sw, m)
			}
			n := 0
			for _, f := range sw.Flows() {
				if f.HardTimeout == 0 {
					continue
				}
				if n++; e[flowrules.KeyOf(f)] == nil || e[flowrules.KeyOf(f)].Cookie != f.Cookie {
					t.Fatalf("seed %d: after %s this is not renewed: %v", seed, s.Name, f)
				}
			}
			if len(e) != n {
				t.Fatalf("seed %d: after %s %d rules are renewed, %d expire", seed, s.Name, len(e), n)
			}
		}
		if got, all := fmt.Sprint(e.Renew()), fmt.Sprint(want.Expiring(want.State()).Renew()); got != all {
			t.Fatalf("seed %d: renewed: %s\nwant %s", seed, got, all)
		}
		if e.Keep(flowrules.Plan{}); len(e) != 0 {
			t.Errorf("kept without being wanted: %v", e.Renew())
		}
	}
}

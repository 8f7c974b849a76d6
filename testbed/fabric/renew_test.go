package fabric_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netsplit/controller/of13"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

// isolate4 cuts what TestASlowSwitchHoldsItsCuts does not look at.
var isolate4 = model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"s1h4"}, {"s1h2"}}}

// Whatever the switch takes long to answer about, what is cut there stays cut for
// longer than its rules live.
func TestASlowSwitchHoldsItsCuts(t *testing.T) {
	const life = 2 * time.Second
	late := func(f func(of13.Message) bool) func(of13.Message) time.Duration {
		return func(m of13.Message) time.Duration {
			if f(m) {
				return 2 * life
			}
			return 0
		}
	}
	for _, c := range []struct {
		what string
		slow func(of13.Message) bool
		ask  func(*rig) error // that waits for the switch; nil: the fabric does by itself
	}{
		{"reading the table back", func(m of13.Message) bool {
			r, ok := m.(*of13.MultipartRequest)
			return ok && r.Type == of13.MultipartFlow
		}, nil},
		{"installing taps", isBarrier, func(r *rig) error {
			return r.f.SetTaps(soon(r.t), []fabric.Pair{{A: "s1h3", B: "s1h4"}}, nil)
		}},
		{"counting", isBarrier, func(r *rig) error { _, err := r.f.Drops(soon(r.t), 5, nil); return err }},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check := time.Hour
				if c.ask == nil {
					check = 100 * time.Millisecond
				}
				r := newRig(t, fabric.Config{HardTimeout: life, Timeout: 5 * life}.Every(200*time.Millisecond, check), 1)
				if err := r.f.Cut(soon(t), 5, isolate1); err != nil {
					t.Fatal(err)
				}
				r.slow(late(c.slow))
				if c.ask != nil {
					go c.ask(r) // its answer comes too late for this test
				}
				for end := time.Now().Add(2 * life); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
					if r.ports(1, 1, 2) != "" {
						t.Fatal("the cut went away while it was to be in force")
					}
				}
				r.slow(nil)
				if got := r.reports(); len(got) > 0 {
					t.Errorf("reported as somebody else's doing: %v", got)
				}
			})
		})
	}
}

func isBarrier(m of13.Message) bool { _, ok := m.(*of13.BarrierRequest); return ok }

// What a switch was told of a cut that failed is not renewed, nor what it was told
// to remove and does not answer about.
func TestWhatIsNotWantedExpiresOnASlowSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fabric.Config{HardTimeout: 2 * time.Second, Timeout: 300 * time.Millisecond}.Every(200*time.Millisecond, time.Hour), 1)
		if err := r.f.Cut(soon(t), 5, isolate1); err != nil {
			t.Fatal(err)
		}
		r.slow(func(of13.Message) time.Duration { return time.Hour })
		if err := r.f.Cut(soon(t), 6, isolate4); err == nil {
			t.Fatal("a cut that the switch does not confirm succeeded")
		}
		if err := r.f.Heal(soon(t), 5); err == nil {
			t.Fatal("a heal that the switch does not confirm succeeded")
		}
		r.until("both are gone", func() bool { return r.ports(1, 1, 2) == "2" && r.ports(1, 4, 2) == "2" })
	})
}

// TestRulesThatAreBeingInstalledAreTold: a switch that has just connected forwards nothing yet, and
// a daemon that says it is well would have its user send packets into that.
func TestRulesThatAreBeingInstalledAreTold(t *testing.T) {
	r := newRig(t, fabric.Config{Timeout: time.Minute}, 1)
	if got := r.f.Refused(); len(got) > 0 {
		t.Errorf("ready, and refused: %v", got)
	}
	r.pipes[1].Close()
	r.until("gone", func() bool { return len(r.c.Switches()) == 0 })
	held := make(chan struct{})
	confirm := sync.OnceFunc(func() { close(held) })
	t.Cleanup(confirm)
	r.slow(func(m of13.Message) time.Duration {
		if isBarrier(m) {
			<-held
		}
		return 0
	})
	r.connect(1)
	r.until("told", func() bool {
		got := r.f.Refused()
		return len(got) == 1 && strings.Contains(got[0].Error(), "switch 0000000000000001: rules are being installed")
	})
	confirm()
	r.until("installed", func() bool { return len(r.f.Refused()) == 0 })
}

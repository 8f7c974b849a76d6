package fabric_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netsplit/controller/of13"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

// TestSlaveCanDoNothing: another controller becomes master while we cut. What
// we cut expires, nothing is begun, and it comes back with the role.
func TestSlaveCanDoNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		demoted := make(chan error, 10)
		r := newRig(t, fabric.Config{HardTimeout: time.Second,
			Events: fabric.Events{Demoted: func(_ model.DatapathID, err error) { demoted <- err }}}.Every(200*time.Millisecond, 100*time.Millisecond), 1)
		if err := r.f.Cut(soon(t), 5, isolate1); err != nil {
			t.Fatal(err)
		}
		r.sw[1].Demote(1 << 40)
		select {
		case err := <-demoted:
			if !errors.Is(err, fabric.ErrSlave) || !strings.Contains(err.Error(), "stop that controller") {
				t.Errorf("demoted: %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("nobody was told of the demotion within 5 s")
		}
		for what, err := range map[string]error{
			"cut":     r.f.Cut(soon(t), 6, model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"s1h3"}, {"s1h4"}}}),
			"release": r.f.Release(frame(1, 1, 2, "x"), ""),
			"flood":   r.f.Release(append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, frame(1, 1, 2, "x")[6:]...), ""),
			"count":   func() error { _, err := r.f.DropsBy(soon(t), 5); return err }(),
		} {
			if !errors.Is(err, fabric.ErrSlave) {
				t.Errorf("%s as slave: %v", what, err)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if err := r.f.Ready(ctx); !errors.Is(err, fabric.ErrSlave) {
			t.Errorf("ready as slave: %v", err)
		}
		r.until("the cut expired", func() bool { return r.ports(1, 1, 2) == "2" })
		if n := len(r.reports()); n != 0 {
			t.Errorf("what expired is called tampering: %v", r.reports())
		}

		if err := r.f.Claim(soon(t)); err != nil {
			t.Fatal(err)
		}
		if err := r.f.Ready(soon(t)); err != nil {
			t.Fatal(err)
		}
		if role := r.c.Switch(1).Role(); role != of13.RoleMaster {
			t.Errorf("role %v after it was asked for", role)
		}
		r.expect("cut is back", 1, 1, 2, "")
		r.expect("the failed cut is not", 1, 4, 3, "3")
		if n := len(r.reports()); n != 0 {
			t.Errorf("what expired is called tampering: %v", r.reports())
		}
	})
}

// TestCloseAsSlaveSaysWhatStays: rules that do not expire cannot be removed.
func TestCloseAsSlaveSaysWhatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fabric.Config{}.Every(50*time.Millisecond, 0), 1)
		r.sw[1].Demote(1 << 40)
		r.until("noticed", func() bool { return r.c.Switch(1).Role() == of13.RoleSlave })
		if err := r.f.Close(); !errors.Is(err, fabric.ErrSlave) || !strings.Contains(err.Error(), "our rules stay") {
			t.Errorf("%v", err)
		}
	})
}

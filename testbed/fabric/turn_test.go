package fabric_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/testbed/fabric"
)

// counts says whether a message reads the counters of some rules, not the whole table.
func counts(m of13.Message) bool {
	q, ok := m.(*of13.MultipartRequest)
	if !ok {
		return false
	}
	f, ok := q.Body.(*of13.FlowStatsRequest)
	return ok && q.Type == of13.MultipartFlow && f.CookieMask == flowrules.MaskKind
}

// TestNobodyWaitsForARead: while the counters of a partition are read, from a switch that
// does not tell them, others are cut, and that one heals.
func TestNobodyWaitsForARead(t *testing.T) {
	r := newRig(t, fabric.Config{Timeout: time.Minute}.Every(0, time.Hour), 1)
	ctx := soon(t)
	if err := r.f.Cut(ctx, 1, pair12); err != nil {
		t.Fatal(err)
	}
	reads := make(chan struct{}, 10)
	r.slow(func(m of13.Message) time.Duration {
		if !counts(m) {
			return 0
		}
		reads <- struct{}{}
		return time.Hour
	})
	rctx, stop := context.WithCancel(ctx)
	read := make(chan error, 1)
	go func() {
		_, err := r.f.DropsBy(rctx, 1)
		read <- err
	}()
	<-reads
	if err := r.f.Heal(ctx, 1); err != nil {
		t.Errorf("the heal: %v", err)
	}
	if err := r.f.Cut(ctx, 2, pair12); err != nil {
		t.Errorf("another cut: %v", err)
	}
	select {
	case err := <-read:
		t.Errorf("the read ended by itself: %v", err)
	default:
	}
	stop()
	if err := <-read; !errors.Is(err, context.Canceled) {
		t.Errorf("the read ended with %v", err)
	}
}

// TestWhoWaitsLooksAtTheTime: what has to wait for a change that a switch does not
// confirm gives up when its time is over; a heal is carried out all the same, later.
func TestWhoWaitsLooksAtTheTime(t *testing.T) {
	r := newRig(t, fabric.Config{Timeout: time.Minute}.Every(0, time.Hour), 1)
	ctx := soon(t)
	if err := r.f.Cut(ctx, 1, pair12); err != nil {
		t.Fatal(err)
	}
	barriers := make(chan struct{}, 100)
	r.slow(func(m of13.Message) time.Duration {
		if _, ok := m.(*of13.BarrierRequest); !ok {
			return 0
		}
		barriers <- struct{}{}
		return time.Hour
	})
	long, stop := context.WithCancel(ctx)
	first := make(chan error, 1)
	go func() { first <- r.f.Cut(long, 2, pair12) }()
	<-barriers
	for what, do := range map[string]func(context.Context) error{
		"a cut":  func(ctx context.Context) error { return r.f.Cut(ctx, 3, pair12) },
		"a heal": func(ctx context.Context) error { return r.f.Heal(ctx, 1) },
		"a read": func(ctx context.Context) error { _, err := r.f.DropsBy(ctx, 1); return err },
		"taps":   func(ctx context.Context) error { return r.f.SetTaps(ctx, nil, nil) },
	} {
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		if err := do(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s that has to wait ends with %v", what, err)
		}
		cancel()
	}
	r.slow(nil)
	stop()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first change ended with %v", err)
	}
	for { // the heal comes through by itself
		if _, err := r.f.DropsBy(ctx, 1); err != nil {
			if ctx.Err() != nil {
				t.Errorf("the partition is not healed: %v", err)
			}
			return
		}
		time.Sleep(time.Millisecond)
	}
}

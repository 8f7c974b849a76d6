package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"time"

	"netsplit/inference/tap"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

// Pair is two hosts whose traffic a tap gives.
type Pair = fabric.Pair

// Run is the run under way on a testbed: it hears every frame that its tap gives,
// and what goes wrong. Its methods are called from several goroutines.
type Run interface {
	// Mirror takes a frame that the switch has forwarded already.
	Mirror(at time.Time, frame []byte)
	// Gate takes a frame that is held since it came from host. It is the
	// run's until Gate returns.
	Gate(host model.NodeID, at time.Time, frame []byte)
	// Fail is told why the run cannot be judged.
	Fail(format string, args ...any)
}

// under is the run under way; nil between runs.
func (b *Testbed) under() Run {
	if r := b.run.Load(); r != nil {
		return *r
	}
	return nil
}

// trouble tells the run under way why it cannot be judged.
func (b *Testbed) trouble(format string, args ...any) {
	if r := b.under(); r != nil {
		r.Fail(format, args...)
	}
}

// hasMirror: one mirror port sees all that there is to see, on a single switch only.
func (b *Testbed) hasMirror() bool {
	return len(b.Testbed.Mirrors) > 0 && len(b.Testbed.Switches()) == 1
}

// TapName says which tap a run uses. A script cuts without the gate, at line
// rate, and reads no message where there is no mirror port.
func (b *Testbed) TapName(sc *model.Scenario) string {
	switch {
	case b.hasMirror() && !sc.Faulty():
		return "mirror"
	case sc.Strategy == model.StrategyScripted:
		return "none"
	}
	return "gate"
}

// GateName is the transport of the gate; "" for another tap.
func (b *Testbed) GateName(tap string) string {
	if tap != "gate" {
		return ""
	}
	return b.fabric.Gate()
}

// HasGatePorts says why the gate cannot be by port on every switch; nil if it can.
func (b *Testbed) HasGatePorts() error { return b.fabric.CheckGatePorts() }

// UseGate changes the transport of the gate, between runs.
func (b *Testbed) UseGate(ctx context.Context, g model.Gate) error { return b.fabric.UseGate(ctx, g) }

// CheckGate enters what was lost at the gate, and what others did to the rules, into the
// run under way.
func (b *Testbed) CheckGate(ctx context.Context) error { return b.fabric.CheckGate(ctx) }

// Tap opens the taps of a run, which hears all until Calm. A run without a gate holds
// nothing: then held is mirrored, too. Without a mirror port only what is held is read.
func (b *Testbed) Tap(ctx context.Context, run Run, held, mirrored []Pair, sc *model.Scenario) error {
	b.run.Store(&run)
	name := b.TapName(sc)
	if name == "none" {
		return b.fabric.SetTaps(ctx, nil, nil)
	}
	if name != "gate" {
		held, mirrored = nil, slices.Concat(held, mirrored)
	}
	if !b.hasMirror() || len(mirrored) == 0 {
		return b.fabric.SetTaps(ctx, held, nil)
	}
	m := b.Testbed.Mirrors[0]
	r, err := tap.Open(m.Interface, m.Netns)
	if err != nil {
		return fmt.Errorf("open the mirror port: %w", err)
	}
	b.mirror = r
	read := run.Mirror
	if name == "gate" || sc.Strategy == model.StrategyScripted { // a script may take the gate: Hold
		a := &along{run: run, mirror: r, lag: alongLag}
		b.along.Store(a)
		read = a.read
	}
	rctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b.stop, b.read = cancel, make(chan struct{})
	go func() {
		defer close(b.read)
		defer func() {
			if p := recover(); p != nil {
				run.Fail("netsplit itself failed at a frame of the mirror port, please report it: %v\n%s", p, debug.Stack())
			}
		}()
		if err := r.Read(rctx, read); err != nil && rctx.Err() == nil {
			run.Fail("the mirror port can no longer be read: %v", err)
		}
	}()
	return b.fabric.SetTaps(ctx, held, mirrored)
}

// held hands a frame that the gate holds to the run under way.
func (b *Testbed) held(host model.NodeID, at time.Time, frame []byte) {
	r := b.under()
	switch a := b.along.Load(); {
	case r == nil:
	case a != nil:
		a.hold(host, at, frame)
	default:
		r.Gate(host, at, frame)
	}
}

// CheckMirror says what the mirror port has lost since the run began.
func (b *Testbed) CheckMirror() error {
	if b.mirror == nil {
		return nil
	}
	st, err := b.mirror.Stats()
	if err == nil && st.Dropped > 0 {
		err = fmt.Errorf("%d frames of the mirror port were lost: this machine was too slow to read them", st.Dropped)
	}
	return err
}

// Calm closes the taps: plain forwarding between all hosts, nothing held.
func (b *Testbed) Calm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := b.fabric.Flush(ctx)
	if a := b.along.Swap(nil); a != nil {
		a.close()
	}
	b.run.Store(nil)
	if b.mirror != nil {
		b.stop()
		<-b.read
		err = errors.Join(err, b.mirror.Close())
		b.mirror = nil
	}
	return err
}

// Receivers are the hosts for which the gate (held), or else the mirror port, gets the
// broadcasts and multicasts of a host.
func (b *Testbed) Receivers(from model.NodeID, held bool) []model.NodeID {
	return b.fabric.Receivers(from, held)
}

// Release sends a held frame on to its host.
func (b *Testbed) Release(frame []byte, to model.NodeID) error { return b.fabric.Release(frame, to) }

// fenceLimit is how long a switch may take to confirm a cut or a heal.
const fenceLimit = 2 * time.Second

// Cut puts the partition's drop rules behind the gate. The id in their cookies names them,
// also where they are not confirmed.
func (b *Testbed) Cut(p model.Partition) (id uint32, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), fenceLimit)
	defer cancel()
	id = b.ids.Add(1)
	return id, b.fabric.CutBehind(ctx, id, p)
}

// Heal takes them away.
func (b *Testbed) Heal(id uint32) error {
	ctx, cancel := context.WithTimeout(context.Background(), fenceLimit)
	defer cancel()
	return b.fabric.Heal(ctx, id)
}

// HostOf is the host that a hardware address belongs to, "" if none does.
func (b *Testbed) HostOf(mac [6]byte) model.NodeID {
	h, _ := b.fabric.HostOf(mac[:])
	return h
}

// MAC is the hardware address of a host.
func (b *Testbed) MAC(h model.NodeID) (net.HardwareAddr, bool) {
	m, ok := b.macs[h]
	return m, ok
}

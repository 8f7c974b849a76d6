package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"netsplit/inference/tap"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

// Pair is two hosts whose traffic a tap gives.
type Pair = fabric.Pair

// Run is the run under way on a bed: it hears every frame that its tap gives,
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
func (b *Testbed) HasGatePorts() error { return b.fabric.HasPorts() }

// UseGate changes the transport of the gate, between runs.
func (b *Testbed) UseGate(ctx context.Context, g model.Gate) error { return b.fabric.UseGate(ctx, g) }

// CheckGate enters what was lost at the gate into the run under way.
func (b *Testbed) CheckGate(ctx context.Context) error { return b.fabric.CheckGate(ctx) }

// Tap opens the tap of a run, which hears all until Calm.
func (b *Testbed) Tap(ctx context.Context, run Run, pairs []Pair, sc *model.Scenario) error {
	b.run.Store(&run)
	switch b.TapName(sc) {
	case "gate":
		return b.fabric.SetTaps(ctx, pairs, nil)
	case "none":
		return b.fabric.SetTaps(ctx, nil, nil)
	}
	m := b.Testbed.Mirrors[0]
	r, err := tap.Open(m.Interface, m.Netns)
	if err != nil {
		return fmt.Errorf("open the mirror port: %w", err)
	}
	b.mirror = r
	rctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b.stop, b.read = cancel, make(chan struct{})
	go func() {
		defer close(b.read)
		if err := r.Read(rctx, run.Mirror); err != nil && rctx.Err() == nil {
			run.Fail("the mirror port could not be read any more: %v", err)
		}
	}()
	return b.fabric.SetTaps(ctx, nil, pairs)
}

// Calm closes the taps: plain forwarding between all hosts, nothing held.
func (b *Testbed) Calm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := b.fabric.Flush(ctx)
	b.run.Store(nil)
	if b.mirror != nil {
		b.stop()
		<-b.read
		err = errors.Join(err, b.mirror.Close())
		b.mirror = nil
	}
	return err
}

// Receivers are the hosts that the tap has frames to many of a host for.
func (b *Testbed) Receivers(from model.NodeID) []model.NodeID { return b.fabric.Receivers(from) }

// Release sends a held frame on to its host.
func (b *Testbed) Release(frame []byte, to model.NodeID) error { return b.fabric.Release(frame, to) }

// fenceLimit is how long a switch may take to confirm a cut or a heal.
const fenceLimit = 2 * time.Second

// cutID is the id of a run's one cut at the gate in its rules' cookies; those at line
// rate have higher ones.
const cutID = 1

// Cut puts the partition's drop rules behind the gate.
func (b *Testbed) Cut(p model.Partition) error {
	ctx, cancel := context.WithTimeout(context.Background(), fenceLimit)
	defer cancel()
	return b.fabric.CutBehind(ctx, cutID, p)
}

// Heal takes them away.
func (b *Testbed) Heal() error {
	ctx, cancel := context.WithTimeout(context.Background(), fenceLimit)
	defer cancel()
	return b.fabric.Heal(ctx, cutID)
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

package fabric

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/model"
)

// tally counts since the fabric was made.
type tally struct{ held, released, injected, strays atomic.Uint64 }

// Counts of packets since the fabric was made.
type Counts struct {
	Held     uint64 // handed to PacketIn
	Released uint64 // sent on by Release
	Injected uint64 // sent by Inject
	Strays   uint64 // came to the controller or the gate port, but by no gate rule of ours
}

// Counts returns the counts so far.
func (f *Fabric) Counts() Counts {
	return Counts{Held: f.tally.held.Load(), Released: f.tally.released.Load(),
		Injected: f.tally.injected.Load(), Strays: f.tally.strays.Load()}
}

// Release sends a held frame to the port of host to. If to is "", the destination address
// decides: the frame goes to its owner, or for a group address to every other host that is
// linked with the sender. Release does not wait; frames leave in the order of the calls.
// The frame may be reused afterwards.
func (f *Fabric) Release(frame []byte, to model.NodeID) error {
	if err := f.send(frame, to); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	f.tally.released.Add(1)
	return nil
}

// Inject is Release for a frame that netsplit made.
func (f *Fabric) Inject(frame []byte, to model.NodeID) error {
	if err := f.send(frame, to); err != nil {
		return fmt.Errorf("inject: %w", err)
	}
	f.tally.injected.Add(1)
	return nil
}

func (f *Fabric) send(frame []byte, to model.NodeID) error {
	if len(frame) < 14 {
		return fmt.Errorf("frame of %d bytes: an Ethernet header has 14", len(frame))
	}
	if to == "" {
		dst := flowrules.MAC(frame[:6])
		owner, ok := f.byMAC[dst]
		if !ok {
			return f.flood(frame, dst)
		}
		to = owner
	}
	m := f.byHost[to]
	if m == nil {
		return fmt.Errorf("no host %q in the testbed", to)
	}
	port, known := m.at.Load().portOf[to]
	if !known {
		return fmt.Errorf("the port of host %s on switch %s is not known now", to, m.id)
	}
	return m.send(frame, port)
}

// send sends a frame out of ports, by the transport of the switch's gate. A gate port works
// without a session, but send does not use it while another controller is master.
func (m *member) send(frame []byte, ports ...of13.PortNo) error {
	sw, err := m.command()
	if errors.Is(err, ErrSlave) {
		return err
	}
	if m.viaPort.Load() {
		if at := m.at.Load(); at.gatePort == 0 {
			return fmt.Errorf("switch %s: %w: %w", m.id, ErrGateDown, at.wrong[m.line.where.Port])
		}
		for _, p := range ports {
			if err := m.line.send(uint16(p), frame); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	return sw.PacketOut(of13.PortController, frame, ports...)
}

func (f *Fabric) flood(frame []byte, dst flowrules.MAC) error {
	from, ok := f.byMAC[flowrules.MAC(frame[6:12])]
	if !ok || dst[0]&1 == 0 {
		return fmt.Errorf("no host of the testbed has the destination address %v, and the frame is no broadcast of a host of the testbed: name the host that it goes to", dst)
	}
	own := f.byHost[from]
	for _, m := range f.members {
		if _, linked := own.route.Via[m.id]; m != own && !linked {
			continue
		}
		var ports []of13.PortNo
		for _, h := range m.at.Load().in.Hosts {
			if h.Name != from && h.Via == 0 {
				ports = append(ports, of13.PortNo(h.Port))
			}
		}
		if len(ports) == 0 {
			continue
		}
		if err := m.send(frame, ports...); err != nil {
			return err
		}
	}
	return nil
}

// Receivers lists, sorted, the hosts with which a host is gated (held), or else those with
// which it is only mirrored. A tap gets one copy of the host's broadcasts and multicasts
// for all of these. The gate may release them to no others.
func (f *Fabric) Receivers(from model.NodeID, held bool) []model.NodeID {
	all := f.receivers.Load()
	switch {
	case all == nil:
		return nil
	case held:
		return all.gate[from]
	}
	return all.mirror[from]
}

// receivers are those of each tap, by sender.
type receivers struct {
	gate, mirror map[model.NodeID][]model.NodeID
}

// setReceivers follows the taps. When the last tap goes, it keeps the receivers: frames may
// still be on their way. f.mu is held.
func (f *Fabric) setReceivers() {
	if len(f.gate)+len(f.mirror) == 0 {
		return
	}
	gate := f.receiversOf(f.gate)
	mirror := f.receiversOf(f.mirror)
	for h, of := range mirror {
		mirror[h] = slices.DeleteFunc(of, func(o model.NodeID) bool { return slices.Contains(gate[h], o) })
	}
	f.receivers.Store(&receivers{gate, mirror})
}

func (f *Fabric) receiversOf(pairs []Pair) map[model.NodeID][]model.NodeID {
	all := map[model.NodeID][]model.NodeID{}
	for _, p := range pairs {
		a, b := f.byHost[p.A], f.byHost[p.B]
		if _, linked := a.route.Via[b.id]; a == b || linked {
			all[p.A], all[p.B] = append(all[p.A], p.B), append(all[p.B], p.A)
		}
	}
	for h := range all {
		slices.Sort(all[h])
		all[h] = slices.Compact(all[h])
	}
	return all
}

// HostOf is the host that owns the Ethernet address at the start of b: give it
// a frame for its destination, frame[6:] for its source.
func (f *Fabric) HostOf(b []byte) (model.NodeID, bool) {
	if len(b) < 6 {
		return "", false
	}
	h, ok := f.byMAC[flowrules.MAC(b[:6])]
	return h, ok
}

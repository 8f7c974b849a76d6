package fabric

import (
	"context"
	"errors"
	"fmt"

	"netsplit/controller"
)

// loss is what was lost at a gate port since it was opened.
type loss struct {
	kernel    uint64 // by the kernel in front of the reader
	truncated uint64
	port      uint64 // by the switch's port towards us
	counted   bool   // port was read once: what it had lost by then is older
	number    uint32 // of the port that was counted
}

func (l *line) checkLoss(ctx context.Context) error {
	l.checking.Lock()
	defer l.checking.Unlock()
	l.mu.Lock()
	p, before := l.port, l.lost
	l.mu.Unlock()
	if p == nil {
		return nil // told when it went down
	}
	s, err := p.Stats()
	if err != nil {
		return fmt.Errorf("switch %s: %w", l.m.id, err)
	}
	now := loss{kernel: s.Dropped, truncated: s.Truncated, number: l.m.at.Load().gatePort}
	if now.port, now.counted, err = l.portDrops(ctx, now.number); err != nil {
		return fmt.Errorf("switch %s: counters of gate port %v: %w", l.m.id, l.where.Port, err)
	}
	l.mu.Lock()
	if l.port == p {
		l.lost = now
	}
	l.mu.Unlock()
	if n := now.kernel - before.kernel; n > 0 {
		l.fault(fmt.Errorf("%d held packets were lost: the kernel had no room for more, netsplit was too slow", n))
	}
	if n := now.truncated - before.truncated; n > 0 {
		l.fault(fmt.Errorf("%d held packets were longer than can be read and came cut", n))
	}
	if before.counted && now.counted && before.number == now.number && now.port > before.port {
		l.fault(fmt.Errorf("%d held packets were lost: the switch could not send them out of port %v", now.port-before.port, l.where.Port))
	}
	return nil
}

// portDrops is how many packets the switch has counted that it was to send out
// of its gate port, by number, and did not. Switches need not count (OpenFlow 1.3 §7.3.5.6:
// all ones), nor answer; known is false then.
func (l *line) portDrops(ctx context.Context, gate uint32) (n uint64, known bool, err error) {
	sw := l.m.session()
	if sw == nil {
		return 0, false, nil // told when it went
	}
	stats, err := sw.PortStats(ctx)
	var refused *controller.SwitchError
	if errors.As(err, &refused) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	for _, s := range stats {
		if gate == 0 || uint32(s.Port) != gate {
			continue
		}
		for _, c := range []uint64{s.TxDropped, s.TxErrors} {
			if c != ^uint64(0) {
				n, known = n+c, true
			}
		}
	}
	return n, known, nil
}

// CheckGate reads back all flow tables, and tells by Events.GateFault what was lost at
// gate ports so far and was not told of yet.
func (f *Fabric) CheckGate(ctx context.Context) error {
	return f.each(ctx, func(ctx context.Context, m *member) error {
		if _, err := m.readAll(ctx); err != nil {
			return fmt.Errorf("switch %s: its rules could not be read back: %w", m.id, err)
		}
		if m.line == nil {
			return nil
		}
		return m.line.checkLoss(ctx)
	})
}

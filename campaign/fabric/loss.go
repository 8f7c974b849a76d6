package fabric

import (
	"context"
	"fmt"
)

// loss is what was lost at a gate port since it was opened.
type loss struct {
	kernel    uint64 // by the kernel in front of the reader
	truncated uint64
}

// checkLoss tells of frames that were lost at the gate port and not told of
// before.
func (l *line) checkLoss(_ context.Context) {
	l.checking.Lock()
	defer l.checking.Unlock()
	l.mu.Lock()
	p := l.port
	l.mu.Unlock()
	if p == nil {
		return // told when it went down
	}
	s, err := p.Stats()
	if err != nil {
		l.fault(fmt.Errorf("its losses cannot be counted: %w", err))
		return
	}
	now := loss{kernel: s.Dropped, truncated: s.Truncated}
	l.mu.Lock()
	before := l.lost
	l.lost = now
	l.mu.Unlock()
	if n := now.kernel - before.kernel; n > 0 {
		l.fault(fmt.Errorf("%d held packets were lost: the kernel had no room for more, netsplit was too slow", n))
	}
	if n := now.truncated - before.truncated; n > 0 {
		l.fault(fmt.Errorf("%d held packets were longer than can be read and came cut", n))
	}
}

// CheckGate tells by Events.GateFault what was lost at gate ports so far and
// was not told of yet.
func (f *Fabric) CheckGate(ctx context.Context) error {
	return f.each(ctx, func(ctx context.Context, m *member) error {
		if m.line != nil {
			m.line.checkLoss(ctx)
		}
		return nil
	})
}

package fabric

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"netsplit/flowrules"
	"netsplit/model"
)

// ErrDrained: rules of ours go missing on a switch again and again.
var ErrDrained = errors.New("our rules go missing again and again")

// drainedAfter is after how many readings that found rules missing, which had been put back,
// it is told.
const drainedAfter = 5

// drain counts readings that found rules missing. Open vSwitch whose table is full
// and has overflow_policy=evict takes a new rule and removes another one that has a
// timeout, as those that cut, without an error and without FLOW_REMOVED.
type drain struct{ n int }

// saw says whether it is to be told now. A reading that found all in its place takes
// back half of one that did not.
func (d *drain) saw(missing int) bool {
	if missing == 0 {
		d.n = max(0, d.n-1)
		return false
	}
	if d.n += 2; d.n < 2*drainedAfter {
		return false
	}
	d.n = 0
	return true
}

// drained is ErrDrained with what to do; have is what the switch holds of what was
// put back the last time. m.rules is held.
func (m *member) drained(have flowrules.State) error {
	held := map[string]bool{}
	for _, s := range have.Flows {
		held[flowrules.KeyOf(s)] = true
	}
	tables := map[uint8]int{}
	for _, r := range m.plan.Rules {
		if !held[r.Key()] {
			tables[r.Table]++
		}
	}
	where := ""
	for _, t := range slices.Sorted(maps.Keys(tables)) {
		where += fmt.Sprintf("; %d of table %d were missing", tables[t], t)
	}
	return fmt.Errorf("switch %s: %w, as they do where a flow table is full and evicts some for others: raise its flow_limit, or set overflow_policy=refuse, by which a cut that has no room is refused; if its tables have room, somebody else removes them%s",
		m.id, ErrDrained, where)
}

// Verify reads back the tables of the switches that keep a partition's rules, and
// says what was missing there, which is put back, or what goes round them
// (ErrInTheWay), which is somebody else's.
func (f *Fabric) Verify(ctx context.Context, p model.Partition) error {
	keep := map[*member]bool{}
	for _, l := range p.Links() {
		keep[f.byHost[l.Src]], keep[f.byHost[l.Dst]] = true, true
	}
	return f.each(ctx, func(ctx context.Context, m *member) error {
		if !keep[m] {
			return nil
		}
		repaired, err := m.readAll(ctx)
		if err != nil {
			return err
		}
		if !repaired {
			m.state.Lock()
			defer m.state.Unlock()
			return m.others.around
		}
		return errors.Join(fmt.Errorf("switch %s had lost rules of a cut; they were restored", m.id), f.lookAnew(ctx, m))
	})
}

// readAll reads back the whole table now, and says whether rules were put back.
func (m *member) readAll(ctx context.Context) (repaired bool, err error) {
	sw, err := m.command()
	if err != nil {
		return false, err
	}
	if err := m.located(sw); err != nil {
		return false, err
	}
	if err := m.rules.take(ctx); err != nil {
		return false, err
	}
	defer m.rules.Unlock()
	if err = m.readBack(ctx, sw, !m.unread(sw)); err != nil {
		m.check()
	}
	return m.repaired, err
}

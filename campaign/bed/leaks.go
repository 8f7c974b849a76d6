package bed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"netsplit/campaign/agent"
	"netsplit/model"
)

// Leaked is Arrived for a link whose packets are held at the gate, of which those were
// let go: however near the two moments they arrived, they did not come between.
func (b *Bed) Leaked(ctx context.Context, l model.Link, only []model.Traffic, from, to time.Time, released []agent.Released) (int, time.Time, error) {
	a := b.agents.of(l.Dst)
	src, ok := b.Testbed.Host(l.Src)
	if a == nil || !ok {
		return 0, time.Time{}, fmt.Errorf("no agent on host %s", l.Dst)
	}
	n, unsure := 0, error(nil)
	sender := agent.Sender{Addrs: []netip.Addr{src.IP}, MAC: b.macs[l.Src], Only: only, Released: released}
	if to.After(from) {
		c, err := a.CountFrom(ctx, sender, from, to)
		if err != nil {
			return 0, time.Time{}, err
		}
		n = c.Packets + c.Group
		if c.Incomplete {
			return n, time.Time{}, fmt.Errorf("the agent on host %s missed packets", l.Dst)
		}
		if c.Unsure > 0 {
			unsure = fmt.Errorf("host %s: %d packets that the gate is not known to have let go came so near the beginning or the end of the cut that its clock, known to %v, does not tell whether they came in it", l.Dst, c.Unsure, c.Within.Round(time.Microsecond))
		}
	}
	first, err := a.FirstFrom(ctx, sender, to)
	return n, first, errors.Join(unsure, err)
}

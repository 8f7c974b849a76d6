package nodes

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"netsplit/campaign/bed"
	"netsplit/campaign/target"
	"netsplit/model"
)

// Ask runs one of the target's probes on a host; commands know their host by name where
// the target wants that.
func (p *Processes) Ask(ctx context.Context, host model.NodeID, probe model.Probe) (string, error) {
	if len(probe.Command) > 0 {
		probe.Command = p.named(host, probe.Command)
	}
	return p.c.Bed.Ask(ctx, host, probe)
}

// holds asks every host of a condition and says whether it holds; if not, why.
func (p *Processes) holds(ctx context.Context, c model.Condition) (bool, string) {
	same := ""
	for i, h := range c.Hosts {
		mine, ok := p.condition(h, c.Name)
		if !ok {
			return false, fmt.Sprintf("%s is not known on %s", c.Name, h)
		}
		re, err := regexp.Compile(mine.Match)
		if err != nil {
			return false, fmt.Sprintf("%s on %s: %v", c.Name, h, err)
		}
		answer, err := p.Ask(ctx, h, mine.Probe)
		if err != nil {
			return false, fmt.Sprintf("%s on %s: %v", c.Name, h, err)
		}
		m := re.FindStringSubmatch(answer)
		if m == nil {
			return false, fmt.Sprintf("%s on %s: the answer does not match %s: %.120q", c.Name, h, mine.Match, answer)
		}
		group := re.SubexpIndex("same")
		if group < 0 {
			continue
		}
		if i == 0 {
			same = m[group]
		} else if m[group] != same {
			return false, fmt.Sprintf("%s: %s says %q and %s says %q", c.Name, c.Hosts[0], same, h, m[group])
		}
	}
	return true, ""
}

// settleEvery is the pause between two rounds of asking.
const settleEvery = 50 * time.Millisecond

// Conditions are the target's conditions with these names.
func (p *Processes) Conditions(names []string) []model.Condition {
	var out []model.Condition
	for _, c := range p.c.Kit.Target.Stable {
		if slices.Contains(names, c.Name) {
			out = append(out, c)
		}
	}
	return out
}

// Settle waits until all of the conditions hold at once, and nothing that also
// lists is pending, or until ctx ends; then it returns what was still pending.
func (p *Processes) Settle(ctx context.Context, all []model.Condition, also func() []string) []string {
	last := []string{"nothing was asked"}
	for {
		var pending []string
		for _, c := range all {
			if ok, why := p.holds(ctx, c); !ok {
				pending = append(pending, why)
				break
			}
		}
		if len(pending) == 0 && also != nil {
			pending = also()
		}
		if len(pending) == 0 {
			return nil
		}
		if ctx.Err() == nil {
			last = pending // not spoilt by an answer cut short at the limit
		}
		select {
		case <-ctx.Done():
			return last
		case <-time.After(settleEvery):
		}
	}
}

func joined(ss []string) string { return strings.Join(ss, "; ") }

// Holders asks who has a role of the target now, or one of the testbed file
// where the target has none of that name.
func (p *Processes) Holders(ctx context.Context, name string) (model.Holders, error) {
	role, ok := p.c.Kit.Target.Roles[name]
	if !ok {
		if _, ours := p.c.Bed.Testbed.Roles[name]; ours {
			return p.c.Bed.Holders(ctx, name)
		}
		_, err := target.RoleOf(p.c.Kit.Target, target.ExpandInput{}, name)
		return model.Holders{}, err
	}
	for _, h := range role.Hosts { // the same for all, but for what a host is called
		mine, err := target.RoleOf(p.c.Kit.Target, p.inputs[h], name)
		if err != nil {
			return model.Holders{}, err
		}
		role.Match = mine.Match
	}
	return bed.WhoHas(ctx, name, role, func(ctx context.Context, h model.NodeID, _ model.Probe) (string, error) {
		mine, err := target.RoleOf(p.c.Kit.Target, p.inputs[h], name)
		if err != nil {
			return "", err
		}
		return p.Ask(ctx, h, mine.Probe)
	})
}

package nodes

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/sut"
	"netsplit/testbed"
)

// Ask runs one of the target's probes on a host; commands know their host by name where
// the target wants that.
func (p *Processes) Ask(ctx context.Context, host model.NodeID, probe model.Probe) (string, error) {
	on, ok := p.c.Testbed.Testbed.Host(host)
	if len(probe.Command) == 0 || !ok {
		return p.c.Testbed.Ask(ctx, host, probe)
	}
	said := strings.Join(probe.Command, " ")
	argv, err := p.confined(on, p.c.Kit.Target.Rights, probe.Command)
	if err != nil {
		return "", err
	}
	probe.Command = p.named(host, argv)
	answer, err := p.c.Testbed.Ask(ctx, host, probe)
	if err != nil { // the user knows the command that he wrote
		err = fmt.Errorf("%s", strings.ReplaceAll(err.Error(), strings.Join(probe.Command, " "), said))
	}
	return answer, err
}

// AskQuiesce asks what the target's quiesce asks on a host.
func (p *Processes) AskQuiesce(ctx context.Context, host model.NodeID) error {
	plan := p.plans[host]
	if plan == nil || plan.Quiesce == nil || plan.Quiesce.Ask == nil {
		return nil
	}
	_, err := p.Ask(ctx, host, *plan.Quiesce.Ask)
	return err
}

// holds asks every host of a condition and says whether it holds; if not, why.
func (p *Processes) holds(ctx context.Context, c model.Condition) (bool, string) {
	var one agreement
	for _, h := range c.Hosts {
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
		if why := one.add(re, h, answer); why != "" {
			return false, c.Name + why
		}
	}
	return true, ""
}

// agreement is what the hosts of a condition have said so far for group same.
type agreement struct {
	host  model.NodeID // the first that said something; "" for none
	value string
}

// add enters a host's answer and says why the condition does not hold, "" if it
// may. An answer that matches by an alternative without the group agrees with
// all.
func (a *agreement) add(re *regexp.Regexp, host model.NodeID, answer string) (why string) {
	at := re.FindStringSubmatchIndex(answer)
	if at == nil {
		return fmt.Sprintf(" on %s: the answer does not match %s: %q", host, re, model.Excerpt(answer))
	}
	group := re.SubexpIndex("same")
	if group < 0 || at[2*group] < 0 {
		return ""
	}
	value := answer[at[2*group]:at[2*group+1]]
	if a.host == "" {
		a.host, a.value = host, value
	}
	if value != a.value {
		return fmt.Sprintf(": %s says %q and %s says %q", a.host, a.value, host, value)
	}
	return ""
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
		if _, ours := p.c.Testbed.Testbed.Roles[name]; ours {
			return p.c.Testbed.Holders(ctx, name)
		}
		_, err := sut.RoleOf(p.c.Kit.Target, sut.ExpandInput{}, name)
		return model.Holders{}, err
	}
	for _, h := range role.Hosts { // the same for all, but for what a host is called
		mine, err := sut.RoleOf(p.c.Kit.Target, p.inputs[h], name)
		if err != nil {
			return model.Holders{}, err
		}
		role.Match = mine.Match
	}
	return testbed.WhoHas(ctx, name, role, func(ctx context.Context, h model.NodeID, _ model.Probe) (string, error) {
		mine, err := sut.RoleOf(p.c.Kit.Target, p.inputs[h], name)
		if err != nil {
			return "", err
		}
		return p.Ask(ctx, h, mine.Probe)
	})
}

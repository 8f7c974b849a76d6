package campaign

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"netsplit/campaign/record"
	"netsplit/campaign/target"
	"netsplit/model"
)

// defaultProbeEvery is the interval of a probe that states none.
const defaultProbeEvery = 200 * time.Millisecond

// ask runs one of the target's probes; commands know their host by name where
// the target wants that.
func (r *run) ask(ctx context.Context, host model.NodeID, p model.Probe) (string, error) {
	if len(p.Command) > 0 {
		p.Command = r.procs.named(host, p.Command)
	}
	return r.bed.Ask(ctx, host, p)
}

// probes reads the target's probed variables on their intervals until ctx
// ends. Each host has its own loop per source, so that a probe that hangs
// delays nobody else.
type probes struct {
	r  *run
	wg sync.WaitGroup

	mu    sync.Mutex // guards stats
	stats []record.SourceStat
}

func (p *probes) start(ctx context.Context) {
	for _, v := range p.r.target.Variables {
		for i, src := range v.Sources {
			if src.Probe == nil {
				continue
			}
			for _, h := range target.ProbeHosts(p.r.target, src) {
				expanded, ok := p.r.procs.source(h, v.Name, i)
				if !ok {
					continue
				}
				p.wg.Add(1)
				go func() {
					defer p.wg.Done()
					p.loop(ctx, v.Name, i, h, expanded)
				}()
			}
		}
	}
}

func (p *probes) loop(ctx context.Context, variable string, source int, host model.NodeID, src model.VarSource) {
	every := src.Every
	if every <= 0 {
		every = defaultProbeEvery
	}
	st := record.SourceStat{Variable: variable, Source: source, Host: host}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stats = append(p.stats, st)
	}()
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		began := time.Now()
		answer, err := p.r.ask(ctx, host, *src.Probe)
		if err != nil && ctx.Err() != nil {
			return // cut short, not silent
		}
		st.Asked++
		st.Cost += time.Since(began)
		if err != nil {
			st.Error = err.Error()
		} else {
			st.Answered++
			if p.r.s.Probed(variable, source, host, answer) > 0 {
				st.Seen++
			} else {
				st.Answer = answer[:min(len(answer), 200)]
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// result returns how the sources fared, sorted, once no loop runs any more.
func (p *probes) result() []record.SourceStat {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortFunc(p.stats, func(a, b record.SourceStat) int {
		return cmp.Or(cmp.Compare(a.Variable, b.Variable), a.Source-b.Source, cmp.Compare(a.Host, b.Host))
	})
	return p.stats
}

// wait returns when no loop runs any more.
func (p *probes) wait() { p.wg.Wait() }

// holds asks every host of a condition and says whether it holds; if not, why.
func (r *run) holds(ctx context.Context, c model.Condition) (bool, string) {
	same := ""
	for i, h := range c.Hosts {
		mine, ok := r.procs.condition(h, c.Name)
		if !ok {
			return false, fmt.Sprintf("%s is not known on %s", c.Name, h)
		}
		re, err := regexp.Compile(mine.Match)
		if err != nil {
			return false, fmt.Sprintf("%s on %s: %v", c.Name, h, err)
		}
		answer, err := r.ask(ctx, h, mine.Probe)
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

// conditions are the target's conditions with these names.
func (r *run) conditions(names []string) []model.Condition {
	var out []model.Condition
	for _, c := range r.target.Stable {
		if slices.Contains(names, c.Name) {
			out = append(out, c)
		}
	}
	return out
}

// settle waits until all of the conditions hold at once, and nothing that also
// lists is pending, or until ctx ends; then it returns what was still pending.
func (r *run) settle(ctx context.Context, all []model.Condition, also func() []string) []string {
	last := []string{"nothing was asked"}
	for {
		var pending []string
		for _, c := range all {
			if ok, why := r.holds(ctx, c); !ok {
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

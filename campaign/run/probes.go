package run

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"netsplit/campaign/record"
	"netsplit/campaign/target"
	"netsplit/model"
)

// defaultProbeEvery is the interval of a probe that states none.
const defaultProbeEvery = 200 * time.Millisecond

// probes reads the target's probed variables on their intervals until ctx
// ends, or its last round does. Each host has its own loop per source, so that a probe that hangs
// delays nobody else.
type probes struct {
	r    *run
	wg   sync.WaitGroup
	last chan struct{} // closed by lastRound

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
				expanded, ok := p.r.procs.Source(h, v.Name, i)
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
	st := record.SourceStat{Variable: variable, Source: source, Host: host}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stats = append(p.stats, st)
	}()
	p.turns(ctx, src.Every, func() {
		began := time.Now()
		answer, err := p.r.procs.Ask(ctx, host, *src.Probe)
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
	})
}

// turns asks on an interval until ctx ends, or until lastRound, after which it
// asks once more.
func (p *probes) turns(ctx context.Context, every time.Duration, ask func()) {
	if every <= 0 {
		every = defaultProbeEvery
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		ask()
		select {
		case <-ctx.Done():
			return
		case <-p.last:
			ask()
			return
		case <-t.C:
		}
	}
}

// lastRound has each source asked once more and returns when all have answered
// or came to their limits: what is observed after recovery shows how the target
// ended, however long the intervals are.
func (p *probes) lastRound() {
	close(p.last)
	p.wg.Wait()
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

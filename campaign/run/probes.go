package run

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"netsplit/model"
	"netsplit/record"
	"netsplit/sut"
)

// defaultProbeEvery is the interval of a probe that states none.
const defaultProbeEvery = 200 * time.Millisecond

// probes reads the target's probed variables on their intervals until ctx
// ends, or its last round does. Each question to a host has its own loop, so
// that a probe that hangs delays nobody else. Sources whose probes are equal
// share one: the system is asked once, and each reads the answer.
type probes struct {
	r     *run
	wg    sync.WaitGroup
	first sync.WaitGroup // of the sources that were not asked yet
	last  chan struct{}  // closed by lastRound

	mu    sync.Mutex // guards stats
	stats []record.SourceStat
}

func (p *probes) start(ctx context.Context) {
	for _, q := range questions(p.r.target, p.r.procs.Source) {
		p.first.Add(1)
		p.wg.Go(func() {
			defer func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.stats = append(p.stats, q.stats...)
			}()
			p.turns(ctx, q.every, func() { q.ask(ctx, p.r.procs.Ask, p.r.s.Probed) })
		})
	}
}

// firstRound returns when each source has answered once or came to its limit:
// what messages told while the target started is no state of one that is ready.
func (p *probes) firstRound() { p.first.Wait() }

// question is a probe of a host, for all sources that ask it equally often.
type question struct {
	host  model.NodeID
	probe model.Probe // expanded
	every time.Duration
	stats []record.SourceStat // of the sources, in the order of the target file
}

// questions lists what the target's sources ask, in the order of the target
// file. source is one as a host expands it.
func questions(t *model.Target, source func(h model.NodeID, variable string, index int) (model.VarSource, bool)) []*question {
	var out []*question
	for _, v := range t.Variables {
		for i, src := range v.Sources {
			if src.Probe == nil {
				continue
			}
			for _, h := range sut.ProbeHosts(t, src) {
				expanded, ok := source(h, v.Name, i)
				if !ok {
					continue
				}
				st := record.SourceStat{Variable: v.Name, Source: i, Host: h}
				same := slices.IndexFunc(out, func(q *question) bool {
					return q.host == h && q.every == src.Every && reflect.DeepEqual(q.probe, *expanded.Probe)
				})
				if same < 0 {
					out = append(out, &question{host: h, probe: *expanded.Probe, every: src.Every, stats: []record.SourceStat{st}})
					continue
				}
				st.Along = true
				out[same].stats = append(out[same].stats, st)
			}
		}
	}
	return out
}

// ask asks once and gives the answer to each source. read returns how many values
// a source found in it.
func (q *question) ask(ctx context.Context, ask func(context.Context, model.NodeID, model.Probe) (string, error), read func(variable string, source int, h model.NodeID, answer string) int) {
	began := time.Now()
	answer, err := ask(ctx, q.host, q.probe)
	if err != nil && ctx.Err() != nil {
		return // cut short, not silent
	}
	waited := time.Since(began)
	for i := range q.stats {
		st := &q.stats[i]
		st.Requested++
		if !st.Along {
			st.Cost += waited
		}
		if err != nil {
			st.Error = err.Error()
			continue
		}
		st.Answered++
		if read(st.Variable, st.Source, st.Host, answer) > 0 {
			st.Seen++
		} else {
			st.Answer = model.Excerpt(answer)
		}
	}
}

// turns asks on an interval until ctx ends, or until lastRound, after which it
// asks once more.
func (p *probes) turns(ctx context.Context, every time.Duration, ask func()) {
	if every <= 0 {
		every = defaultProbeEvery
	}
	t := time.NewTicker(every)
	defer t.Stop()
	ask()
	p.first.Done()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.last:
			ask()
			return
		case <-t.C:
			ask()
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

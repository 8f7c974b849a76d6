package campaign

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/sut"
	"netsplit/sut/nodes"
)

// plan is what is known of a scenario's steps before a run.
type plan struct {
	t       *model.Target
	args    map[string]model.TargetArg
	steps   []model.Step
	moments []moment // of each step
}

// moment is what is known of when a step begins and ends. Times are into the workload.
type moment struct {
	begins time.Duration // at the earliest
	exact  bool          // it begins then
	ends   time.Duration // at the earliest; never: with the workload
	ended  bool          // it ends then
	lasts  time.Duration // at least; never
}

// never is the end of a step that ends with the workload.
const never = time.Duration(math.MaxInt64)

// apart is how long after another moment one must be to come after it for sure: a run looks at
// the clock with every packet and every tick.
const apart = time.Second

// closing is how long after its last operation a workload may be at most: it reads what it wrote.
const closing = 10 * time.Second

// planned is the plan of a scenario that was completed. It is an error if two steps exclude one
// another for sure, or if a step can never begin.
func planned(steps []model.Step, t *model.Target, specified map[string]string) (*plan, error) {
	p := &plan{t: t, steps: steps, args: map[string]model.TargetArg{}}
	args, err := sut.Args(t, specified)
	if err != nil {
		return nil, err
	}
	for k, v := range args {
		p.args[k] = model.TargetArg{Default: v}
	}
	for i := range steps {
		if err := p.add(i); err != nil {
			return nil, err
		}
	}
	for b := range steps {
		for a := range b {
			why := cmp.Or(p.crashed(a, b, false), p.crashed(b, a, false), p.crashed(a, b, true), p.sameCut(a, b), p.sameMessages(a, b))
			if why != "" {
				return nil, errors.New(why)
			}
		}
	}
	return p, nil
}

// name is a step in messages.
func (p *plan) name(i int) string {
	do := &p.steps[i].Do
	if do.Isolate != "" && !do.Silent() {
		return fmt.Sprintf("step %d (isolate %s)", i+1, do.Isolate)
	}
	return fmt.Sprintf("step %d (%s)", i+1, do)
}

// add finds the moment of a step, given those before it.
func (p *plan) add(i int) error {
	st, m := &p.steps[i], moment{exact: true}
	w, u := &st.When, &st.Until
	armed := time.Duration(0)
	if w.Follows != "" {
		before := p.moments[i-1]
		armed, m.exact = before.begins, before.exact && p.steps[i-1].Do.Message == nil
		if w.Follows == model.FollowsEnd {
			armed, m.exact = before.ends, before.ended
		}
		if armed == never {
			return fmt.Errorf("%s can never begin: it follows the end of %s, which ends with the workload: give that one an until or a max", p.name(i), p.name(i-1))
		}
	}
	m.begins = max(w.At, armed+w.After)
	m.exact = m.exact && w.OnlyTimes() && len(st.Do.Roles) == 0
	if last := p.workload() + cmp.Or(p.t.Timing.Hang, nodes.HangLimit) + closing; p.workload() > 0 && p.acts(i, m) >= last {
		return fmt.Errorf("%s can never begin: its time is %v into the workload at the earliest, and the workload is over after %v (timing.workload, timing.hang for its last operations, and %v to close): let it begin earlier", p.name(i), p.acts(i, m), last, closing)
	}
	if u.At > 0 && u.After == 0 && u.OnlyTimes() && u.At <= m.begins {
		follows := ""
		if w.Follows != "" {
			follows = fmt.Sprintf(" and follows the %s of %s", w.Follows, p.name(i-1))
		}
		return fmt.Errorf("%s ends %v into the workload, before it begins: it begins %v into it at the earliest%s: let it end later", p.name(i), u.At, m.begins, follows)
	}
	m.ends, m.lasts = never, never
	if *u != (model.Trigger{}) {
		m.ends, m.lasts, m.ended = max(u.At, m.begins+u.After), u.After, m.exact && u.OnlyTimes()
	}
	if st.Max > 0 {
		if *u == (model.Trigger{}) || m.begins+st.Max < m.ends {
			m.ended = m.exact && (*u == (model.Trigger{}) || u.OnlyTimes())
		}
		m.ends, m.lasts = min(m.ends, m.begins+st.Max), min(m.lasts, st.Max)
	}
	if f := st.Do.Message; f != nil && f.Most() > 0 { // it ends once it has acted on so many
		m.ends, m.lasts, m.ended = m.begins, 0, false
	}
	p.moments = append(p.moments, m)
	return nil
}

func (p *plan) workload() time.Duration { return p.t.Timing.Workload }

// acts is when a step acts at the earliest: a message fault may wait for longer.
func (p *plan) acts(i int, m moment) time.Duration {
	if f := p.steps[i].Do.Message; f != nil {
		return max(m.begins, f.After)
	}
	return m.begins
}

// late warns of steps that begin only if the workload takes longer than the target file says.
func (p *plan) late() (out []model.Warning) {
	for i, m := range p.moments {
		if at := p.acts(i, m); p.workload() > 0 && at >= p.workload() {
			out = append(out, model.Warning{Kind: model.WarnLate, About: fmt.Sprintf("step %d", i+1),
				Text:   fmt.Sprintf("%s begins only if the workload takes longer than it should: its time is %v into the workload at the earliest, and timing.workload is %v", p.name(i), at, p.workload()),
				Advice: "let the step begin earlier: a run in which it does not begin is vacuous"})
		}
	}
	return out
}

// after says whether step b surely begins once a has begun.
func (p *plan) after(a, b int) bool {
	if a < b && !slices.ContainsFunc(p.steps[a+1:b+1], func(s model.Step) bool { return s.When.Follows == "" }) {
		return true
	}
	x, y := p.moments[a], p.moments[b]
	return x.exact && (x.begins+apart <= y.begins || a < b && x.begins <= y.begins && (y.exact || x.begins == 0))
}

// later is how long after the beginning of step a step b begins; false: nobody knows.
func (p *plan) later(a, b int) (d time.Duration, known bool) {
	if a >= b {
		return 0, false
	}
	for i := a + 1; i <= b; i++ {
		w := &p.steps[i].When
		if w.Follows != model.FollowsBegin || w.At > 0 || !w.OnlyTimes() || p.steps[i-1].Do.Message != nil || len(p.steps[i].Do.Roles) > 0 {
			return 0, false
		}
		d += w.After
	}
	return d, true
}

// within says whether step b surely begins while a lasts.
func (p *plan) within(a, b int) bool {
	if !p.after(a, b) {
		return false
	}
	x, y := p.moments[a], p.moments[b]
	if x.ends == never || y.exact && y.begins+apart <= x.ends {
		return true
	}
	d, known := p.later(a, b)
	return known && d+apart <= x.lasts
}

// crashed says why step b finds no server: a has crashed them and they are not started again;
// "" if it may find one. either: it is the same if b is first.
func (p *plan) crashed(a, b int, either bool) string {
	host, dead := p.kills(a)
	if len(dead) == 0 || p.operated() || p.mayStart(a, host) {
		return ""
	}
	ends := "only as the workload ends"
	if p.moments[a].ends != never {
		ends = "only once that step ends"
	}
	because := fmt.Sprintf("%s has crashed them, and they start again %s", p.name(a), ends)
	st := &p.steps[b]
	if f := st.When.File; f != nil && f.Host == host && p.moments[a].ends == never && p.after(a, b) && p.among(dead, host, f.Process) {
		return fmt.Sprintf("%s can never begin: no server of %s does anything to a file: %s: let that one end earlier", p.name(b), host, because)
	}
	if either {
		if p.moments[a].ends != never || p.moments[b].ends != never || !p.sameKill(a, b) {
			return ""
		}
	} else if !p.within(a, b) {
		return ""
	}
	switch do := &st.Do; {
	case do.IfRunning || len(do.Roles) > 0:
	case do.Node != nil && do.Node.Host == host && p.among(dead, host, do.Node.Process):
		return fmt.Sprintf("%s finds no server of %s that runs: %s: let that one end earlier, set ifRunning, or leave out one of them", p.name(b), host, because)
	case do.Disk != nil && do.Disk.Host == host && (do.Disk.Kills() || p.moments[a].ends == never) && p.among(dead, host, do.Disk.Process):
		return fmt.Sprintf("%s finds no server of %s that runs: %s: let that one end earlier, or let the disk fail before", p.name(b), host, because)
	}
	return ""
}

// sameKill says whether two steps kill the same servers: then it does not matter which is first.
func (p *plan) sameKill(a, b int) bool {
	h, x := p.kills(a)
	g, y := p.kills(b)
	return h == g && slices.Equal(x, y)
}

// mayStart says whether a step that may have begun before a may start servers of the host as it
// ends, which may be after a killed them.
func (p *plan) mayStart(a int, host model.NodeID) bool {
	for c := range p.steps {
		do := &p.steps[c].Do
		on := len(do.Roles) > 0 || do.Node != nil && do.Node.Host == host && do.Node.Verb == model.NodeKill || do.Disk != nil && do.Disk.Host == host
		if c != a && on && p.moments[c].ends != never && !p.after(a, c) {
			return true
		}
	}
	return false
}

// kills are the servers that a step surely kills, by name.
func (p *plan) kills(i int) (host model.NodeID, names []string) {
	do, process := &p.steps[i].Do, ""
	switch {
	case len(do.Roles) > 0 || do.IfRunning:
		return "", nil
	case do.Node != nil && do.Node.Verb == model.NodeKill:
		host, process = do.Node.Host, do.Node.Process
	case do.Disk != nil && do.Disk.Kills():
		host, process = do.Disk.Host, do.Disk.Process
	default:
		return "", nil
	}
	return host, p.servers(host, process)
}

// servers are those of a host that a run has, or one of them. A workload may start the manual
// ones at any time: then nothing is sure, and there are none.
func (p *plan) servers(host model.NodeID, process string) (out []string) {
	for _, q := range p.t.Processes {
		switch {
		case q.Once || !slices.Contains(q.Hosts, host) || process != "" && q.Name != process:
		case q.Manual:
			return nil
		default:
			out = append(out, q.Name)
		}
	}
	return out
}

// among says whether all servers of a host, or that one, are among these.
func (p *plan) among(dead []string, host model.NodeID, process string) bool {
	all := p.servers(host, process)
	return len(all) > 0 && !slices.ContainsFunc(all, func(s string) bool { return !slices.Contains(dead, s) })
}

// operated says whether a workload or a process may start servers.
func (p *plan) operated() bool {
	operates := func(command []string, env map[string]string) bool {
		return slices.ContainsFunc(slices.AppendSeq(slices.Clone(command), maps.Values(env)), func(s string) bool { return strings.Contains(s, ".Netsplit") })
	}
	return slices.ContainsFunc(p.t.Workloads, func(w model.Workload) bool { return operates(w.Command, w.Env) && w.When.Under(p.args) }) ||
		slices.ContainsFunc(p.t.Processes, func(q model.Process) bool { return operates(q.Command, q.Env) })
}

// sameCut says why steps a and b, of which b comes later, change one cut at one moment.
func (p *plan) sameCut(a, b int) string {
	x, y := &p.steps[a], &p.steps[b]
	if x.Do.Cut == nil || y.Do.Cut == nil || x.Do.Silent() || y.Do.Silent() || len(x.Do.Roles)+len(y.Do.Roles) > 0 || !reflect.DeepEqual(x.Do.Cut, y.Do.Cut) {
		return ""
	}
	m, n, w := p.moments[a], p.moments[b], &y.When
	d, known := p.later(a, b)
	together := known && d == 0 || m.exact && n.exact && m.begins == n.begins || w.Follows == "" && reflect.DeepEqual(x.When, y.When)
	switch {
	case together && reflect.DeepEqual(x.Until, y.Until) && x.Max == y.Max:
		return fmt.Sprintf("%s begins and ends when %s does, and cuts the same: leave out one of them", p.name(b), p.name(a))
	case b == a+1 && w.Follows == model.FollowsEnd && w.After == 0 && w.At <= m.ends && w.OnlyTimes() && x.Until.OnlyTimes(), m.ended && n.exact && m.ends == n.begins:
		return fmt.Sprintf("%s begins at the moment at which %s ends, and cuts the same, so nothing passes between them: let the one last longer, or the other begin later", p.name(b), p.name(a))
	}
	return ""
}

// sameMessages says why message fault b never acts: a, which comes first, has all its messages.
func (p *plan) sameMessages(a, b int) string {
	x, y := p.steps[a], p.steps[b]
	if x.Do.Message == nil || y.Do.Message == nil || x.Do.Message.Kind == model.FaultReorder || y.When.Follows != "" ||
		!reflect.DeepEqual(x.When, y.When) || !reflect.DeepEqual(x.Until, y.Until) || x.Max != y.Max {
		return ""
	}
	f, g := *x.Do.Message, *y.Do.Message
	if f.Every > 0 && f.Times > 0 || f.Match != g.Match || !reflect.DeepEqual(f.While, g.While) || f.Answer != g.Answer || f.After != g.After || f.Nth != g.Nth || f.Every != g.Every || f.Times != g.Times {
		return ""
	}
	return fmt.Sprintf("%s never acts: it waits for the same messages as %s, and the first has them: leave out one of them, or change nth", p.name(b), p.name(a))
}

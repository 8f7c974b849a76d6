package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// operations reports operations that failed although the network and the
// servers gave them all that they need (CoFI §5.2.2: 28 of 33 false positives
// came from expecting success of operations that had to fail).
func operations() checker {
	return checker{
		name:    "operations",
		history: true,
		help:    "an operation with `needs` that failed although each need was met from invoke to answer. Every operation that it excuses is listed in the report with the rule",
		with: map[string]setting{
			"ops":            {def: "", help: "`f` of the operations to judge; empty: every operation with needs"},
			"info":           {def: "false", kind: "bool", help: "true: an operation without an answer counts as failed"},
			"legal":          {def: "", help: "first words of errors that are always legal"},
			"before":         {def: "0s", kind: "duration", help: "a need that was not met this long before the invocation still excuses the operation"},
			"notice":         {def: "0s", kind: "duration", help: "how long the system may take to notice that a host is cut off or down (failure detector); operations in that time are excused"},
			"recover":        {def: "0s", kind: "duration", help: "how long after heal, or after a start, the system may take to use a host again; operations in that time are excused. After a cut between nodes all operations are, also those that need no node that was cut"},
			"notice_errors":  {def: "", help: "first words of the errors that `notice` excuses; empty: all"},
			"recover_errors": {def: "", help: "first words of the errors that `recover` excuses; empty: all"},
			"stopping":       {def: "0s", kind: "duration", help: "how long before a workload's stop of a server the server may be down already"},
			"grace":          {def: "0s", kind: "duration", help: "how long a server that a workload started takes to serve"},
		},
		run: func(r *Record, s settings) outcome {
			var out outcome
			by := map[string]*model.Failure{}
			total := map[string]int{}
			out.idle = "no operation that it judges says what it needs"
			for _, c := range calls(r) {
				total[c.f]++
				if ops := s.list("ops"); len(c.needs) > 0 && (len(ops) == 0 || slices.Contains(ops, c.f)) {
					out.idle = ""
				}
			}
			if r.CutReached && r.Proof == nil {
				out.unknown = "there was a cut, and nobody knows when"
				return out
			}
			for _, c := range judged(r, s) {
				if c.bad != "" && out.unknown == "" {
					out.unknown = fmt.Sprintf("%s at %.3f s: %s", c.f, c.invoked.Seconds(), c.bad)
				}
				if c.excuse != "" || c.bad != "" {
					continue
				}
				sig := c.signature(r)
				f := by[sig]
				if f == nil {
					f = &model.Failure{Signature: sig, Summary: fmt.Sprintf("of %d operations %s %s although all they need was reached, the first at %s: %s",
						total[c.f], c.f, c.how(firstWord(c.err)), c.where(r), c.last()), BeforeCut: beforeCut(r, c.done)}
					by[sig] = f
				}
				f.BeforeCut = f.BeforeCut && beforeCut(r, c.done)
				f.Amount++
				showed(f, c.coordinator(r.Target), c.done)
				if len(f.Detail) < 10 {
					f.Detail = append(f.Detail, c.detail())
				}
			}
			for _, f := range by {
				f.Summary = fmt.Sprintf("%d %s", f.Amount, f.Summary)
			}
			out.failures = collect(by)
			return out
		},
	}
}

// call is an operation with its answer.
type call struct {
	workload string
	process  int
	f, key   string
	value    string       // of the answer, or of the invocation
	node     model.NodeID // that was asked, or that answered
	typ      model.OpType // of the answer; OpInvoke: there was none
	err      string
	invoked  time.Duration
	done     time.Duration
	needs    []model.Need
	answered bool // false: no line of an answer

	excuse string   // why it had a right to fail; "": it had none
	bad    string   // why nobody can say
	met    []string // of each need, what was reached
}

// calls pairs each invocation with its answer, per workload and process, by
// the time of the invocation. An answer without an invocation is a call by
// itself.
func calls(r *Record) []call {
	type who struct {
		workload string
		process  int
	}
	h := slices.Clone(r.History)
	slices.SortStableFunc(h, func(a, b record.Entry) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), strings.Compare(a.Workload, b.Workload), cmp.Compare(a.Process, b.Process))
	})
	end := r.WorkloadEnd
	open := map[who]int{}
	var out []call
	for _, o := range h {
		end = max(end, o.Time)
		k := who{o.Workload, o.Process}
		i, is := open[k]
		if o.Type != model.OpInvoke && is && out[i].f == o.F {
			c := &out[i]
			c.typ, c.err, c.done, c.answered = o.Type, o.Error, o.Time, true
			c.node, c.key = cmp.Or(o.Node, c.node), cmp.Or(o.Key, c.key)
			c.value = cmp.Or(o.Value, c.value)
			if len(c.needs) == 0 {
				c.needs = o.Needs
			}
			delete(open, k)
			continue
		}
		c := call{workload: o.Workload, process: o.Process, f: o.F, key: o.Key, value: o.Value, node: o.Node, typ: o.Type, err: o.Error, invoked: o.Time, done: o.Time, needs: o.Needs, answered: true}
		if o.Type == model.OpInvoke {
			c.answered = false
			open[k] = len(out)
		}
		out = append(out, c)
	}
	for i := range out {
		if !out[i].answered {
			out[i].done = max(end, out[i].invoked)
		}
	}
	return out
}

// unanswered says that nobody knows whether the operation happened.
func (c *call) unanswered() bool { return c.typ == model.OpInfo || c.typ == model.OpInvoke }

// unreadKeys are the keys that the reads of these kinds asked for by name and
// of which they told nothing: what a node has of them nobody knows.
func unreadKeys(cs []call, fs ...string) map[string]bool {
	out := map[string]bool{}
	for i := range cs {
		if slices.Contains(fs, cs[i].f) && cs[i].unanswered() && cs[i].key != "" {
			out[cs[i].key] = true
		}
	}
	return out
}

// unnamed counts the operations of these kinds that have no answer, and whose
// answer would have named the thing: each may have been about any one thing.
func unnamed(cs []call, fs []string) (n int) {
	for i := range cs {
		if slices.Contains(fs, cs[i].f) && cs[i].unanswered() && cs[i].key == "" {
			n++
		}
	}
	return n
}

// judged returns the calls that failed, or have no answer, each with its
// excuse, or why there is none.
func judged(r *Record, s settings) []call {
	ds := disturbances(r, s.duration("stopping"), s.duration("grace"))
	ops, legal := s.list("ops"), s.list("legal")
	var out []call
	for _, c := range calls(r) {
		if c.typ == model.OpOK {
			continue
		}
		switch {
		case !c.answered && (!s.bool("info") || len(c.needs) == 0):
			continue // one that hangs is a matter of workload-hang
		case len(c.needs) == 0:
			c.excuse = noNeeds
		case len(ops) > 0 && !slices.Contains(ops, c.f):
			c.excuse = othersJudged
		case c.typ != model.OpFail && !s.bool("info"):
			c.excuse = "nobody knows whether it happened"
		case oneOf(legal, c.err):
			c.excuse = firstWord(c.err) + " is legal by the target file"
		default:
			c.judge(r, s, ds)
		}
		out = append(out, c)
	}
	return out
}

const (
	noNeeds      = "the workload does not say what it needs"
	othersJudged = "the check judges other operations"
	noneJudges   = "no check of the target judges operations"
)

func (c *call) judge(r *Record, s settings, ds []disturbance) {
	for _, n := range c.needs {
		if c.bad = BadNeed(n, r.Target); c.bad != "" {
			return
		}
	}
	from, to := c.invoked-s.duration("before"), c.done
	for _, n := range c.needs {
		_, hosts, because := worst(n, ds, from, to)
		c.met = append(c.met, fmt.Sprintf("%s reached %d of %d (%s), needed %d", n.Via, len(hosts), len(needHosts(n)), words(hosts), n.Count))
		if len(hosts) < n.Count && c.excuse == "" {
			c.excuse = fmt.Sprintf("%s reached %d of %s and needed %d: %s", n.Via, len(hosts), words(needHosts(n)), n.Count, strings.Join(because, ", "))
		}
	}
	if c.excuse != "" {
		return
	}
	rules := []struct {
		within time.Duration
		errors []string
		begun  func(d *disturbance) time.Duration // operations from here on
		since  func(d *disturbance) time.Duration // until this long after
		why    string
	}{
		// A server that is stopped may fail operations before its stop is done.
		{s.duration("notice"), s.list("notice_errors"), func(d *disturbance) time.Duration { return d.from }, func(d *disturbance) time.Duration { return d.since }, "the system has " + s["notice"] + " to notice that %s no longer reaches %s: %s"},
		{s.duration("recover"), s.list("recover_errors"), func(d *disturbance) time.Duration { return d.to }, func(d *disturbance) time.Duration { return d.to }, "the system has " + s["recover"] + " until %s uses %s again: %s, over by then"},
	}
	for _, rule := range rules {
		if len(rule.errors) > 0 && !oneOf(rule.errors, c.err) {
			continue
		}
		for i := range ds {
			d := &ds[i]
			via, host, ok := c.touched(d)
			if since := rule.since(d); ok && rule.within > 0 && since < forever && from <= later(since, rule.within) && rule.begun(d) <= to {
				c.excuse = fmt.Sprintf(rule.why, via, host, d.what)
				return
			}
		}
	}
	// A heal is felt by every node, also by those that were never cut off.
	if words := s.list("recover_errors"); len(words) > 0 && !oneOf(words, c.err) {
		return
	}
	for i := range ds {
		d := &ds[i]
		if by := s.duration("recover"); by > 0 && d.betweenNodes(r.Target) && d.to < forever && d.to <= to && from <= later(d.to, by) {
			c.excuse = fmt.Sprintf("the cluster has %s after heal to work as before: %s, over by then", s["recover"], d.what)
			return
		}
	}
}

func (c *call) touched(d *disturbance) (via, host model.NodeID, ok bool) {
	for _, n := range c.needs {
		for _, h := range needHosts(n) {
			if d.apart(n.Via, h) {
				return n.Via, h, true
			}
		}
	}
	return "", "", false
}

func later(at, by time.Duration) time.Duration {
	if at > forever-by {
		return forever
	}
	return at + by
}

// firstWord of an error, as it was said.
func firstWord(err string) string {
	f := strings.Fields(err)
	if len(f) == 0 {
		return ""
	}
	return strings.Trim(f[0], ":;,.()")
}

// errorWord is the first word of an error without what differs from one to the
// next.
func errorWord(err string) string { return stable(firstWord(err)) }

// oneOf says whether an error begins with one of the words of a target file: as it
// was said, or as reports write it, with # for what differs.
func oneOf(words []string, err string) bool {
	for _, w := range words {
		if w = firstWord(w); w != "" && (w == firstWord(err) || w == errorWord(err)) {
			return true
		}
	}
	return false
}

// how says in which way the operation ended, with that word of its error.
func (c *call) how(word string) string {
	switch {
	case !c.answered:
		return "was never answered"
	case c.typ == model.OpInfo && word == "":
		return "had no answer"
	case c.typ == model.OpInfo:
		return "had no answer (" + word + ")"
	case word == "":
		return "failed"
	}
	return "failed with " + word
}

// coordinator is the server that the operation went to: the node of its
// lines, or the last node that it needs something reached from.
func (c *call) coordinator(t *model.Target) model.NodeID {
	if slices.Contains(t.Nodes, c.node) {
		return c.node
	}
	for _, n := range slices.Backward(c.needs) {
		if slices.Contains(t.Nodes, n.Via) {
			return n.Via
		}
	}
	for _, n := range slices.Backward(c.needs) {
		if len(n.From) == 1 {
			return n.From[0]
		}
	}
	return ""
}

func (c *call) signature(r *Record) string {
	sig := fmt.Sprintf("%s %s although all it needs was reached", c.f, c.how(errorWord(c.err)))
	cut := r.Proof
	if cut == nil || c.done < cut.CutAt {
		return sig + ", without a cut"
	}
	coordinator := c.coordinator(r.Target)
	side := ", at a node that was not isolated"
	switch {
	case coordinator == "":
		side = ""
	case isolated(r, coordinator):
		side = ", at the isolated node"
	}
	phase := ", while cut"
	if cut.HealAt > 0 && c.invoked >= cut.HealAt {
		phase = ", after heal"
	}
	return sig + phase + side
}

// where says when the operation failed, in the run and since the cut or the
// heal, and which server it went to.
func (c *call) where(r *Record) string {
	s := seconds(c.done) + " s"
	if cut := r.Proof; cut != nil && cut.HealAt > 0 && c.invoked >= cut.HealAt {
		s += fmt.Sprintf(" (%s s after the heal)", seconds(c.done-cut.HealAt))
	} else if cut != nil && c.done >= cut.CutAt {
		s += fmt.Sprintf(" (%s s after the cut)", seconds(c.done-cut.CutAt))
	}
	switch at := c.coordinator(r.Target); {
	case at != "" && r.Proof != nil && isolated(r, at):
		s += " at " + string(at) + ", the isolated node"
	case at != "":
		s += " at " + string(at)
	}
	return s
}

// isolated says whether the cut is about this host: it is the one that the
// scenario isolates, or, if the scenario names none, it was cut from more than
// half of the other nodes.
func isolated(r *Record, h model.NodeID) bool {
	cut := r.Scenario.Cut()
	if cut.Do.Isolate != "" || r.Proof == nil {
		return cut.Do.Isolate == h
	}
	off, others := 0, 0
	all := cutOff("", *r.Proof, cut.Partition()) // of a script, all its cuts
	for _, n := range r.Target.Nodes {
		if n != h {
			others++
			if all.apart(h, n) {
				off++
			}
		}
	}
	return 2*off > others
}

func (c *call) last() string { return c.met[len(c.met)-1] }

func (c *call) detail() string {
	what := strings.TrimSpace(c.f + " " + c.key)
	if c.node != "" {
		what += " at " + string(c.node)
	}
	how := c.how(firstWord(c.err))
	if c.err != "" {
		how, _, _ = strings.Cut(how, " with ")
		how += ": " + c.err
	}
	return fmt.Sprintf("%.3f to %.3f s: %s %s; %s", c.invoked.Seconds(), c.done.Seconds(), what, how, strings.Join(c.met, "; "))
}

// excuses says why operations of the workload that failed or had no answer had
// a right to, grouped; what no check operations judges is excused, as is what
// it cannot judge. Operations after recovery count where a check judges them.
func excuses(r *Record) (out []model.Excuse, count int) {
	var all []settings
	for _, spec := range r.Target.Checks {
		if c, ok := lookup(spec.Name); ok && c.name == operations().name {
			if s, problems := c.settings(spec); len(problems) == 0 {
				all = append(all, s)
			}
		}
	}
	// Of several checks, the one that has the least excuse decides.
	var best []call
	if len(all) == 0 {
		for _, c := range calls(r) {
			if c.typ != model.OpOK && c.answered {
				c.excuse = noneJudges
				best = append(best, c)
			}
		}
	}
	for i, s := range all {
		cs := judged(r, s)
		if i == 0 {
			best = cs
			continue
		}
		best = leastExcused(best, cs)
	}
	by := map[model.Excuse]*model.Excuse{}
	for _, c := range best {
		if strings.HasPrefix(c.f, finalPrefix) && (len(c.needs) == 0 || len(all) == 0) || c.excuse == "" {
			continue
		}
		count++
		k := model.Excuse{F: c.f, Error: errorWord(c.err), Node: c.node, Why: c.excuse}
		e := by[k]
		if e == nil {
			v := k
			e = &v
			e.First = c.done
			by[k] = e
		}
		e.Count++
		e.First, e.Last = min(e.First, c.done), max(e.Last, c.done)
	}
	for _, e := range by {
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b model.Excuse) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.First, b.First), strings.Compare(a.F, b.F),
			strings.Compare(a.Error, b.Error), cmp.Compare(a.Node, b.Node), strings.Compare(a.Why, b.Why))
	})
	const most = 50
	if len(out) > most {
		rest := model.Excuse{F: "other operations", Why: fmt.Sprintf("%d more reasons", len(out)-most+1), First: forever}
		for _, e := range out[most-1:] {
			rest.Count += e.Count
			rest.First, rest.Last = min(rest.First, e.First), max(rest.Last, e.Last)
		}
		out = append(out[:most-1], rest)
	}
	return out, count
}

// leastExcused joins two judgements of the same calls. A check may leave out
// calls that another one judges.
func leastExcused(a, b []call) []call {
	type id struct {
		workload string
		process  int
		invoked  time.Duration
		f, key   string
	}
	at := map[id]int{}
	for i, c := range a {
		at[id{c.workload, c.process, c.invoked, c.f, c.key}] = i
	}
	for _, c := range b {
		i, ok := at[id{c.workload, c.process, c.invoked, c.f, c.key}]
		switch {
		case !ok:
			a = append(a, c)
		case c.excuse == othersJudged:
		case a[i].excuse != "":
			a[i] = c
		}
	}
	return a
}

package sequence

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"netsplit/model"
)

// Config is what a campaign asks of the search.
type Config struct {
	// Seed is the source of every random choice and of the runs' seeds.
	Seed uint64 `json:"seed"`
	// Clean is the number of runs without a fault at the start, at least 1: a point that
	// none of them has depends on a fault.
	Clean int `json:"clean"`
	// Depth is the most faults that a sequence has.
	Depth int `json:"depth"`
	// Runs bounds the fault runs.
	Runs int `json:"runs"`
	// Retries bounds how often a sequence is run again because one of its points did not
	// come, and how often because its run was lost or could not be judged.
	Retries int `json:"retries"`
	// Kinds say what may fail where.
	Kinds []FaultAt `json:"kinds"`
	// Keys are the identity of points; nil: all. They must include side and type. Without
	// node among them, a fault is at whichever node has the point.
	Keys []model.PointKey `json:"keys,omitempty"`
	// Policies prune each level, one after the other (PreFail §3.4). None: brute force
	// (FATE §4.2.2).
	Policies []Policy `json:"-"`
}

func (c Config) identity() []model.PointKey { return Options{Keys: c.Keys}.Identity() }

// Validate says what is wrong with the configuration.
func (c Config) Validate() error {
	switch {
	case c.Clean < 1:
		return fmt.Errorf("sequence: %d clean runs: at least one must show which points there are", c.Clean)
	case c.Depth < 1:
		return fmt.Errorf("sequence: depth %d: a sequence has at least one fault", c.Depth)
	case c.Runs < 0 || c.Retries < 0:
		return fmt.Errorf("sequence: runs %d and retries %d must not be negative", c.Runs, c.Retries)
	case len(c.Kinds) == 0:
		return fmt.Errorf("sequence: no kind of fault is allowed")
	}
	if !model.Identifies(c.identity()) {
		return fmt.Errorf("sequence: the keys %v lack side or type: nobody can tell what fails at a point", c.Keys)
	}
	for _, k := range c.Keys {
		if !slices.Contains(model.PointKeys(), k) {
			return fmt.Errorf("sequence: a point has no key %q: it has %v", k, model.PointKeys())
		}
	}
	for _, k := range c.Kinds {
		if !possible(k) {
			return fmt.Errorf("sequence: %s %s cannot be at the side %s of a point", k.Kind, k.Place, k.Side)
		}
	}
	return nil
}

// Run is an order for one run: these faults, each at its point, one after the other;
// none: a clean run.
type Run struct {
	ID     string             `json:"id"`
	Seed   uint64             `json:"seed"`
	Faults []model.PointFault `json:"faults,omitempty"`
	IDs    model.Sequence     `json:"ids,omitempty"`
	// Why says in a sentence why this run is made now.
	Why string `json:"why"`
}

// Result is a finished run.
type Result struct {
	Run     string        `json:"run"`
	Profile model.Profile `json:"profile"`
	// Occurred is how many faults of the sequence occurred at their points, in its order.
	// Other is the other point at which the next fault occurred; nil if it did not occur.
	Occurred int                `json:"occurred"`
	Other    *model.Point       `json:"other,omitempty"`
	Verdict  model.VerdictValue `json:"verdict"`
	// GivenUp: the sequence is not run again (model.RunResult).
	GivenUp bool `json:"givenUp,omitempty"`
}

// InputKind says which part of an Input is filled.
type InputKind string

// Kinds of inputs.
const (
	InputAsk    InputKind = "ask"    // for up to Slots runs to make now
	InputResult InputKind = "result" // a finished run
	InputLost   InputKind = "lost"   // the run of this id ended without a result
)

// Input is one step of the search. The log of inputs and the Config determine every
// Ready. Which sequences a level has does not depend on the order in which results come
// back.
type Input struct {
	Kind   InputKind `json:"kind"`
	Slots  int       `json:"slots,omitempty"`
	Result *Result   `json:"result,omitempty"`
	Lost   string    `json:"lost,omitempty"`
}

// Ready is the answer to an Input.
type Ready struct {
	// Runs are those to make, in answer to an InputAsk only. Each is outstanding until
	// an InputResult or InputLost names it.
	Runs []Run `json:"runs,omitempty"`
	// Done says that no run is outstanding and none will follow.
	Done bool `json:"done,omitempty"`
	// Why says in a sentence why the search is done, or why there are fewer Runs than
	// Slots.
	Why string `json:"why,omitempty"`
}

// task is a sequence of the current level, or a clean run.
type task struct {
	c        Candidate
	clean    int         // of a clean run: its place among them
	seed     uint64      // of the next attempt
	tries    int         // attempts with a result in which not all faults occurred
	occurred int         // the most faults that occurred in one of these
	others   int         // how many of these had the next fault at another point
	other    model.Point // the last such point
	lost     int         // attempts without a result
}

// Search runs PreFail's levels (§3.4, Algorithm 1). It runs the sequences of a level, extends
// each by the faults possible after its last one, prunes these by the policies, and goes on
// with the next level. It is not safe for concurrent use.
type Search struct {
	cfg    Config
	err    error
	known  *Known
	report Report
	stats  map[model.FaultID]int // place in report.Faults

	next  int // numbers runs
	queue []*task
	out   map[string]*task
	level []*task
	why   string // why nothing more is handed out
}

// New starts a search. If Validate refuses the configuration, every Ready is Done, with
// the error as Why.
func New(cfg Config) *Search {
	s := &Search{cfg: cfg, err: cfg.Validate(), known: newKnown(cfg), stats: map[model.FaultID]int{}, out: map[string]*task{}}
	for i := range cfg.Clean {
		s.level = append(s.level, &task{clean: i, seed: s.draw(nil, i)})
	}
	s.queue = slices.Clone(s.level)
	return s
}

// draw is the seed of an attempt at a sequence.
func (s *Search) draw(ids model.Sequence, attempt int) uint64 {
	h := fnv.New64a()
	var n [16]byte
	binary.BigEndian.PutUint64(n[:8], s.cfg.Seed)
	binary.BigEndian.PutUint64(n[8:], uint64(attempt))
	h.Write(n[:])
	h.Write([]byte(ids.String()))
	return h.Sum64()
}

// Step takes one input and returns what follows from it.
func (s *Search) Step(in Input) Ready {
	if s.err != nil {
		return Ready{Done: true, Why: s.err.Error()}
	}
	var r Ready
	switch in.Kind {
	case InputAsk:
		for len(r.Runs) < in.Slots {
			run, ok := s.hand()
			if !ok {
				break
			}
			r.Runs = append(r.Runs, run)
		}
		if len(r.Runs) < in.Slots {
			r.Why = s.waits()
		}
	case InputResult:
		if in.Result != nil {
			s.result(*in.Result)
		}
	case InputLost:
		if t := s.out[in.Lost]; t != nil {
			delete(s.out, in.Lost)
			s.again(t, "its run was lost")
		}
	default:
		r.Why = fmt.Sprintf("unknown input %q is ignored: use ask, result or lost", in.Kind)
	}
	if len(s.out) == 0 && s.why != "" {
		r.Done, r.Why = true, s.why
	}
	return r
}

// waits says why there is nothing to hand out.
func (s *Search) waits() string {
	if s.why != "" {
		return s.why
	}
	return fmt.Sprintf("waiting for %s of level %d", model.Count(len(s.out), "run", "runs"), s.known.depth)
}

func (s *Search) hand() (Run, bool) {
	for len(s.queue) == 0 && len(s.out) == 0 && s.why == "" {
		s.nextLevel()
	}
	if len(s.queue) == 0 || s.why != "" {
		return Run{}, false
	}
	t := s.queue[0]
	if len(t.c.IDs) > 0 {
		if s.report.FaultRuns >= s.cfg.Runs {
			s.why = fmt.Sprintf("the budget of %d fault runs is spent: %d of level %d are left", s.cfg.Runs, len(s.queue), s.known.depth)
			s.report.Left = len(s.queue)
			return Run{}, false
		}
		s.report.FaultRuns++
	} else {
		s.report.CleanRuns++
	}
	s.queue = s.queue[1:]
	s.next++
	run := Run{ID: fmt.Sprintf("q%05d", s.next), Seed: t.seed, Faults: t.c.Faults, IDs: t.c.IDs, Why: s.reason(t)}
	s.out[run.ID] = t
	return run, true
}

func (s *Search) reason(t *task) string {
	switch {
	case len(t.c.IDs) == 0:
		return fmt.Sprintf("clean run %d of at least %d: which points there are without a fault", s.report.CleanRuns, s.cfg.Clean)
	case t.tries > 0:
		return fmt.Sprintf("attempt %d: so far %d of %d faults occurred", t.tries+1, t.occurred, len(t.c.IDs))
	case len(t.c.IDs) == 1:
		return "its point is in a clean run"
	case s.known.Independent(t.c.IDs[len(t.c.IDs)-1]):
		return fmt.Sprintf("the point of its last fault was seen after %s, and in a clean run", t.c.Prefix())
	}
	return fmt.Sprintf("the point of its last fault was seen after %s, and in no clean run", t.c.Prefix())
}

func (s *Search) result(r Result) {
	t := s.out[r.Run]
	if t == nil {
		return
	}
	delete(s.out, r.Run)
	if r.Verdict == model.VerdictUnknown {
		if r.GivenUp {
			t.lost = s.cfg.Retries
		}
		s.again(t, "its run could not be judged")
		return
	}
	s.count(t, r)
	if r.Occurred < len(t.c.IDs) {
		t.tries, t.occurred = t.tries+1, max(t.occurred, r.Occurred)
		if r.Other != nil {
			t.others, t.other = t.others+1, *r.Other
		}
		if t.tries <= s.cfg.Retries {
			t.seed = s.draw(t.c.IDs, t.tries)
			s.queue = append(s.queue, t)
			return
		}
		s.current().Vacuous++
		s.prune(Pruned{Candidate: t.c, Policy: "vacuous", Why: t.vacuous()})
		return
	}
	if len(t.c.IDs) == 0 {
		s.known.addClean(t.clean, r.Profile, t.seed)
		return
	}
	l := s.current()
	l.Run++
	failed := r.Verdict == model.VerdictFail
	if failed {
		l.Failed++
	}
	l.Ran = append(l.Ran, Ran{t.c, failed})
	s.known.addRun(t.c, r.Profile, t.seed)
}

// vacuous says why a sequence is given up whose points did not all come.
func (t *task) vacuous() string {
	why := fmt.Sprintf("at most %d of %d faults occurred at their points in %d runs: ", t.occurred, len(t.c.IDs), t.tries)
	if t.others == 0 {
		return why + "the next one's point did not come"
	}
	return why + fmt.Sprintf("in %d the next one's message came at another point, such as %s", t.others, t.other)
}

// again queues a sequence again whose run had no result, or gives it up.
func (s *Search) again(t *task, why string) {
	t.lost++
	if t.lost <= s.cfg.Retries {
		s.queue = append(s.queue, t)
		return
	}
	s.prune(Pruned{Candidate: t.c, Policy: "lost", Why: fmt.Sprintf("given up: %s %d times", why, t.lost)})
}

// nextLevel extends what the level's runs showed and prunes it.
func (s *Search) nextLevel() {
	depth := s.known.depth + 1
	switch {
	case depth > s.cfg.Depth:
		s.why = fmt.Sprintf("all sequences of up to %d faults that the policies keep were run", s.cfg.Depth)
		return
	case depth == 1 && !s.known.endClean():
		s.why = "no clean run could be judged, so the points of the target are not known"
		return
	}
	s.known.depth = depth
	s.report.Levels = append(s.report.Levels, Level{Depth: depth})
	cands := s.extend()
	s.current().Candidates, s.level = len(cands), nil
	for _, p := range s.cfg.Policies {
		kept, pruned, err := p.Prune(cands, s.known)
		if err != nil {
			s.why = fmt.Sprintf("policy %s cannot be asked at level %d: %v", p.Name(), depth, err)
			s.report.Err = err
			return
		}
		for _, q := range pruned {
			s.prune(q)
		}
		cands = kept
	}
	s.current().Kept = len(cands)
	for _, c := range cands {
		s.level = append(s.level, &task{c: c, seed: s.known.seedFor(c)})
	}
	if len(s.level) == 0 {
		s.why = fmt.Sprintf("no sequence of %d faults is left to run: %d were seen%s", depth, s.current().Candidates, commonest(s.current().Pruned))
	}
	s.queue = slices.Clone(s.level)
}

// commonest says why most sequences are not run.
func commonest(pruned []Pruned) string {
	n, most := map[string]int{}, ""
	for _, p := range pruned {
		why := p.Policy + ": " + p.Why
		if n[why]++; n[why] > n[most] || n[why] == n[most] && why < most {
			most = why
		}
	}
	if most == "" {
		return ""
	}
	return fmt.Sprintf("; %d are not run by policy %s", n[most], most)
}

// extend lists the sequences of the next level: those that were run, each with every
// fault that could have begun after it.
func (s *Search) extend() []Candidate {
	var out []Candidate
	run := []Candidate{{}}
	if s.known.depth > 1 {
		run = nil
		for _, t := range s.level {
			run = append(run, t.c)
		}
	}
	for _, c := range run {
		after, err := s.known.next(c.IDs)
		if err != nil { // given up: its faults did not all occur
			continue
		}
		for _, f := range after {
			if id := s.known.ID(f); !slices.Contains(c.IDs, id) {
				out = append(out, Candidate{append(slices.Clone(c.Faults), f), append(slices.Clone(c.IDs), id)})
			}
		}
	}
	return out
}

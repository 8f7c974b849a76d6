package campaign

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netsplit/campaign/cluster"
	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/sut"
	"netsplit/sut/nodes"
	"netsplit/sut/software"
)

// place is where the runs of a campaign are made: testbeds of this daemon, or runners on
// other machines.
type place interface {
	target() *model.Target
	templateNotice() string              // what a user must know of the target's templates
	scripts() (map[string]string, error) // see nodes.Scripts
	// workers is the most runs at once; slot waits until there is room for one.
	workers() int
	slot(ctx context.Context) (release func(), err error)
	// run makes one run and returns its summary when everything that it started has
	// ended and the network is whole. The error is netsplit's own or the testbed's
	// failure, never the target's; the summary is then a run of verdict unknown.
	run(ctx context.Context, w model.WorkItem) (model.RunSummary, error)
}

// placeFor makes the place of a campaign. The function it returns closes it; runners go on with
// its runs until the campaign has ended.
func (s *Service) placeFor(ctx context.Context, j *job, t *model.Target, dir string) (place, func(), error) {
	if s.hub == nil {
		if len(j.c.Spec.Needs) > 0 {
			return nil, nil, fmt.Errorf("%w: the campaign needs a runner with %s, and this daemon makes the runs itself: start it with --cluster, then resume the campaign", model.ErrUnavailable, strings.Join(j.c.Spec.Needs, ", "))
		}
		s.update(j, func(c *model.Campaign) { c.Spec.Labs = min(max(c.Spec.Labs, 1), maxLabs) }) // it may have been made for runners
		if err := checkMemory(t, j.c.Spec.Labs); err != nil {
			return nil, nil, err
		}
		return s.runnerOn(ctx, j, t, dir)
	}
	w := cluster.Work{Campaign: j.c.ID, Version: s.cfg.Version, Target: j.c.Spec.Target, Args: j.c.Spec.Args, Seed: j.c.Spec.Seed, Gate: j.c.Spec.Gate, Needs: j.c.Spec.Needs, Script: j.c.Spec.Script}
	if j.c.Spec.Kept != "" {
		w.Target = j.c.Spec.Kept
	}
	var archive []byte
	if s.uploads().Has(w.Target) {
		var err error
		if archive, _, err = sut.Pack(filepath.Join(dir, sut.FileName)); err != nil {
			return nil, nil, err
		}
	}
	o, err := s.hub.Offer(ctx, w, archive)
	if err != nil {
		return nil, nil, err
	}
	r := &remote{s: s, j: j, t: t, dir: dir, offer: o}
	stop, said := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(said)
		r.sayWhatIsMissing(stop)
	}()
	return r, func() {
		close(stop)
		<-said
		o.Leave()
	}, nil
}

// remote is a place whose runs are made by runners on other machines.
type remote struct {
	s     *Service
	j     *job
	t     *model.Target
	dir   string
	offer *cluster.Offer
}

// maxRemote bounds the runs that are handed out at once.
const maxRemote = 10_000

func (r *remote) target() *model.Target                    { return r.t }
func (r *remote) templateNotice() string                   { return "" }
func (r *remote) scripts() (map[string]string, error)      { return nodes.Scripts(r.t, r.dir) }
func (r *remote) slot(ctx context.Context) (func(), error) { return r.offer.Slot(ctx) }
func (r *remote) workers() int {
	if n := r.j.c.Spec.Labs; n > 0 {
		return n
	}
	return maxRemote
}

func (r *remote) run(ctx context.Context, w model.WorkItem) (model.RunSummary, error) {
	r.s.setView(w.Run, func(after uint64) model.LiveState { return r.s.hub.Live(w.Run, after) })
	defer r.s.setView(w.Run, nil)
	began := time.Now()
	made, err := r.offer.Run(ctx, w, r.s.runDir(w.Campaign, w.Run), r.checkTarget)
	switch {
	case ctx.Err() != nil:
		return model.RunSummary{}, context.Cause(ctx)
	case errors.Is(err, cluster.ErrGivenUp): // its scenario would end other runners, too
		sum := unjudged(w, r.t, began, err)
		sum.Result.GivenUp = true
		return sum, nil
	case !made:
		return unjudged(w, r.t, began, err), err
	}
	r.s.judgingRemote <- struct{}{}
	defer func() { <-r.s.judgingRemote }()
	return r.judge(w, began, err)
}

// judge judges the record of a run that a runner made, and counts it.
func (r *remote) judge(w model.WorkItem, began time.Time, failed error) (model.RunSummary, error) {
	sum, err := r.s.judgeRun(w, r.t, began, failed)
	if !model.IsFull(err) { // else it is judged again
		r.count(w)
	}
	return sum, err
}

// count adds to the metrics what a run says that it did. A record without metrics
// adds nothing.
func (r *remote) count(w model.WorkItem) {
	var t model.RunMetrics
	err := rundir.ReadJSON(filepath.Join(r.s.runDir(w.Campaign, w.Run), rundir.MetricsFile), &t)
	if err == nil {
		r.s.metrics.RunElsewhere(t.Within(slices.Concat(r.t.Nodes, r.t.Clients)))
	} else if !errors.Is(err, fs.ErrNotExist) {
		r.s.log.Warn("the metrics lack a run", "run", w.Run, "err", err)
	}
}

// checkTarget refuses a record of another target than the campaign's: the judge takes the checks
// from the record.
func (r *remote) checkTarget(record string) error {
	var made model.Target
	if err := rundir.ReadJSON(filepath.Join(record, rundir.TargetFile), &made); err != nil {
		return err
	}
	asked, err := json.Marshal(r.t)
	if err == nil { // decoded and encoded again, as the record's was
		var t model.Target
		if err = json.Unmarshal(asked, &t); err == nil {
			asked, err = json.Marshal(t)
		}
	}
	if err != nil {
		return err
	}
	if got, err := json.Marshal(made); err != nil || !bytes.Equal(got, asked) {
		return errors.Join(errors.New("it is of another target than the one that was asked for"), err)
	}
	return nil
}

// sayWhatIsMissing tells, while no runner makes runs of the campaign, what they lack.
func (r *remote) sayWhatIsMissing(stop chan struct{}) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for said := ""; ; {
		select {
		case <-stop:
			return
		case <-t.C:
		}
		if why := whyNoRunner(r.j.c.ID, r.s.hub.Runners()); why != said {
			r.s.update(r.j, func(c *model.Campaign) {
				if c.Reason == said || c.Reason == "" { // else it says more
					c.Reason = why
				}
			})
			said = why
		}
	}
}

// whyNoRunner says why no runner makes runs of a campaign; "" if one does.
func whyNoRunner(campaign string, runners []model.Runner) string {
	if len(runners) == 0 {
		return "it waits for a runner: none has joined (netsplit cluster invite, netsplit runner --join)"
	}
	var why []string
	for _, r := range runners {
		switch {
		case r.Campaign == campaign && r.State == model.RunnerReady:
			return ""
		case r.Campaign == campaign && r.State == model.RunnerUnfit:
			why = append(why, r.Name+": "+r.Reason)
		default:
			why = append(why, fmt.Sprintf("%s: %s", r.Name, r.State))
		}
	}
	return "it waits for a runner: " + strings.Join(why, "; ")
}

// underWay returns the unfinished runs of a campaign that runners may still finish, if keep
// chooses them. It books the others as cut short.
func (s *Service) underWay(j *job, keep func(model.RunMeta) bool) ([]model.WorkItem, error) {
	unfinished, err := s.store.UnfinishedRuns()
	if err != nil {
		return nil, err
	}
	var out []model.WorkItem
	for _, m := range unfinished {
		switch {
		case m.Campaign != j.c.ID:
		case s.hub != nil && keep(m):
			out = append(out, model.WorkItem{Campaign: m.Campaign, Run: m.Run, Spec: j.c.Spec, Scenario: m.Scenario, ReplayOf: m.ReplayOf})
		default:
			if err := s.cutShort(m, "the daemon ended, or its disk was full, while this run was under way; its scenario is run again"); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(out, func(a, b model.WorkItem) int { return model.CompareRuns(a.Run, b.Run) })
	return out, nil
}

// goesOn says whether a campaign is queued or under way.
func (s *Service) goesOn(id string) bool {
	c, err := s.getCampaign(id)
	return err == nil && (c.State == model.CampaignQueued || c.State == model.CampaignRunning)
}

// leftToRunners says whether a run that the last daemon did not finish may be made by a
// runner: it has no record here yet, or a whole one.
func (s *Service) leftToRunners(m model.RunMeta) bool {
	if s.cfg.Cluster == nil || !s.goesOn(m.Campaign) {
		return false
	}
	dir := s.runDir(m.Campaign, m.Run)
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return true
	}
	_, err := os.Lstat(filepath.Join(dir, rundir.EvidenceFile))
	return err == nil
}

// checkHere passes on what this machine lacks for runs, unless others make them.
func (s *Service) checkHere(lacks error) error {
	if s.hub != nil {
		return nil
	}
	return lacks
}

// openHub starts the broker, or connects to an existing one, and removes records that a daemon
// which was killed received in part.
func (s *Service) openHub(ctx context.Context) (err error) {
	c := *s.cfg.Cluster
	c.Dir, c.Goes, c.Software, c.Doing, c.Log = filepath.Join(s.cfg.RunsDir, ClusterDir), s.goesOn, software.Cached, s.runDoes, s.log
	c.HasRoom = s.hasRoom
	c.Changed = func(r model.Runner) {
		text := fmt.Sprintf("runner %s is %s", r.Name, r.State)
		if r.Reason != "" {
			text += ": " + r.Reason
		}
		s.tell("runner", r.Name, string(r.State), text)
	}
	left, err := filepath.Glob(filepath.Join(s.cfg.RunsDir, "c-*", cluster.Coming+"*")) // half of a record, of a daemon that was killed
	if err != nil {
		return err
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	s.hub, err = cluster.Open(ctx, c)
	return err
}

// ClusterDir is the folder of the runs directory with what a cluster needs.
const ClusterDir = "cluster"

// Runners lists the runners that have joined.
func (s *Service) Runners(ctx context.Context) ([]model.Runner, error) {
	if s.hub == nil {
		return nil, nil
	}
	return s.hub.Runners(), nil
}

// ClusterAddr is where runners join; "" where there is no cluster.
func (s *Service) ClusterAddr() string {
	if s.hub == nil {
		return ""
	}
	return s.hub.Address()
}

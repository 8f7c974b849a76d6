package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"netsplit/campaign/cluster"
	"netsplit/campaign/run"
	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/sut"
	"netsplit/sut/software"
)

// Worker makes runs on this machine for the daemon of a cluster: on labs, or on the outside
// testbed of the Service.
type Worker struct {
	Service *Service
	Labs    int // the most at once
}

// UnderWay is the folder of a Worker's Service, below the one that the user names: whatever else
// is in that one, such as records of a daemon, is not swept.
const UnderWay = "under-way"

// Sweep removes the runs that were under way when a runner in this folder was killed: other
// runners made them.
func (k Worker) Sweep() error {
	dirs, err := filepath.Glob(filepath.Join(k.Service.cfg.RunsDir, "c-*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove what a runner that was killed left: %w", err)
		}
	}
	return nil
}

// bench is a testbed or several for one campaign.
type bench struct {
	r      *labRunner
	closes func()
}

// Open makes ready for the runs of a campaign.
func (k Worker) Open(ctx context.Context, w cluster.Work, files cluster.Files) (_ cluster.Bench, err error) {
	s := k.Service
	archive, err := files.Target(ctx)
	if err != nil {
		return nil, fmt.Errorf("the target's files: %w", err)
	}
	forget := func() {}
	if archive != nil {
		known, err := s.UploadTarget(ctx, archive)
		if err != nil {
			return nil, err
		}
		forget = func() { _ = s.uploads().Delete(known.Name) } // one that stays is used again
	}
	defer func() {
		if err != nil {
			forget()
		}
	}()
	base, dir, err := s.uploads().Load(w.Target)
	if err != nil {
		return nil, err
	}
	t, err := sut.Expand(base, sut.ExpandInput{Args: w.Args, Seed: w.Seed})
	if err != nil {
		return nil, err
	}
	script, err := s.scripted(w.Script, w.Target, t)
	if err != nil {
		return nil, err
	}
	labs, err := k.room(t)
	if err != nil {
		return nil, err
	}
	supply := func(ctx context.Context, r software.Release) error {
		s.log.Info("getting software from the daemon", "set", r.SetName())
		return software.Import(ctx, r, func(to string) error { return files.Software(ctx, r.SetName(), to) })
	}
	r, closes, err := s.bench(ctx, benchConfig{campaign: w.Campaign, labs: labs, gate: w.Gate, target: t, dir: dir, supply: supply,
		fetching: func(line string) { s.log.Info("fetching", "what", line) },
		news:     func(text, _ string) { s.log.Info("templates", "news", text) }})
	if err != nil {
		return nil, err
	}
	if script != nil {
		r.play = script.Play
	}
	return &bench{r, func() { closes(); forget() }}, nil
}

// room is how many labs of a target this machine has room for.
func (k Worker) room(t *model.Target) (int, error) {
	if _, err := k.Service.diskHealth(); err != nil {
		return 0, err
	}
	if err := sut.CheckNeeds(t); err != nil {
		return 0, err
	}
	if tb := k.Service.cfg.Testbed; tb != nil {
		for _, h := range slices.Concat(t.Nodes, t.Clients) {
			if _, ok := tb.Host(h); !ok {
				return 0, fmt.Errorf("target %s needs host %q and testbed %s has %v", t.Name, h, tb.Name, tb.Names())
			}
		}
		return 1, checkMemory(t, 1)
	}
	if os.Geteuid() != 0 {
		return 0, errors.New("labs need root: start the runner as root, or with --testbed")
	}
	for n := k.Labs; n > 1; n-- {
		if checkMemory(t, n) == nil {
			return n, nil
		}
	}
	return 1, checkMemory(t, 1)
}

func (b *bench) Slots() int { return b.r.n }

func (b *bench) Close() { b.closes() }

// Run makes a run in the folder of its campaign.
func (b *bench) Run(ctx context.Context, w model.WorkItem, say cluster.Say) (string, error) {
	dir := b.r.s.runDir(w.Campaign, w.Run)
	if err := os.RemoveAll(dir); err != nil { // of a runner that was killed
		return "", err
	}
	tally := run.NewTally()
	say.Cuts(tally.InForce)
	err := b.r.record(ctx, w, say.Doing, say.Watch, tally)
	if _, serr := os.Lstat(dir); serr != nil {
		return "", errors.Join(err, serr)
	}
	return dir, errors.Join(err, rundir.WriteJSON(filepath.Join(dir, rundir.MetricsFile), tally.Sum()))
}

// Forget removes a record, and the folder of its campaign if it was the last one.
func (b *bench) Forget(dir string) {
	if err := os.RemoveAll(dir); err != nil {
		b.r.s.log.Warn("a record that was sent stays", "dir", dir, "err", err)
	}
	_ = os.Remove(filepath.Dir(dir)) // it may have others
}

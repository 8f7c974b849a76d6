package campaign

import (
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"netsplit/explorer/check"
	"netsplit/explorer/partitionmap"
	"netsplit/inference/store"
	"netsplit/model"
	"netsplit/record/rundir"
)

// books are what is known of a campaign's runs without reading them again: they are
// read from the store once, and each run is added as it finishes.
type books struct {
	runs     []model.RunSummary    // brief, by their number
	marks    map[string]check.Mark // of them, for their causes, by id
	parts    partitionmap.Map
	observed map[string]model.Invariant // by the runs, by id
	findings map[string]model.Finding   // as Merge gave them when they were stored, by id

	reported time.Time     // end of the last report
	took     time.Duration // to write it
}

// booksOf are the books of a campaign under way. The caller holds booking.
func (s *Service) booksOf(j *job) (*books, error) {
	if j.books == nil {
		b, err := s.readBooks(j.c.ID, nil)
		if err != nil {
			return nil, err
		}
		j.books = b
	}
	return j.books, nil
}

// readBooks reads the books of a campaign. again, if any, is a run that was judged again: it
// counts in place of what is stored of it.
func (s *Service) readBooks(campaign string, again *model.RunSummary) (*books, error) {
	b := &books{observed: map[string]model.Invariant{}, findings: map[string]model.Finding{}, marks: map[string]check.Mark{}}
	rows, err := all(func(c string) ([]model.RunRow, string, error) {
		return s.store.ListRuns(model.RunFilter{Campaign: campaign}, page, c)
	})
	if err != nil {
		return nil, err
	}
	for _, row := range slices.Backward(rows) { // one whole run at a time
		r, err := s.store.GetRun(row.Run)
		if err != nil {
			return nil, err
		}
		if again != nil && r.Run == again.Run {
			r = *again
		}
		s.addRun(b, &r)
	}
	return b, nil
}

// addRun adds a run and what its record gives to the partition map. A record of an earlier
// version, or one whose folder is gone, gives nothing.
func (s *Service) addRun(b *books, r *model.RunSummary) {
	b.add(r)
	if r.ReplayOf != "" { // a replay, or a try of a part of a scenario: it explores nothing
		return
	}
	var rows []model.MapRow
	err := rundir.ReadJSON(filepath.Join(s.runDir(r.Campaign, r.Run), rundir.MapFile), &rows)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("a run is missing in the partition map", "run", r.Run, "err", err)
	}
	b.parts.Add(r.Run, r.Verdict, rows)
}

func (b *books) add(r *model.RunSummary) {
	if m, ok := check.MarkOf(r); ok {
		b.marks[r.Run] = m
	}
	for _, inv := range r.Scenario.Observe {
		if _, ok := b.observed[inv.ID]; !ok {
			b.observed[inv.ID] = inv
		}
	}
	at, known := slices.BinarySearchFunc(b.runs, r.Run, func(o model.RunSummary, run string) int { return model.CompareRuns(o.Run, run) })
	if known {
		b.runs[at] = brief(*r)
		return
	}
	b.runs = slices.Insert(b.runs, at, brief(*r))
}

// brief leaves away what neither Merge nor the report of a campaign looks at, which is
// most of a run.
func brief(r model.RunSummary) model.RunSummary {
	r.Messages, r.Faults, r.GateDelay, r.Scripts = nil, nil, nil, nil
	r.Scenario.Observe, r.Scenario.Or, r.Scenario.Steps = nil, nil, briefly(r.Scenario.Steps)
	r.Verdict.Excuses, r.Verdict.Lines = nil, nil
	r.Result.Verdict, r.Result.States, r.Result.Classes, r.Result.Or = model.Verdict{}, nil, nil, nil
	if r.Proof != nil {
		p := *r.Proof
		p.Links, p.PerLink = nil, nil
		r.Proof = &p
	}
	return r
}

// briefly is what the steps wait for, without what they do in particular.
func briefly(steps []model.Step) []model.Step {
	out := slices.Clone(steps)
	for i := range out {
		st := &out[i]
		if st.Do.Cut != nil {
			st.Do.Cut = &model.Partition{}
		}
		if st.Until.Unseen != nil {
			st.Until.Unseen = &model.Unseen{}
		}
	}
	return out
}

// merge derives the findings: how many there are, and those that are not as they
// were stored.
func (b *books) merge(campaign string) (n int, changed []model.Finding) {
	found := check.Merge(campaign, b.runs)
	for _, f := range found {
		if old, ok := b.findings[f.ID]; !ok || !reflect.DeepEqual(old, f) {
			changed = append(changed, f)
		}
	}
	return len(found), changed
}

// book stores a run that has finished, what it changes of its campaign's findings, and
// the campaign, all in one write, and returns the findings that are new.
func (s *Service) book(j *job, sum *model.RunSummary) (fresh []model.Finding) {
	s.booking.Lock()
	defer s.booking.Unlock()
	b, err := s.booksOf(j)
	if err != nil {
		s.log.Error("findings could not be derived", "campaign", j.c.ID, "err", err)
		b = &books{observed: map[string]model.Invariant{}, marks: map[string]check.Mark{}}
	}
	s.addRun(b, sum)
	n, changed := 0, []model.Finding(nil)
	if j.c.Spec.Replay == "" && err == nil {
		n, changed = b.merge(j.c.ID)
		s.countMap(b)
	}
	c := s.changed(j, func(c *model.Campaign) {
		c.Done++
		if c.Spec.Replay == "" && err == nil {
			c.Findings = n
		}
		c.Running = slices.DeleteFunc(c.Running, func(r string) bool { return r == sum.Run })
		delete(c.Doing, sum.Run)
	})
	err = s.store.Update(func(tx *store.Tx) error {
		fresh = nil
		if err := tx.PutRun(*sum); err != nil {
			return err
		}
		for _, f := range changed {
			old, err := tx.GetFinding(f.ID)
			if err != nil {
				fresh = append(fresh, f)
			}
			f.Replays, f.Reproduced = old.Replays, old.Reproduced
			if err := tx.PutFinding(f); err != nil {
				return err
			}
		}
		return tx.PutCampaign(c)
	})
	if err != nil {
		s.keepUnstored(s.changed(j, func(c *model.Campaign) { c.Done-- }))
		s.log.Error("a run could not be stored; its record is complete", "run", sum.Run, "err", err)
		return nil
	}
	s.forgetUnstored(c.ID)
	for _, f := range changed {
		b.findings[f.ID] = f
	}
	return fresh
}

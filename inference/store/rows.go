package store

import (
	"errors"
	"slices"
	"time"

	"netsplit/model"
)

// PutRun stores the summary of a run and takes away the mark of StartRun.
func (x *Tx) PutRun(r model.RunSummary) error {
	if err := checkID("run", r.Run); err != nil {
		return err
	}
	if err := checkID("campaign", r.Campaign); err != nil {
		return err
	}
	if old, err := x.GetRun(r.Run); err == nil {
		if err := x.t.delete(bucketRunOrder, runKey(&old)); err != nil {
			return err
		}
		if err := x.deleteCut(cutOfRun(&old)); err != nil {
			return err
		}
	}
	if err := x.t.delete(bucketStarted, key(r.Run)); err != nil {
		return err
	}
	if err := x.indexRun(&r); err != nil {
		return err
	}
	return x.put(bucketRuns, key(r.Run), r)
}

func (x *Tx) indexRun(r *model.RunSummary) error {
	if err := x.put(bucketRunOrder, runKey(r), r.Row()); err != nil {
		return err
	}
	return x.putCut(cutOfRun(r))
}

func runKey(r *model.RunSummary) []byte { return key(r.Campaign, r.Started, r.Run) }

// GetRun fails with model.ErrNotFound.
func (x *Tx) GetRun(id string) (model.RunSummary, error) {
	return get[model.RunSummary](x, bucketRuns, "run", id)
}

// ListRuns lists runs: those of the last campaign id first, and of each the last one
// started first.
func (x *Tx) ListRuns(f model.RunFilter, limit int, cursor string) ([]model.RunRow, string, error) {
	var prefix []byte
	if f.Campaign != "" {
		prefix = key(f.Campaign)
	}
	return page(x, "runs", bucketRunOrder, prefix, true, limit, cursor, func(k, v []byte) (*model.RunRow, error) {
		r, err := row[model.RunRow](k, v)
		if err != nil || !f.Takes(r) {
			return nil, err
		}
		return r, nil
	})
}

// row is an element of a list whose index has it.
func row[T any](_, v []byte) (*T, error) {
	t, err := decode[T](v)
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// RunKind is what runs are counted by.
type RunKind struct {
	Target   string
	Strategy model.Strategy
	Verdict  model.VerdictValue
}

// CountRuns counts all runs; it reads the row of each.
func (x *Tx) CountRuns() (map[RunKind]int, error) {
	type counted struct {
		Target   string
		Strategy model.Strategy
		Verdict  struct{ Value model.VerdictValue }
	}
	out := map[RunKind]int{}
	var failed error
	x.t.scan(bucketRunOrder, nil, nil, false, func(_, v []byte) bool {
		var r counted
		if r, failed = decode[counted](v); failed == nil {
			out[RunKind{r.Target, r.Strategy, r.Verdict.Value}]++
		}
		return failed == nil
	})
	return out, failed
}

// PutFinding stores a finding under its ID.
func (x *Tx) PutFinding(f model.Finding) error {
	if err := checkID("finding", f.ID); err != nil {
		return err
	}
	if err := checkID("campaign", f.Campaign); err != nil {
		return err
	}
	if old, err := x.GetFinding(f.ID); err == nil {
		if err := x.t.delete(bucketFindingOrder, findingKey(old)); err != nil {
			return err
		}
	}
	if err := x.indexFinding(f); err != nil {
		return err
	}
	return x.put(bucketFindings, key(f.ID), f)
}

// DeleteFinding deletes a finding; one that is not there is no error.
func (x *Tx) DeleteFinding(id string) error {
	f, err := x.GetFinding(id)
	if errors.Is(err, model.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := x.t.delete(bucketFindingOrder, findingKey(f)); err != nil {
		return err
	}
	return x.t.delete(bucketFindings, key(id))
}

func (x *Tx) indexFinding(f model.Finding) error {
	return x.put(bucketFindingOrder, findingKey(f), f.Row())
}

// findingKey orders findings by campaign, the last id first, those of one by what they
// cost, then by when they were first seen.
func findingKey(f model.Finding) []byte {
	return append(backwards(f.Campaign), key(uint64(max(f.Rank, 0))<<32|uint64(max(f.FirstAfter, 0)), f.ID)...)
}

// backwards is a field of a key that sorts against the order of the strings.
func backwards(s string) []byte {
	k := key(s)
	for i := range k {
		k[i] = ^k[i]
	}
	return k
}

// GetFinding fails with model.ErrNotFound.
func (x *Tx) GetFinding(id string) (model.Finding, error) {
	return get[model.Finding](x, bucketFindings, "finding", id)
}

// ListFindings lists rows of findings (model.Finding.Row) of a campaign, or of all
// campaigns if that is "": those of the last campaign id first, of each the costliest
// first.
func (x *Tx) ListFindings(campaign string, limit int, cursor string) ([]model.Finding, string, error) {
	var prefix []byte
	if campaign != "" {
		prefix = backwards(campaign)
	}
	return page(x, "findings", bucketFindingOrder, prefix, false, limit, cursor, row[model.Finding])
}

// KeptPartitions is how many partitions that have ended are kept. To read all of
// them takes tens of milliseconds, so it is done when there are forgetAt more.
const (
	KeptPartitions = 1000
	forgetAt       = 100
)

// PutPartition stores a manual partition under its name. With one that has
// ended, those that ended first are forgotten, sooner or later, beyond
// KeptPartitions.
func (x *Tx) PutPartition(p model.PartitionStatus) error {
	if err := checkID("partition", p.Name); err != nil {
		return err
	}
	if err := x.unindexPartition(p.Name); err != nil {
		return err
	}
	if err := x.indexPartition(p); err != nil {
		return err
	}
	if err := x.put(bucketPartitions, key(p.Name), p); err != nil || !p.Ended() {
		return err
	}
	count := 0
	x.t.scan(bucketPartitions, nil, nil, false, func(_, _ []byte) bool { count++; return true })
	if count <= KeptPartitions+forgetAt {
		return nil
	}
	list, err := all[model.PartitionStatus](x, bucketPartitions, nil)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(o model.PartitionStatus) bool { return !o.Ended() || o.Name == p.Name })
	slices.SortStableFunc(list, func(a, b model.PartitionStatus) int { return lastOf(a).Compare(lastOf(b)) })
	for _, o := range list[:max(0, len(list)-(KeptPartitions-1))] {
		if err := x.DeletePartition(o.Name); err != nil {
			return err
		}
	}
	return nil
}

func lastOf(p model.PartitionStatus) time.Time {
	if p.Healed.After(p.Created) {
		return p.Healed
	}
	return p.Created
}

func (x *Tx) indexPartition(p model.PartitionStatus) error {
	if err := x.t.put(bucketPartTime, key(p.Created, p.Name), []byte{}); err != nil {
		return err
	}
	return x.putCut(cutOfPartition(&p))
}

func (x *Tx) unindexPartition(name string) error {
	old, err := x.GetPartition(name)
	if err != nil {
		return nil // there is none
	}
	if err := x.t.delete(bucketPartTime, key(old.Created, name)); err != nil {
		return err
	}
	return x.deleteCut(cutOfPartition(&old))
}

// GetPartition fails with model.ErrNotFound.
func (x *Tx) GetPartition(name string) (model.PartitionStatus, error) {
	return get[model.PartitionStatus](x, bucketPartitions, "partition", name)
}

// ListPartitions lists the newest first, as ListCampaigns.
func (x *Tx) ListPartitions(limit int, cursor string) ([]model.PartitionStatus, string, error) {
	return page(x, "partitions", bucketPartTime, nil, true, limit, cursor, func(k, _ []byte) (*model.PartitionStatus, error) {
		p, err := x.GetPartition(lastField(k, 8))
		if err != nil {
			return nil, err
		}
		return &p, nil
	})
}

// DeletePartition forgets a partition. It is no error if there is none.
func (x *Tx) DeletePartition(name string) error {
	if err := x.unindexPartition(name); err != nil {
		return err
	}
	return x.t.delete(bucketPartitions, key(name))
}

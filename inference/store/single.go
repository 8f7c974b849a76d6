package store

import (
	"encoding/json"
	"time"

	"netsplit/model"
)

// The methods below are those of Tx, each in a transaction of its own.

func view[T any](s *Store, fn func(tx *Tx) (T, error)) (T, error) {
	var out T
	err := s.View(func(tx *Tx) error {
		var err error
		out, err = fn(tx)
		return err
	})
	return out, err
}

func viewPage[T any](s *Store, fn func(tx *Tx) ([]T, string, error)) ([]T, string, error) {
	var out []T
	var next string
	err := s.View(func(tx *Tx) error {
		var err error
		out, next, err = fn(tx)
		return err
	})
	return out, next, err
}

// PutCampaign is Tx.PutCampaign.
func (s *Store) PutCampaign(c model.Campaign) error {
	return s.Update(func(tx *Tx) error { return tx.PutCampaign(c) })
}

// GetCampaign is Tx.GetCampaign.
func (s *Store) GetCampaign(id string) (model.Campaign, error) {
	return view(s, func(tx *Tx) (model.Campaign, error) { return tx.GetCampaign(id) })
}

// ListCampaigns is Tx.ListCampaigns.
func (s *Store) ListCampaigns(f model.CampaignFilter, limit int, cursor string) ([]model.Campaign, string, error) {
	return viewPage(s, func(tx *Tx) ([]model.Campaign, string, error) { return tx.ListCampaigns(f, limit, cursor) })
}

// StartRun is Tx.StartRun.
func (s *Store) StartRun(m model.RunMeta) error {
	return s.Update(func(tx *Tx) error { return tx.StartRun(m) })
}

// UnfinishedRuns is Tx.UnfinishedRuns.
func (s *Store) UnfinishedRuns() ([]model.RunMeta, error) {
	return view(s, func(tx *Tx) ([]model.RunMeta, error) { return tx.UnfinishedRuns() })
}

// PutRun is Tx.PutRun.
func (s *Store) PutRun(r model.RunSummary) error {
	return s.Update(func(tx *Tx) error { return tx.PutRun(r) })
}

// GetRun is Tx.GetRun.
func (s *Store) GetRun(id string) (model.RunSummary, error) {
	return view(s, func(tx *Tx) (model.RunSummary, error) { return tx.GetRun(id) })
}

// ListRuns is Tx.ListRuns.
func (s *Store) ListRuns(f model.RunFilter, limit int, cursor string) ([]model.RunRow, string, error) {
	return viewPage(s, func(tx *Tx) ([]model.RunRow, string, error) { return tx.ListRuns(f, limit, cursor) })
}

// CountRuns is Tx.CountRuns.
func (s *Store) CountRuns() (map[RunKind]int, error) {
	return view(s, func(tx *Tx) (map[RunKind]int, error) { return tx.CountRuns() })
}

// Annotations is Tx.Annotations.
func (s *Store) Annotations(from, to time.Time, limit int) (out []model.Annotation, more bool, err error) {
	err = s.View(func(tx *Tx) error {
		out, more, err = tx.Annotations(from, to, limit)
		return err
	})
	return out, more, err
}

// AppendInput is Tx.AppendInput.
func (s *Store) AppendInput(campaign string, inputs ...json.RawMessage) error {
	return s.Update(func(tx *Tx) error { return tx.AppendInput(campaign, inputs...) })
}

// Inputs is Tx.Inputs.
func (s *Store) Inputs(campaign string) ([]json.RawMessage, error) {
	return view(s, func(tx *Tx) ([]json.RawMessage, error) { return tx.Inputs(campaign) })
}

// PutFinding is Tx.PutFinding.
func (s *Store) PutFinding(f model.Finding) error {
	return s.Update(func(tx *Tx) error { return tx.PutFinding(f) })
}

// GetFinding is Tx.GetFinding.
func (s *Store) GetFinding(id string) (model.Finding, error) {
	return view(s, func(tx *Tx) (model.Finding, error) { return tx.GetFinding(id) })
}

// ListFindings is Tx.ListFindings.
func (s *Store) ListFindings(campaign string, limit int, cursor string) ([]model.Finding, string, error) {
	return viewPage(s, func(tx *Tx) ([]model.Finding, string, error) { return tx.ListFindings(campaign, limit, cursor) })
}

// PutInvariants is Tx.PutInvariants.
func (s *Store) PutInvariants(target string, mined []model.Invariant) error {
	return s.Update(func(tx *Tx) error { return tx.PutInvariants(target, mined) })
}

// ListInvariants is Tx.ListInvariants.
func (s *Store) ListInvariants(target string) ([]model.TargetInvariant, error) {
	return view(s, func(tx *Tx) ([]model.TargetInvariant, error) { return tx.ListInvariants(target) })
}

// GetInvariant is Tx.GetInvariant.
func (s *Store) GetInvariant(target, id string) (model.TargetInvariant, error) {
	return view(s, func(tx *Tx) (model.TargetInvariant, error) { return tx.GetInvariant(target, id) })
}

// PinInvariant is Tx.PinInvariant.
func (s *Store) PinInvariant(target string, inv model.Invariant) (model.TargetInvariant, error) {
	var out model.TargetInvariant
	err := s.Update(func(tx *Tx) (err error) {
		out, err = tx.PinInvariant(target, inv)
		return err
	})
	return out, err
}

// SetInvariantStatus is Tx.SetInvariantStatus.
func (s *Store) SetInvariantStatus(target, id string, status model.InvariantStatus) (model.TargetInvariant, error) {
	var out model.TargetInvariant
	err := s.Update(func(tx *Tx) error {
		var err error
		out, err = tx.SetInvariantStatus(target, id, status)
		return err
	})
	return out, err
}

// PutPartition is Tx.PutPartition.
func (s *Store) PutPartition(p model.PartitionStatus) error {
	return s.Update(func(tx *Tx) error { return tx.PutPartition(p) })
}

// GetPartition is Tx.GetPartition.
func (s *Store) GetPartition(name string) (model.PartitionStatus, error) {
	return view(s, func(tx *Tx) (model.PartitionStatus, error) { return tx.GetPartition(name) })
}

// ListPartitions is Tx.ListPartitions.
func (s *Store) ListPartitions(limit int, cursor string) ([]model.PartitionStatus, string, error) {
	return viewPage(s, func(tx *Tx) ([]model.PartitionStatus, string, error) { return tx.ListPartitions(limit, cursor) })
}

// DeletePartition is Tx.DeletePartition.
func (s *Store) DeletePartition(name string) error {
	return s.Update(func(tx *Tx) error { return tx.DeletePartition(name) })
}

// ClaimKey is Tx.ClaimKey.
func (s *Store) ClaimKey(k, hash string, now time.Time) (oldHash string, response []byte, fresh bool, err error) {
	err = s.Update(func(tx *Tx) error {
		var err error
		oldHash, response, fresh, s.sweep, err = tx.ClaimKey(k, hash, now, s.sweep)
		return err
	})
	return oldHash, response, fresh, err
}

// FinishKey is Tx.FinishKey.
func (s *Store) FinishKey(k string, response []byte) error {
	return s.Update(func(tx *Tx) error { return tx.FinishKey(k, response) })
}

// ReleaseKey is Tx.ReleaseKey.
func (s *Store) ReleaseKey(k string) error {
	return s.Update(func(tx *Tx) error { return tx.ReleaseKey(k) })
}

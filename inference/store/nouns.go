package store

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

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
	if err := x.t.put(bucketFindingOrder, findingKey(f), []byte{}); err != nil {
		return err
	}
	return x.put(bucketFindings, key(f.ID), f)
}

// findingKey orders the findings of a campaign by what they cost, then by when they
// were first seen. One of an older version, without a Rank, has the key it was
// stored under.
func findingKey(f model.Finding) []byte {
	return key(f.Campaign, uint64(max(f.Rank, 0))<<32|uint64(max(f.FirstAfter, 0)), f.ID)
}

// GetFinding fails with model.ErrNotFound.
func (x *Tx) GetFinding(id string) (model.Finding, error) {
	return get[model.Finding](x, bucketFindings, "finding", id)
}

// ListFindings lists the findings of a campaign, or of all campaigns if that
// is "", by campaign id, Rank and the number of runs until first seen.
func (x *Tx) ListFindings(campaign string, limit int, cursor string) ([]model.Finding, string, error) {
	var prefix []byte
	if campaign != "" {
		prefix = key(campaign)
	}
	return page(x, "findings", bucketFindingOrder, prefix, false, limit, cursor, func(k, _ []byte) (model.Finding, error) {
		return x.GetFinding(lastField(k, slices.Index(k, 0)+1+8))
	})
}

// PutInvariants replaces the mined invariants of a target. What a person said
// stays: an invariant that was pinned or dropped keeps that status if it was
// mined again, and is kept as it was if not.
func (x *Tx) PutInvariants(target string, mined []model.Invariant) error {
	if err := checkID("target", target); err != nil {
		return err
	}
	old, err := x.ListInvariants(target)
	if err != nil {
		return err
	}
	status := map[string]model.InvariantStatus{}
	for _, o := range old {
		if o.Status == model.InvariantMined {
			if err := x.t.delete(bucketInvariants, key(target, o.ID)); err != nil {
				return err
			}
			continue
		}
		status[o.ID] = o.Status
	}
	for _, inv := range mined {
		if err := checkID("invariant", inv.ID); err != nil {
			return err
		}
		if s, ok := status[inv.ID]; ok {
			inv.Status = s
		} else if inv.Status == "" {
			inv.Status = model.InvariantMined
		}
		if err := x.put(bucketInvariants, key(target, inv.ID), model.TargetInvariant{Target: target, Invariant: inv}); err != nil {
			return err
		}
	}
	return nil
}

// ListInvariants lists the invariants of a target by id, or of all targets if
// that is "".
func (x *Tx) ListInvariants(target string) ([]model.TargetInvariant, error) {
	var prefix []byte
	if target != "" {
		prefix = key(target)
	}
	return all[model.TargetInvariant](x, bucketInvariants, prefix)
}

// SetInvariantStatus pins, drops or (with InvariantMined) releases one. An
// empty target stands for the only one that has an invariant of this id; with
// more than one it fails with model.ErrConflict and names them.
func (x *Tx) SetInvariantStatus(target, id string, s model.InvariantStatus) (model.TargetInvariant, error) {
	var none model.TargetInvariant
	switch s {
	case model.InvariantMined, model.InvariantPinned, model.InvariantDrop:
	default:
		return none, fmt.Errorf("%w: status %q: use %s, %s or %s", model.ErrInvalid, s, model.InvariantPinned, model.InvariantDrop, model.InvariantMined)
	}
	list, err := x.ListInvariants(target)
	if err != nil {
		return none, err
	}
	var found []model.TargetInvariant
	var targets []string
	for _, inv := range list {
		if inv.ID == id {
			found, targets = append(found, inv), append(targets, inv.Target)
		}
	}
	switch len(found) {
	case 0:
		return none, fmt.Errorf("invariant %q: %w", id, model.ErrNotFound)
	case 1:
	default:
		return none, fmt.Errorf("invariant %q %w: targets %s have one each: name the target", id, model.ErrConflict, strings.Join(targets, ", "))
	}
	inv := found[0]
	inv.Status = s
	return inv, x.put(bucketInvariants, key(inv.Target, inv.ID), inv)
}

// KeptPartitions is how many partitions that have ended are kept. To read all of
// them takes tens of milliseconds, so it is done when there are forgetAt more.
const (
	KeptPartitions = 1000
	forgetAt       = 100
)

// PutPartition stores a partition cut by hand under its name. With one that has
// ended, those that ended first are forgotten, sooner or later, beyond
// KeptPartitions.
func (x *Tx) PutPartition(p model.PartitionStatus) error {
	if err := checkID("partition", p.Name); err != nil {
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

// lastOf is the last time that is known of a partition that has ended.
func lastOf(p model.PartitionStatus) time.Time {
	if p.Healed.After(p.Created) {
		return p.Healed
	}
	return p.Created
}

// GetPartition fails with model.ErrNotFound.
func (x *Tx) GetPartition(name string) (model.PartitionStatus, error) {
	return get[model.PartitionStatus](x, bucketPartitions, "partition", name)
}

// ListPartitions lists the newest first, as ListCampaigns. It reads all of them:
// PutPartition keeps them few.
func (x *Tx) ListPartitions(limit int, cursor string) ([]model.PartitionStatus, string, error) {
	list, err := all[model.PartitionStatus](x, bucketPartitions, nil)
	if err != nil {
		return nil, "", err
	}
	byKey, order := map[string]model.PartitionStatus{}, newMemory()
	var out []model.PartitionStatus
	var next string
	err = order.update(func(t kvTx) (err error) {
		for _, p := range list {
			k := key(p.Created, p.Name)
			byKey[string(k)] = p
			if err := t.put(bucketPartitions, k, []byte{}); err != nil {
				return err
			}
		}
		out, next, err = page(&Tx{t}, "partitions", bucketPartitions, nil, true, limit, cursor, func(k, _ []byte) (model.PartitionStatus, error) {
			return byKey[string(k)], nil
		})
		return err
	})
	return out, next, err
}

// DeletePartition forgets a partition. It is no error if there is none.
func (x *Tx) DeletePartition(name string) error { return x.t.delete(bucketPartitions, key(name)) }

// KeyLife is how long an idempotency key is remembered.
const KeyLife = 24 * time.Hour

// idempotencyKey is what is known about a request that carried a key.
type idempotencyKey struct {
	Hash     string    `json:"hash"` // of the request
	Created  time.Time `json:"created"`
	Response []byte    `json:"response,omitempty"` // nil: not answered yet
}

// ClaimKey remembers that a request with this idempotency key and hash is
// being served. If the key is known already and younger than KeyLife, fresh is
// false and the hash of the earlier request and its response (nil while it is
// being served) are returned.
func (x *Tx) ClaimKey(k, hash string, now time.Time) (oldHash string, response []byte, fresh bool, err error) {
	if err := checkID("idempotency key", k); err != nil {
		return "", nil, false, err
	}
	if b := x.t.get(bucketKeys, key(k)); b != nil {
		old, err := decode[idempotencyKey](b)
		if err != nil {
			return "", nil, false, err
		}
		if now.Sub(old.Created) < KeyLife {
			return old.Hash, old.Response, false, nil
		}
	}
	var expired [][]byte
	x.t.scan(bucketKeys, nil, nil, false, func(bk, v []byte) bool {
		if old, err := decode[idempotencyKey](v); err == nil && now.Sub(old.Created) >= KeyLife {
			expired = append(expired, append([]byte{}, bk...))
		}
		return len(expired) < 1000
	})
	for _, bk := range expired {
		if err := x.t.delete(bucketKeys, bk); err != nil {
			return "", nil, false, err
		}
	}
	return "", nil, true, x.put(bucketKeys, key(k), idempotencyKey{Hash: hash, Created: now.UTC()})
}

// FinishKey keeps the response for whoever repeats the request.
func (x *Tx) FinishKey(k string, response []byte) error {
	rec, err := get[idempotencyKey](x, bucketKeys, "idempotency key", k)
	if err != nil {
		return err
	}
	rec.Response = response
	return x.put(bucketKeys, key(k), rec)
}

// ReleaseKey forgets a key whose request failed: it may be tried again.
func (x *Tx) ReleaseKey(k string) error { return x.t.delete(bucketKeys, key(k)) }

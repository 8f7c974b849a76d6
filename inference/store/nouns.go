package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

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

// GetInvariant finds an invariant. An empty target stands for the only one that has an
// invariant of this id; with more than one it fails with model.ErrConflict and names them.
func (x *Tx) GetInvariant(target, id string) (found model.TargetInvariant, err error) {
	list, err := x.ListInvariants(target)
	if err != nil {
		return found, err
	}
	var targets []string
	for _, inv := range list {
		if inv.ID == id {
			found, targets = inv, append(targets, inv.Target)
		}
	}
	switch len(targets) {
	case 0:
		return found, fmt.Errorf("invariant %q: %w", id, model.ErrNotFound)
	case 1:
		return found, nil
	}
	return found, fmt.Errorf("invariant %q %w: targets %s have one each: name the target", id, model.ErrConflict, strings.Join(targets, ", "))
}

// SetInvariantStatus pins, drops or (with InvariantMined) releases an invariant, which it
// finds as GetInvariant does.
func (x *Tx) SetInvariantStatus(target, id string, s model.InvariantStatus) (model.TargetInvariant, error) {
	var none model.TargetInvariant
	switch s {
	case model.InvariantMined, model.InvariantPinned, model.InvariantDrop:
	default:
		return none, fmt.Errorf("%w: status %q: use %s, %s or %s", model.ErrInvalid, s, model.InvariantPinned, model.InvariantDrop, model.InvariantMined)
	}
	inv, err := x.GetInvariant(target, id)
	if err != nil {
		return none, err
	}
	inv.Status = s
	return inv, x.put(bucketInvariants, key(inv.Target, inv.ID), inv)
}

// PinInvariant pins an invariant that need not have been mined. One that was keeps what
// was mined of it.
func (x *Tx) PinInvariant(target string, inv model.Invariant) (model.TargetInvariant, error) {
	if err := errors.Join(checkID("target", target), checkID("invariant", inv.ID)); err != nil {
		return model.TargetInvariant{}, err
	}
	list, err := x.ListInvariants(target)
	if err != nil {
		return model.TargetInvariant{}, err
	}
	if slices.ContainsFunc(list, func(i model.TargetInvariant) bool { return i.ID == inv.ID }) {
		return x.SetInvariantStatus(target, inv.ID, model.InvariantPinned)
	}
	inv.Status = model.InvariantPinned
	out := model.TargetInvariant{Target: target, Invariant: inv}
	return out, x.put(bucketInvariants, key(target, inv.ID), out)
}

// KeyLife is how long an idempotency key is remembered.
const KeyLife = 24 * time.Hour

// idempotencyKey is what is known about a request that carried a key.
type idempotencyKey struct {
	Hash     string    `json:"hash"` // of the request
	Created  time.Time `json:"created"`
	Response []byte    `json:"response,omitempty"` // nil: not answered yet
}

// keysLookedAt are the keys that a claim looks at, to remove those that expired.
const keysLookedAt = 32

// ClaimKey remembers that a request with this idempotency key and hash is
// being served. If the key is known already and younger than KeyLife, fresh is
// false and the hash of the earlier request and its response (nil while it is
// being served) are returned.
// from is where it looks for keys that expired, and next where another claim goes on.
func (x *Tx) ClaimKey(k, hash string, now time.Time, from []byte) (oldHash string, response []byte, fresh bool, next []byte, err error) {
	if err := checkID("idempotency key", k); err != nil {
		return "", nil, false, from, err
	}
	if b := x.t.get(bucketKeys, key(k)); b != nil {
		old, err := decode[idempotencyKey](b)
		if err != nil {
			return "", nil, false, from, err
		}
		if now.Sub(old.Created) < KeyLife {
			return old.Hash, old.Response, false, from, nil
		}
	}
	// Those that expired go little by little.
	var expired [][]byte
	looked := 0
	x.t.scan(bucketKeys, nil, from, false, func(bk, v []byte) bool {
		if old, err := decode[idempotencyKey](v); err == nil && now.Sub(old.Created) >= KeyLife {
			expired = append(expired, bytes.Clone(bk))
		}
		if looked++; looked == keysLookedAt {
			next = append(bytes.Clone(bk), 0)
		}
		return looked < keysLookedAt
	})
	for _, bk := range expired {
		if err := x.t.delete(bucketKeys, bk); err != nil {
			return "", nil, false, from, err
		}
	}
	return "", nil, true, next, x.put(bucketKeys, key(k), idempotencyKey{Hash: hash, Created: now.UTC()})
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

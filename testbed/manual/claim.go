package manual

import (
	"fmt"

	"netsplit/model"
)

// Claim reserves the testbed for who says so, e.g. "campaign c-1", until Release. It
// waits while a partition is being healed: the packets of its proof must not come into
// what is done there. It is a conflict if one stands.
func (ps *Partitions) Claim(who string) error {
	for {
		healing, err := ps.tryClaim(who)
		if healing == nil {
			return err
		}
		healing.turn.Lock() // for a minute at most
		healing.turn.Unlock()
	}
}

// tryClaim reserves the testbed, unless a partition stands or is healing.
func (ps *Partitions) tryClaim(who string) (healing *manualCut, err error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for name, h := range ps.cuts {
		if h.standing() {
			return nil, fmt.Errorf("%w: partition %q is %s on the testbed: heal it first", model.ErrConflict, name, h.status().State)
		}
		if !h.turn.TryLock() {
			return h, nil
		}
		h.turn.Unlock()
	}
	ps.claimed = who
	return nil, nil
}

// Release ends a claim.
func (ps *Partitions) Release() {
	ps.mu.Lock()
	ps.claimed = ""
	ps.mu.Unlock()
	ps.HealAgain()
}

// Busy says what uses the testbed, a partition or who claimed it; "" if nothing does.
func (ps *Partitions) Busy() string {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.claimed != "" {
		return ps.claimed + " is under way"
	}
	for name, h := range ps.cuts {
		if h.standing() {
			return fmt.Sprintf("partition %q is %s", name, h.status().State)
		}
	}
	return ""
}

// unclaimed says who claimed the testbed; nil: nobody did.
func (ps *Partitions) unclaimed() error {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.free()
}

// free is unclaimed for a caller who holds mu.
func (ps *Partitions) free() error {
	if ps.claimed == "" {
		return nil
	}
	return fmt.Errorf("%w: %s uses the testbed: wait for it or cancel it", model.ErrConflict, ps.claimed)
}

package run

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"netsplit/explorer/check"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

// lookApart is how long after the first final reads the second are made at least.
const lookApart = 3 * time.Second

// finalReads runs the final workloads. Where what they read lacks something, it
// runs them again when the target's own repair has had its time: that the stable
// conditions hold does not say that a merge is over.
func (r *run) finalReads(ctx context.Context, healed time.Duration) []record.Look {
	if len(r.target.Final) == 0 {
		return nil
	}
	first := record.Look{From: r.s.now()}
	r.procs.Workloads(ctx, r.target.Final, "final")
	first.To = r.s.now()
	looks := []record.Look{first}
	missing, err := r.missing()
	if err != nil {
		r.s.Fail("it is unknown whether the final reads miss something: %v", err)
	}
	if missing == 0 || ctx.Err() != nil {
		return looks
	}
	at := secondLook(r.target.Timing, healed, first.To)
	r.s.Note("the final reads miss %d thing(s): they are repeated at %v, when the target's own repair has had its time", missing, at.Round(time.Millisecond))
	select {
	case <-ctx.Done():
		return looks
	case <-time.After(at - r.s.now()):
	}
	again := record.Look{From: r.s.now()}
	again.Trouble = r.procs.Again(ctx, r.target.Final)
	again.To = r.s.now()
	if ctx.Err() != nil {
		return looks
	}
	return append(looks, again)
}

func secondLook(t model.Timing, healed, read time.Duration) time.Duration {
	return max(healed+cmp.Or(t.Repair, t.Recover), read+lookApart)
}

// missing counts what the final reads lack so far.
func (r *run) missing() (int, error) {
	if err := r.rec.Flush(); err != nil {
		return 0, err
	}
	history, _, err := rundir.ReadLines[record.Entry](r.c.Dir, rundir.HistoryFile)
	if err != nil {
		return 0, fmt.Errorf("read the history back: %w", err)
	}
	return len(check.Missing(&check.Record{Target: r.target, History: history, Scenario: r.c.Scenario})), nil
}

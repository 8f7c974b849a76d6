package store

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

// cut is a span of time in which something was cut, and the id of the run or the
// name of the manual partition whose cut it was.
type cut struct {
	whose string
	model.Annotation
}

// Cuts are sorted into classes of length, so that those which overlap a span of time
// are found without a walk over all: of class c are those shorter than 2^c ms, and
// they began less than that before the span. open is the class of those that last.
const open = 64

func (c *cut) class() uint64 {
	if c.To.IsZero() {
		return open
	}
	return uint64(bits.Len64(uint64(max(0, c.To.Sub(c.From)/time.Millisecond))))
}

func (c *cut) key() []byte { return key(c.class(), c.From, c.whose) }

// cutOfRun is nil of a run that was not cut.
func cutOfRun(r *model.RunSummary) *cut {
	if r.Proof == nil {
		return nil
	}
	return &cut{"run " + r.Run, model.Annotation{From: r.Started.Add(r.Proof.CutAt), To: r.Started.Add(max(r.Proof.HealAt, r.Proof.CutAt)),
		Title: "cut of " + string(r.Scenario.Cut().Do.Isolate), Text: r.Run + ": " + r.Verdict.Reason, Tags: []string{"cut", r.Target, string(r.Verdict.Value)}}}
}

// cutOfPartition is nil of a partition that never was in force.
func cutOfPartition(p *model.PartitionStatus) *cut {
	if p.InForce.IsZero() {
		return nil
	}
	to := p.Healed
	if to.IsZero() && p.Ended() { // it failed: from its last lapse on nothing is known
		to = p.InForce
		if n := len(p.Lapses); n > 0 {
			to = p.Lapses[n-1].From
		}
	}
	return &cut{"partition " + p.Name, model.Annotation{From: p.InForce, To: to, Title: "partition " + p.Name, Text: string(p.State), Tags: []string{"cut", "by-hand"}}}
}

func (x *Tx) putCut(c *cut) error {
	if c == nil {
		return nil
	}
	return x.put(bucketCuts, c.key(), c.Annotation)
}

func (x *Tx) deleteCut(c *cut) error {
	if c == nil {
		return nil
	}
	return x.t.delete(bucketCuts, c.key())
}

// Annotations lists the cuts of runs and of manual partitions that overlap the span,
// by their start: the last limit of them, and whether there are more.
func (x *Tx) Annotations(from, to time.Time, limit int) (out []model.Annotation, more bool, err error) {
	for class := range uint64(open + 1) {
		oldest := time.Time{}
		if class < 43 { // 2^43 ms are 279 years
			oldest = from.Add(-time.Millisecond << class)
		}
		found := 0
		last := append(key(class, to), 0xff)
		x.t.scan(bucketCuts, key(class), last, true, func(_, v []byte) bool {
			var a model.Annotation
			if a, err = decode[model.Annotation](v); err != nil || a.From.Before(oldest) {
				return false
			}
			if a.To.IsZero() || !a.To.Before(from) {
				out, found = append(out, a), found+1
			}
			return found <= limit
		})
		if err != nil {
			return nil, false, err
		}
	}
	slices.SortFunc(out, func(a, b model.Annotation) int {
		return cmp.Or(a.From.Compare(b.From), strings.Compare(a.Title, b.Title), strings.Compare(a.Text, b.Text))
	})
	if more = len(out) > limit; more {
		out = slices.Clone(out[len(out)-limit:])
	}
	return out, more, nil
}

package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"netsplit/explorer/sequence"
	"netsplit/model"
)

// maxBeside bounds the points that are told one by one.
const maxBeside = 10

// beside compares what became of nodes that crashed and that were isolated at the same point:
// behind most failures of partitions stands that who cannot be reached is taken for dead
// (NEAT study §4.3, §4.4).
type beside struct {
	at map[string]*twins // by the faults before and the point
}

type twins struct {
	point    model.Point
	after    model.Sequence
	verdicts map[model.PointFaultKind]model.VerdictValue
}

// note takes in a judged run.
func (b *beside) note(run sequence.Run, v model.VerdictValue, keys []model.PointKey) {
	n := len(run.Faults)
	if n == 0 || v != model.VerdictPass && v != model.VerdictFail {
		return
	}
	last, before := run.Faults[n-1], run.IDs[:n-1]
	if !slices.Contains([]model.PointFaultKind{model.PointCrash, model.PointSilence, model.PointIsolate}, last.Kind) || last.Place != model.PlaceBefore {
		return
	}
	key := fmt.Sprintf("%02d %s\n%s", n, before, last.Identity(keys)) // in the order in which they are told
	if b.at == nil {
		b.at = map[string]*twins{}
	}
	if b.at[key] == nil {
		b.at[key] = &twins{last.Point, before, map[model.PointFaultKind]model.VerdictValue{}}
	}
	b.at[key].verdicts[last.Kind] = v
}

// words tell where it made a difference; "" if no point had both.
func (b *beside) words() string {
	both, told := 0, []string{}
	for _, key := range slices.Sorted(maps.Keys(b.at)) {
		t := b.at[key]
		isolated, ok := t.verdicts[model.PointIsolate]
		if !ok || len(t.verdicts) < 2 {
			continue
		}
		both++
		for _, k := range []model.PointFaultKind{model.PointCrash, model.PointSilence} {
			if v, ok := t.verdicts[k]; ok && v != isolated {
				s := fmt.Sprintf("%s: isolate %s, %s %s", t.point, isolated, k, v)
				if len(t.after) > 0 {
					s += " (after " + t.after.String() + ")"
				}
				told = append(told, s)
			}
		}
	}
	if both == 0 {
		return ""
	}
	out := fmt.Sprintf("; at %d point(s) a node was both isolated and crashed, with another verdict %d time(s)", both, len(told))
	if n := len(told) - maxBeside; n > 0 {
		told = append(told[:maxBeside], fmt.Sprintf("and %d more", n))
	}
	if len(told) > 0 {
		out += ": " + strings.Join(told, "; ")
	}
	return out
}

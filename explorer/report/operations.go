package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"

	"netsplit/model"
)

type opRow struct {
	Workload, F             string
	Invoked, OK, Fail, Info int
	Lost                    int
}

// lostCheck is the check whose failure says that acknowledged writes that a
// final read does not have are lost, not merely unread.
const lostCheck = "lost-acknowledged-writes"

// operations counts what the workloads did, over time and in all.
type operations struct {
	rows []opRow
	bins [opBins][4]int // ok, lost, info, fail
	most int
	note string
	lost []string // keys in order of acknowledgement
	any  bool
}

const opBins = 116

func newOperations(in *Input, t *timeline) *operations {
	o := &operations{}
	isLost := lostKeys(in)
	rows := map[[2]string]*opRow{}
	end := t.end
	for _, op := range in.History {
		end = max(end, op.Time)
	}
	t.end = end
	lost := 0
	for _, op := range in.History {
		k := [2]string{op.Workload, op.F}
		r := rows[k]
		if r == nil {
			r = &opRow{Workload: clean(op.Workload), F: clean(op.F)}
			rows[k] = r
		}
		kind := -1
		switch op.Type {
		case model.OpInvoke:
			r.Invoked++
		case model.OpOK:
			r.OK++
			kind = 0
			if op.F == "write" && isLost[op.Key] {
				r.Lost++
				kind = 1
				lost++
				o.lost = append(o.lost, clean(fmt.Sprintf("%s acknowledged by %s at %s", op.Key, cmp.Or(op.Node, "?"), at(op.Time))))
			}
		case model.OpInfo:
			r.Info++
			kind = 2
		case model.OpFail:
			r.Fail++
			kind = 3
		}
		if kind < 0 || end <= 0 || t.stop > 0 && op.Time > t.stop && r.Invoked == 0 {
			continue // final reads are counted in the table only
		}
		b := min(opBins-1, int(float64(op.Time)/float64(end)*opBins))
		if b >= 0 {
			o.bins[b][kind]++
			o.any = true
		}
	}
	for _, r := range rows {
		o.rows = append(o.rows, *r)
	}
	slices.SortFunc(o.rows, func(a, b opRow) int {
		return cmp.Or(cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.F, b.F))
	})
	for _, b := range o.bins {
		o.most = max(o.most, b[0]+b[1]+b[2]+b[3])
	}
	if lost > 0 {
		o.note = fmt.Sprintf("%d acknowledged writes are not in the final read: lost.", lost)
	}
	if len(o.lost) > 400 {
		rest := len(o.lost) - 400
		o.lost = append(o.lost[:400:400], fmt.Sprintf("… and %d more", rest))
	}
	return o
}

// lostKeys are keys acknowledged and absent from the final read, where the
// check that compares the two failed.
func lostKeys(in *Input) map[string]bool {
	failed := slices.ContainsFunc(in.Summary.Verdict.Failures, func(f model.Failure) bool { return f.Check == lostCheck })
	there := map[string]bool{}
	for _, op := range in.History {
		if op.F == "final-read" && op.Type == model.OpOK {
			there[op.Key] = true
		}
	}
	lost := map[string]bool{}
	if !failed || len(there) == 0 {
		return lost
	}
	for _, op := range in.History {
		if op.F == "write" && op.Type == model.OpOK && !there[op.Key] {
			lost[op.Key] = true
		}
	}
	return lost
}

// svg draws operations completed over time, stacked: acknowledged, lost,
// unknown, refused.
func (o *operations) svg(t *timeline) template.HTML {
	if !o.any {
		return ""
	}
	a := axis{t.end}
	d := &drawing{}
	const top, bottom = 44.0, 180.0
	a.ticks(d, top, bottom)
	t.marks(d, a, top, bottom)
	w := (runWidth - runLeft - runRight) / opBins
	for i, b := range o.bins {
		x, y := runLeft+float64(i)*w, bottom
		for k, class := range []string{"op-ok", "op-lost", "op-info", "op-fail"} {
			if b[k] == 0 {
				continue
			}
			h := float64(b[k]) / float64(o.most) * (bottom - top - 8)
			d.rect(class, x+0.5, y-h, w-1, h)
			y -= h
		}
	}
	per := float64(t.end.Seconds()) / opBins
	d.text("lane-name end", runLeft-10, top+14, fmt.Sprintf("%d", o.most))
	d.text("lane-name end", runLeft-10, bottom, "0")
	d.text("lane-name end", runLeft-10, (top+bottom)/2, fmt.Sprintf("operations per %.2g s", per))
	x := runLeft
	var total [4]int
	for _, b := range o.bins {
		for k := range b {
			total[k] += b[k]
		}
	}
	for k, s := range []string{"acknowledged", "acknowledged, then lost", "outcome unknown", "refused"} {
		if total[k] == 0 {
			continue
		}
		s = fmt.Sprintf("%s: %d", s, total[k])
		d.rect([]string{"op-ok", "op-lost", "op-info", "op-fail"}[k], x, 6, 11, 11)
		d.text("legend", x+16, 16, s)
		x += width(s, 12) + 40
	}
	return d.done(runWidth, bottom+22, "Operations completed over time", "wide")
}

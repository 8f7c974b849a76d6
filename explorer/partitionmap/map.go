package partitionmap

import (
	"maps"
	"slices"

	"netsplit/model"
)

// Map is the partition map of a campaign. The zero value is an empty one.
type Map struct {
	cells map[key]*cell
	runs  map[string]bool
}

type cell struct {
	runs     int
	outcomes map[model.MetKind]*model.MapOutcome
}

// Add enters what Of says of a run, once; a run that is there already is left as it is.
func (m *Map) Add(run string, v model.Verdict, rows []model.MapRow) {
	if m.runs[run] {
		return
	}
	if m.cells == nil {
		m.cells, m.runs = map[key]*cell{}, map[string]bool{}
	}
	m.runs[run] = true
	for _, r := range rows {
		k := keyOf(r)
		c := m.cells[k]
		if c == nil {
			c = &cell{outcomes: map[model.MetKind]*model.MapOutcome{}}
			m.cells[k] = c
		}
		c.runs++
		for kind, n := range r.Met {
			if n == 0 {
				continue
			}
			o := c.outcomes[kind]
			if o == nil {
				o = &model.MapOutcome{Kind: kind, First: run}
				c.outcomes[kind] = o
			}
			o.First = min(o.First, run)
			count(o, v)
		}
	}
}

func count(o *model.MapOutcome, v model.Verdict) {
	switch v.Value {
	case model.VerdictPass:
		o.Passed++
	case model.VerdictFail:
		if slices.ContainsFunc(v.Failures, func(f model.Failure) bool { return f.Class != model.Documented }) {
			o.Failed++
		} else {
			o.Documented++
		}
	default:
		o.Undecided++
	}
}

// Cells lists the map, by type, from and to.
func (m *Map) Cells() []model.MapCell {
	out := make([]model.MapCell, 0, len(m.cells))
	for _, k := range slices.SortedFunc(maps.Keys(m.cells), key.compare) {
		c := m.cells[k]
		x := model.MapCell{Type: k.typ, From: k.from, To: k.to, Runs: c.runs}
		for _, kind := range model.MetKinds() {
			if o := c.outcomes[kind]; o != nil {
				x.Outcomes = append(x.Outcomes, *o)
			}
		}
		out = append(out, x)
	}
	return out
}

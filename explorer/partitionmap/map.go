package partitionmap

import (
	"maps"
	"slices"

	"netsplit/model"
)

// maxCells bounds the cells of a campaign: a target chooses the types of its messages.
const maxCells = 20000

// Map is the partition map of a campaign. The zero value is an empty one.
type Map struct {
	cells map[key]*cell
	runs  map[string]bool
	left  int // cells of runs that there was no room for
	count model.MapCount
}

type cell struct {
	runs     int
	outcomes map[model.MetKind]*model.MapOutcome
	failed   bool // it counts as that
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
			if len(m.cells) >= maxCells {
				m.left++
				continue
			}
			c = &cell{outcomes: map[model.MetKind]*model.MapOutcome{}}
			m.cells[k] = c
			m.count.Never++
		}
		c.runs++
		was := len(c.outcomes)
		for kind, n := range r.Met {
			if n == 0 {
				continue
			}
			o := c.outcomes[kind]
			if o == nil {
				o = &model.MapOutcome{Kind: kind, First: run}
				c.outcomes[kind] = o
			}
			if model.CompareRuns(run, o.First) < 0 {
				o.First = run
			}
			count(o, v)
			if o.Failed > 0 && !c.failed {
				c.failed = true
				m.count.Failed++
				if was > 0 {
					m.count.Met--
				}
			}
		}
		if was == 0 && len(c.outcomes) > 0 {
			m.count.Never--
			if !c.failed {
				m.count.Met++
			}
		}
	}
}

// Count counts the cells.
func (m *Map) Count() model.MapCount { return m.count }

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

// All is the whole map, by type, from and to.
func (m *Map) All() model.PartitionMap {
	out := model.PartitionMap{Cells: make([]model.MapCell, 0, len(m.cells)), LeftOut: m.left}
	for _, k := range slices.SortedFunc(maps.Keys(m.cells), key.compare) {
		c := m.cells[k]
		x := model.MapCell{Type: k.typ, From: k.from, To: k.to, Runs: c.runs}
		for _, kind := range model.MetKinds() {
			if o := c.outcomes[kind]; o != nil {
				x.Outcomes = append(x.Outcomes, *o)
			}
		}
		out.Cells = append(out.Cells, x)
	}
	return out
}

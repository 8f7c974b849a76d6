package wire

import "netsplit/model"

// PartitionMap says of each type of message on each directed link whether faults met it.
type PartitionMap struct {
	Items   []MapCell `json:"items" doc:"Sorted by type, from and to; what the workloads of runs had"`
	LeftOut int       `json:"leftOut,omitempty" doc:"What runs had of further cells, once for each run: a map has at most 20,000"`
}

// MapCell is a type of message on a directed link.
type MapCell struct {
	Type     string       `json:"type"`
	From     string       `json:"from"`
	To       string       `json:"to"`
	Runs     int          `json:"runs" doc:"Runs that had such a message"`
	Outcomes []MapOutcome `json:"outcomes" doc:"By kind of fault; empty: no fault ever met one"`
}

// MapOutcome counts the runs in which a kind of fault met messages of a cell.
type MapOutcome struct {
	Kind       string `json:"kind" enum:"cut,delay,duplicate,reorder,lose,crash,pause,disk" doc:"cut: a partition kept the message from its receiver; crash, pause, disk: the fault began at the message; others: the message fault acted on its packet"`
	First      string `json:"first" doc:"The first of these runs"`
	Passed     int    `json:"passed"`
	Failed     int    `json:"failed" doc:"Runs that broke a promise or a stated bound"`
	Documented int    `json:"documented" doc:"Runs that failed only as documented"`
	Undecided  int    `json:"undecided" doc:"Runs that are unknown or vacuous"`
}

// FromPartitionMap makes a PartitionMap.
func FromPartitionMap(m model.PartitionMap) PartitionMap {
	out := PartitionMap{Items: []MapCell{}, LeftOut: m.LeftOut}
	for _, c := range m.Cells {
		x := MapCell{Type: c.Type, From: string(c.From), To: string(c.To), Runs: c.Runs, Outcomes: []MapOutcome{}}
		for _, o := range c.Outcomes {
			x.Outcomes = append(x.Outcomes, MapOutcome{Kind: string(o.Kind), First: o.First, Passed: o.Passed, Failed: o.Failed, Documented: o.Documented, Undecided: o.Undecided})
		}
		out.Items = append(out.Items, x)
	}
	return out
}

package judge

import (
	"cmp"
	"slices"

	"netsplit/explorer/check"
	"netsplit/model"
)

// heard counts the messages of the workload's time, sorted, if a step of the scenario waits
// for one.
func (f *runFiles) heard() []check.Heard {
	waits := func(st model.Step) bool { return len(st.Matches()) > 0 }
	if !slices.ContainsFunc(f.meta.Scenario.Steps, waits) {
		return nil
	}
	listens := map[uint16]bool{}
	for _, p := range f.target.Protocols {
		listens[p.Port] = true
	}
	counts, on := map[check.Heard]int{}, false
	for i := range f.events {
		switch e := &f.events[i]; e.Kind {
		case model.EventWorkload:
			on = true
		case model.EventStop:
			on = false
		case model.EventMessage:
			if !on {
				continue
			}
			port := min(e.Message.FromPort, e.Message.ToPort)
			switch {
			case listens[e.Message.ToPort]:
				port = e.Message.ToPort
			case listens[e.Message.FromPort]:
				port = e.Message.FromPort
			}
			counts[check.Heard{Type: e.Message.Type, From: e.Message.From, To: e.Message.To, Port: port}]++
		}
	}
	var out []check.Heard
	for h, n := range counts {
		h.Count = n
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b check.Heard) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Port, b.Port))
	})
	return out
}

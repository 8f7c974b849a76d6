package partitionmap

import (
	"cmp"
	"slices"

	"netsplit/model"
)

// maxRows bounds what is kept of a run: a target chooses the types of its messages.
const maxRows = 2000

type key struct {
	typ      string
	from, to model.NodeID
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.typ, o.typ), cmp.Compare(k.from, o.from), cmp.Compare(k.to, o.to))
}

// Of counts what a run had of each type of message on each directed link, from the start of
// its workloads to their end, and which of them its faults met. A message that was met twice
// by one kind counts once. Of keeps at most 2,000 rows: first those that faults met, then the most
// frequent. The order is by type, from, to.
//
// It knows what the gate refused. Nobody reads what a switch drops by its rules.
func Of(s model.Scenario, events []model.Event, decisions []model.Decision) []model.MapRow {
	rows, byNum, met := map[key]*model.MapRow{}, map[uint64]*model.MapRow{}, map[uint64]map[model.MetKind]bool{}
	var frames []*model.HeldPacket // in order
	running := false
	for i := range events {
		switch e := &events[i]; e.Kind {
		case model.EventWorkload:
			running = true
		case model.EventStop:
			running = false
		case model.EventMessage:
			if m := e.Message; running && m != nil {
				k := key{m.Type, m.From, m.To}
				if rows[k] == nil {
					rows[k] = &model.MapRow{Type: m.Type, From: m.From, To: m.To}
				}
				rows[k].Seen++
				byNum[m.Num] = rows[k]
			}
		case model.EventPacket:
			if p := e.Packet; p != nil {
				frames = append(frames, p)
			}
		}
	}
	meet := func(k model.MetKind, messages ...uint64) {
		for _, n := range messages {
			r := byNum[n]
			if r == nil || met[n][k] {
				continue
			}
			if met[n] == nil {
				met[n] = map[model.MetKind]bool{}
			}
			met[n][k] = true
			if r.Met == nil {
				r.Met = map[model.MetKind]int{}
			}
			r.Met[k]++
		}
	}
	stopped := map[uint64]string{} // why a frame did not pass
	for i := range decisions {
		if d := &decisions[i]; d.Frame != 0 && (d.Action == model.DropPacket || d.Action == model.ResetConn) {
			stopped[d.Frame] = d.Reason
		}
	}
	on, passed := map[uint64][]uint64{}, map[uint64]bool{} // messages
	for _, p := range frames {
		all := slices.Concat(p.Messages, p.Again)
		on[p.Frame] = all
		switch why, dropped := stopped[p.Frame]; {
		case !dropped:
			for _, n := range all {
				passed[n] = true
			}
		case why == model.ReasonAcross: // a message that passed before is carried once more: it was not kept back
			meet(model.MetCut, slices.DeleteFunc(slices.Clone(all), func(n uint64) bool { return passed[n] })...)
		}
	}
	for i := range decisions {
		d := &decisions[i]
		do := model.Fault{}
		if at := max(d.Fault, d.Step) - 1; at >= 0 && at < len(s.Steps) {
			do = s.Steps[at].Do
		}
		switch {
		case d.Fault > 0 && do.Message != nil && d.Frame != 0:
			meet(model.MetKind(do.Message.Kind), on[d.Frame]...)
		case d.Message == 0 || d.Step == 0:
		case d.Disk != "" && d.Verb != model.NodeStart:
			meet(model.MetDisk, d.Message)
		case d.Verb == model.NodeKill:
			meet(model.MetCrash, d.Message)
		case d.Verb == model.NodePause:
			meet(model.MetPause, d.Message)
		}
	}
	var out []model.MapRow
	for _, r := range rows {
		out = append(out, *r)
	}
	if len(out) > maxRows {
		slices.SortFunc(out, func(a, b model.MapRow) int {
			return cmp.Or(cmp.Compare(len(b.Met), len(a.Met)), cmp.Compare(b.Seen, a.Seen), keyOf(a).compare(keyOf(b)))
		})
		out = out[:maxRows]
	}
	slices.SortFunc(out, func(a, b model.MapRow) int { return keyOf(a).compare(keyOf(b)) })
	return out
}

func keyOf(t model.MapRow) key { return key{t.Type, t.From, t.To} }

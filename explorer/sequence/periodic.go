package sequence

import (
	"maps"
	"slices"
	"time"

	"netsplit/model"
)

// Clean is what a clean run says about periods: its messages in order of time, operations
// on files among them, from their host to nobody, and the
// time from Start to Stop in which the workload ran. All times are since the run
// started; the record goes on until Ended.
type Clean struct {
	Messages           []model.Message
	Start, Stop, Ended time.Duration
}

// CleanOf reads a clean run.
func CleanOf(events []model.Event) Clean {
	var c Clean
	for _, e := range events {
		c.Ended = max(c.Ended, e.At)
		switch e.Kind {
		case model.EventMessage:
			c.Messages = append(c.Messages, *e.Message)
		case model.EventFile:
			if typ := e.File.Point(); typ != "" {
				c.Messages = append(c.Messages, model.Message{Type: typ, From: e.File.Host, At: e.At})
			}
		case model.EventWorkload:
			c.Start = e.At
		case model.EventStop:
			c.Stop = e.At
		}
	}
	if c.Stop == 0 {
		c.Stop = c.Ended
	}
	return c
}

// Period is a message type that timers of the target send.
type Period struct {
	Type string
	// Every is the time from one such message to the next of the same sender to the
	// same receiver and port: the middle one, each gap counted by its length, so that the
	// messages of one tick count for nothing.
	Every time.Duration
}

// What shows that a type is periodic.
const (
	// minGaps is how many steady times from one message to the next a flow must show in one run to
	// be looked at; lookedAt is the share of a type's messages on such flows.
	minGaps  = 4
	lookedAt = 0.7
	// steadyShare of the time must lie in gaps within half of the middle one. Of messages
	// that come at random, 0.51 does.
	steadyShare = 0.75
	// maxSilence is how many periods a type may be silent at an end of a run that has it.
	maxSilence = 2
	// idleShare is how much of its rate a type must keep while no workload runs: what a
	// steady workload causes is as steady as a timer, and stops with the workload.
	idleShare = 0.5
	// minIdle is how many messages of the type the idle time must have room for.
	minIdle = 2
)

// flow is where a message goes in a run.
type flow struct {
	run      int
	from, to model.NodeID
	port     uint16
}

// Periodic lists the types that clean runs show to be periodic, sorted by name. A type
// is periodic if, from one sender to one receiver and port, the time from one message
// or burst of messages to the next is steady, with a workload and without, and if it
// does not end before the record does. What cannot be told, since the runs have too few
// of them or no idle time, is not periodic: to leave a type out hides points.
func Periodic(runs []Clean) []Period {
	byType := map[string][][]model.Message{}
	for i, r := range runs {
		for _, m := range r.Messages {
			if byType[m.Type] == nil {
				byType[m.Type] = make([][]model.Message, len(runs))
			}
			byType[m.Type][i] = append(byType[m.Type][i], m)
		}
	}
	var out []Period
	for _, typ := range slices.Sorted(maps.Keys(byType)) {
		ms := byType[typ]
		if !goesOn(runs, ms) {
			continue
		}
		if every, ok := steady(runs, ms); ok {
			out = append(out, Period{typ, every})
		}
	}
	return out
}

// goesOn says that messages of a type come without a workload, too.
func goesOn(runs []Clean, ms [][]model.Message) bool {
	var all, idleTime, count, idle float64
	for i, r := range runs {
		if len(ms[i]) == 0 {
			continue
		}
		from := min(ms[i][0].At, r.Start)
		all += float64(r.Ended - from)
		idleTime += float64(r.Start - from + r.Ended - r.Stop)
		for _, m := range ms[i] {
			count++
			if m.At < r.Start || m.At > r.Stop {
				idle++
			}
		}
	}
	room := count * idleTime / max(all, 1)
	return room >= minIdle && idle >= idleShare*room
}

// steady says whether a type has the gaps of timers, and the middle one of the flow
// with the most messages.
func steady(runs []Clean, ms [][]model.Message) (time.Duration, bool) {
	gaps, sent, count := map[flow][]time.Duration{}, map[flow]int{}, 0
	for i, run := range ms {
		last := map[flow]time.Duration{}
		for _, m := range run {
			f := flow{i, m.From, m.To, min(m.FromPort, m.ToPort)}
			if at, ok := last[f]; ok {
				gaps[f] = append(gaps[f], m.At-at)
			}
			last[f] = m.At
			sent[f]++
			count++
		}
	}
	var all, even, every time.Duration
	looked, most := 0, 0
	for f, g := range gaps {
		mid, n := middle(g), 0
		var sum, regular time.Duration
		for _, d := range g {
			sum += d
			if d >= mid/2 && d <= mid+mid/2 {
				regular += d
				n++
			}
		}
		if n < minGaps {
			continue
		}
		all, even, looked = all+sum, even+regular, looked+sent[f]
		if n > most || n == most && mid < every {
			most, every = n, mid
		}
	}
	for i, r := range runs {
		if n := len(ms[i]); n > 0 && max(ms[i][0].At-r.Start, r.Ended-ms[i][n-1].At) > maxSilence*every {
			return 0, false
		}
	}
	return every, all > 0 && float64(even) >= steadyShare*float64(all) && float64(looked) >= lookedAt*float64(count)
}

// middle is the gap up to which half of the time lies. It sorts them.
func middle(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	var all, sum time.Duration
	for _, d := range ds {
		all += d
	}
	for _, d := range ds {
		if sum += d; sum >= all/2 {
			return d
		}
	}
	return 0
}

// Names is the set of the types, as Options.Periodic wants it.
func Names(ps []Period) map[string]bool {
	out := map[string]bool{}
	for _, p := range ps {
		out[p.Type] = true
	}
	return out
}

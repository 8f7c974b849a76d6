package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// traceEvent is an event of the Trace Event Format.
type traceEvent struct {
	Name string  `json:"name"`
	Ph   string  `json:"ph"`
	Pid  int     `json:"pid"`
	Tid  int     `json:"tid"`
	Ts   float64 `json:"ts"` // µs
	Dur  float64 `json:"dur,omitempty"`
	Cat  string  `json:"cat,omitempty"`
	ID   int64   `json:"id,omitempty"`
	Bp   string  `json:"bp,omitempty"`
	S    string  `json:"s,omitempty"`

	slice int            // of an arrow: the place of what it begins or ends at
	Args  map[string]any `json:"args,omitempty"`
}

// Processes of a trace.
const (
	faultPid = 1 + iota
	hostPid
	operationPid
)

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// writeTrace gives cuts, hosts and threads of workloads a track each. A message is a short
// slice on both hosts with an arrow between them; one that did not pass has no arrow.
func writeTrace(w io.Writer, all []happening) error {
	const thin = 20 // µs: the length of what has none
	t := &tracks{ids: map[string]int{}}
	for i, name := range []string{"cuts", "hosts", "operations"} {
		pid := faultPid + i
		t.add(traceEvent{Name: "process_name", Ph: "M", Pid: pid, Args: map[string]any{"name": name}}, traceEvent{Name: "process_sort_index", Ph: "M", Pid: pid, Args: map[string]any{"sort_index": pid}})
	}
	for _, h := range hosts(all) {
		t.id(hostPid, h)
	}
	var last time.Duration
	for _, h := range all {
		last = max(last, h.at, h.end)
	}
	type open struct {
		happening
		place int
	}
	begun := map[string]open{}
	for _, h := range all {
		switch h.kind {
		case "message":
			passed := h.end > 0 || h.fate == "pass"
			args := map[string]any{"text": h.text, "to": h.peer}
			if !passed {
				args["fate"] = notPassed(h.fate)
			}
			from, to := t.id(hostPid, h.host), t.id(hostPid, h.peer)
			left := len(t.events)
			t.add(traceEvent{Name: short(h.text), Ph: "X", Cat: "message", Pid: hostPid, Tid: from, Ts: micros(h.at), Dur: thin, Args: args})
			if passed {
				at := micros(max(h.at, h.end))
				t.add(traceEvent{Name: short(h.text), Ph: "X", Cat: "message", Pid: hostPid, Tid: to, Ts: at, Dur: thin, Args: map[string]any{"text": h.text, "from": h.host}},
					traceEvent{Name: "message", Ph: "s", Cat: "message", ID: h.n, Pid: hostPid, Tid: from, slice: left},
					traceEvent{Name: "message", Ph: "f", Bp: "e", Cat: "message", ID: h.n, Pid: hostPid, Tid: to, slice: left + 1})
			}
		case "cut":
			end := h.end
			if end == 0 {
				end = last
			}
			t.add(traceEvent{Name: h.text, Ph: "X", Cat: "cut", Pid: faultPid, Tid: t.id(faultPid, "cuts"), Ts: micros(h.at), Dur: max(thin, micros(end-h.at))})
		case "node", "obs":
			t.add(traceEvent{Name: h.text, Ph: "i", S: "t", Cat: h.kind, Pid: hostPid, Tid: t.id(hostPid, h.host), Ts: micros(h.at)})
		case "op":
			if h.fate == "invoke" {
				track := t.id(operationPid, h.group)
				begun[h.group] = open{h, len(t.events)}
				t.add(traceEvent{Name: h.text, Ph: "X", Cat: "operation", Pid: operationPid, Tid: track, Ts: micros(h.at),
					Dur: max(thin, micros(last-h.at)), Args: map[string]any{"node": h.peer, "outcome": "no answer"}})
				continue
			}
			if b, ok := begun[h.group]; ok {
				e := &t.events[b.place]
				e.Dur = max(thin, micros(h.at-b.at))
				e.Args["outcome"], e.Args["answer"] = h.fate, h.text
				delete(begun, h.group)
			}
		}
	}
	t.apart()
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": t.events, "displayTimeUnit": "ms"})
}

// tracks numbers the tracks of a trace.
type tracks struct {
	events []traceEvent
	ids    map[string]int
}

func (t *tracks) add(es ...traceEvent) { t.events = append(t.events, es...) }

func (t *tracks) id(pid int, name string) int {
	key := string(rune('0'+pid)) + name
	id, ok := t.ids[key]
	if !ok {
		id = len(t.ids) + 1
		t.ids[key] = id
		t.add(traceEvent{Name: "thread_name", Ph: "M", Pid: pid, Tid: id, Args: map[string]any{"name": name}})
	}
	return id
}

// apart moves and shortens slices so that no two of a track overlap: Perfetto drops slices that
// do. Cuts get more tracks instead. An arrow moves with its slice.
func (t *tracks) apart() {
	const tick = 0.01 // µs
	tracks := map[[2]int][]int{}
	for i, e := range t.events {
		if e.Ph == "X" {
			key := [2]int{e.Pid, e.Tid}
			tracks[key] = append(tracks[key], i)
		}
	}
	for key, places := range tracks {
		slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(t.events[a].Ts, t.events[b].Ts) })
		if key[0] == faultPid {
			t.spread(places)
			continue
		}
		free := -tick
		for n, i := range places {
			e := &t.events[i]
			if e.Ts < free+tick {
				e.Ts = free + tick
			}
			free = e.Ts
			if n > 0 {
				if before := &t.events[places[n-1]]; before.Ts+before.Dur > e.Ts {
					before.Dur = e.Ts - before.Ts
				}
			}
		}
	}
	for i := range t.events {
		if e := &t.events[i]; e.Ph == "s" || e.Ph == "f" {
			e.Ts = t.events[e.slice].Ts
		}
	}
}

// spread gives slices that overlap tracks of their own.
func (t *tracks) spread(overlapping []int) {
	var free []float64 // when each track is
	for _, i := range overlapping {
		e := &t.events[i]
		lane := slices.IndexFunc(free, func(end float64) bool { return end <= e.Ts })
		if lane < 0 {
			lane = len(free)
			free = append(free, 0)
		}
		free[lane] = e.Ts + e.Dur
		if lane > 0 {
			id := t.id(e.Pid, fmt.Sprintf("cuts %d", lane+1))
			t.events[i].Tid = id // id may have moved the events
		}
	}
}

// short cuts a text to 60 characters.
func short(text string) string {
	if r := []rune(text); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return text
}

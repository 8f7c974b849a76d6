package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
)

// What a campaign says while its runs are under way is told, once.
func TestProgressTellsWhatGoesWrongWhileRunsGoOn(t *testing.T) {
	var out bytes.Buffer
	p := progressFlags{mode: "plain"}.progress(&out, time.Now())
	for _, c := range []wire.Campaign{
		{ID: "c-1", State: "running", Reason: "fetching"},
		{ID: "c-1", State: "running", Running: []string{"c-1-r0001"}},
		{ID: "c-1", State: "running", Running: []string{"c-1-r0001"}, Reason: "no template"},
		{ID: "c-1", State: "running", Reason: "no template"},
		{ID: "c-1", State: "running", Running: []string{"c-1-r0002"}, Reason: "no template"},
	} {
		if err := p.update(context.Background(), nil, c); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.TrimSpace(out.String()); got != "no template" {
		t.Errorf("told %q", got)
	}
}

// How long a campaign has to go is told from the runs that finished, not from how
// long the one under way lasts, nor from what was made before the first.
func TestTheTimeLeftIsThatOfTheRunsToCome(t *testing.T) {
	began := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		labs   int
		before int   // done when somebody began to look
		ends   []int // seconds after that
		now    int
		want   time.Duration
	}{
		"none is done":                {1, 0, nil, 50, 0},
		"the first, with a template":  {1, 0, []int{100}, 100, 900 * time.Second},
		"two":                         {1, 0, []int{100, 160}, 160, 480 * time.Second},
		"two, half a run later":       {1, 0, []int{100, 160}, 190, 450 * time.Second},
		"two, and one that is slow":   {1, 0, []int{100, 160}, 700, 5 * time.Second},
		"two labs, one each":          {2, 0, []int{100, 101}, 101, 404 * time.Second},
		"two labs, two each":          {2, 0, []int{100, 101, 160, 161}, 161, 180 * time.Second},
		"somebody looks in between":   {1, 4, nil, 50, 0},
		"and sees one end, then more": {1, 4, []int{30, 90}, 90, 240 * time.Second},
		"all are done":                {1, 8, []int{30, 90}, 90, 0},
	} {
		var p pace
		p.see(began, began, c.before, c.labs)
		for i, end := range c.ends {
			p.see(began, began.Add(time.Duration(end)*time.Second), c.before+i+1, c.labs)
		}
		now := began.Add(time.Duration(c.now) * time.Second)
		p.see(began, now, c.before+len(c.ends), c.labs)
		if got := p.left(now, 10).Round(time.Second); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A replay says what it repeats a run on.
func TestAReplaySaysWhatItIsMadeOn(t *testing.T) {
	if got, want := madeOn(wire.CampaignSpec{Target: "hdfs@3.3.0", Args: map[string]string{"rate": "3", "bug": "true"}}), "hdfs@3.3.0 with bug=true, rate=3"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := madeOn(wire.CampaignSpec{Target: "gossip"}); got != "gossip" {
		t.Errorf("%q", got)
	}
}

// A run says what it does: making a template takes a minute in which nothing else
// is seen to happen.
func TestProgressTellsWhatRunsDo(t *testing.T) {
	p := progressFlags{mode: "plain"}.progress(&bytes.Buffer{}, time.Now())
	c := wire.Campaign{ID: "c-1", State: "running", Running: []string{"c-1-r0001", "c-1-r0002", "c-1-r0003"},
		Doing: map[string]string{"c-1-r0001": "template", "c-1-r0002": "workload"}}
	if got, want := p.status(c), "now: r0001 (template) r0002 (workload) r0003;"; !strings.Contains(got, want) {
		t.Errorf("%q does not say %q", got, want)
	}
}

// A replay looks for no findings: it counts what failed again.
func TestAReplayTellsHowOftenItFailedAgain(t *testing.T) {
	p := progressFlags{mode: "plain"}.progress(&bytes.Buffer{}, time.Now())
	c := wire.Campaign{ID: "c-2", State: "running", Done: 4, Planned: 10, Reproduced: 3, Spec: wire.CampaignSpec{Replay: "c-1-r0004"}}
	if got, want := p.status(c), "4 of at most 10 runs, 3 failed as c-1-r0004 did;"; !strings.Contains(got, want) {
		t.Errorf("%q has no %q", got, want)
	}
}

// TestProgressTellsEveryRunOnce: however many there are and in whatever order they
// finish, and without reading the runs again that were told.
func TestProgressTellsEveryRunOnce(t *testing.T) {
	const n, labs = 1500, 2
	var list []wire.RunRow // the last one started first
	requested, rows := 0, 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		var page wire.Runs
		page.Items = list[from:min(len(list), from+limit)]
		if from+limit < len(list) {
			page.Next = strconv.Itoa(from + limit)
		}
		requested, rows = requested+1, rows+len(page.Items)
		if err := json.NewEncoder(w).Encode(page); err != nil {
			t.Error(err)
		}
	}))
	defer srv.Close()
	cl, err := client.New(client.Config{API: srv.URL, Token: "any"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p := progressFlags{mode: "plain"}.progress(&out, time.Now())
	id := func(i int) string { return fmt.Sprintf("c-1-r%04d", i) }
	var order []int // in which runs finish: each tenth takes as long as 40 others
	for i := range n + 40 {
		if i < n && i%10 != 0 {
			order = append(order, i)
		}
		if late := i - 40; late >= 0 && late%10 == 0 {
			order = append(order, late)
		}
	}
	var want []string
	looks := 0
	for done, i := range order {
		at, _ := slices.BinarySearchFunc(list, id(i), func(r wire.RunRow, id string) int { return strings.Compare(id, r.ID) })
		list = slices.Insert(list, at, wire.RunRow{ID: id(i), Verdict: wire.Verdict{Value: "pass", Reason: "all held"}})
		want = append(want, fmt.Sprintf("%s  pass    all held", id(i)))
		if done%3 == 1 {
			continue // two are found at once
		}
		for range 4 {
			if err := p.update(context.Background(), cl, wire.Campaign{ID: "c-1", State: "running", Done: done + 1, Spec: wire.CampaignSpec{Labs: labs}}); err != nil {
				t.Fatal(err)
			}
		}
		looks++
	}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if requested > 2*looks || rows > 30*n {
		t.Errorf("%d requests with %d rows in all, for %d runs seen in %d looks", requested, rows, n, looks)
	}
}

// TestProgressWarns: of each mark of a wrong target file once, on a terminal with how
// to stop.
func TestProgressWarns(t *testing.T) {
	var out bytes.Buffer
	p := progressFlags{mode: "plain"}.progress(&out, time.Now())
	p.stop = "^C"
	c := wire.Campaign{ID: "c-1", State: "running", Warnings: []model.Warning{{Kind: "half", About: "x", Text: "put fails in 3 of 6 fault runs", Advice: "read r1"}}}
	for range 2 {
		p.warn(c)
		c.Warnings[0].Text = "put fails in 4 of 7 fault runs"
	}
	if got, want := out.String(), "warning: put fails in 3 of 6 fault runs\n  what to change: read r1\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	out.Reset()
	p.redraw = true
	c.Warnings[0].Kind = "clean"
	p.warn(c)
	if !strings.HasSuffix(out.String(), "\n  to stop: ^C\n") {
		t.Errorf("%q", out.String())
	}
	out.Reset()
	p.where = (&scenarioFile{name: "a.yaml", lines: []int{2, 5}}).where
	c.Warnings = []model.Warning{{Kind: model.WarnLate, About: "step 2", Text: "step 2 (crash n1) begins only if", Advice: "earlier"}}
	p.warn(c)
	if got := out.String(); !strings.HasPrefix(got, "warning: a.yaml:5: step 2 (crash n1) begins only if\n") {
		t.Errorf("%q", got)
	}
}

// TestTheStatusLineDoesNotWrap: a line that did could not be overwritten.
func TestTheStatusLineDoesNotWrap(t *testing.T) {
	var out bytes.Buffer
	p := progressFlags{mode: "auto"}.progress(&out, time.Now())
	if long := strings.Repeat("é", 200); p.fitting(long) != long {
		t.Error("a line that is no terminal's was cut")
	}
	for _, columns := range []int{0, 1, 2, 80, 300} {
		p.columns = func() int { return columns }
		got := []rune(p.fitting(strings.Repeat("é", 200)))
		if want := columns - 1; columns > 1 && columns < 200 && (len(got) != want || got[want-1] != '…') || (columns < 2 || columns > 200) && len(got) != 200 {
			t.Errorf("%d columns: %d runes", columns, len(got))
		}
	}
	p.redraw, p.columns = true, func() int { return 20 }
	if err := p.update(t.Context(), nil, wire.Campaign{ID: "c-20260102-030405-1", State: "running", Running: []string{"r1", "r2"}}); err != nil {
		t.Fatal(err)
	}
	if n := len([]rune(strings.TrimPrefix(out.String(), "\r"))); n == 0 || n > 19 {
		t.Errorf("%q has %d runes", out.String(), n)
	}
}

// TestABudgetIsWholeInTheQueue, and is spent from then on.
func TestABudgetIsWholeInTheQueue(t *testing.T) {
	p := progressFlags{mode: "plain"}.progress(io.Discard, time.Now().Add(-2*time.Hour))
	c := wire.Campaign{ID: "c-1", State: "queued", Spec: wire.CampaignSpec{Budget: wire.Span(time.Hour)}}
	for range 2 {
		if line := p.status(c); !strings.Contains(line, "at most 1h0m0s") {
			t.Errorf("%s: %s", c.State, line)
		}
		if c.State == "queued" && !p.started.IsZero() {
			t.Error("its time runs in the queue")
		}
		c.State = "running"
	}
	p.started = p.started.Add(-20 * time.Minute)
	if line := p.status(c); !strings.Contains(line, "at most 40m0s") {
		t.Errorf("%s: %s", c.State, line)
	}
}

// TestRunsThatWereCutShort do not count as done: they hide no other, and have no verdict.
func TestRunsThatWereCutShort(t *testing.T) {
	row := func(id string, short bool) wire.RunRow {
		return wire.RunRow{ID: id, Verdict: wire.Verdict{Value: "unknown"}, CutShort: short}
	}
	list := []wire.RunRow{row("c-1-r0004", false), row("c-1-r0003", true), row("c-1-r0002", false), row("c-1-r0001", true)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewEncoder(w).Encode(wire.Runs{Items: list}); err != nil {
			t.Error(err)
		}
	}))
	defer srv.Close()
	cl, err := client.New(client.Config{API: srv.URL, Token: "any"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p := progressFlags{mode: "plain"}.progress(&out, time.Now())
	all := list
	for _, look := range []struct{ from, done int }{{2, 1}, {0, 2}} {
		list = all[look.from:]
		if err := p.update(t.Context(), cl, wire.Campaign{ID: "c-1", State: "running", Done: look.done}); err != nil {
			t.Fatal(err)
		}
	}
	if told := strings.Count(out.String(), "c-1-r"); told != len(all) {
		t.Errorf("%d of %d runs are told:\n%s", told, len(all), &out)
	}
	v, _, err := countRuns(t.Context(), cl, "c-1")
	if err != nil || v.String() != "2 unknown, 2 cut short" {
		t.Errorf("%s, %v", v, err)
	}
}

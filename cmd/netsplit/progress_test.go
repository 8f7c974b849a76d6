package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
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

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

// A replay says what it repeats a run on.
func TestAReplaySaysWhatItIsMadeOn(t *testing.T) {
	if got, want := madeOn(wire.CampaignSpec{Target: "hdfs@3.3.0", Args: map[string]string{"rate": "3", "bug": "true"}}), "hdfs@3.3.0 with bug=true, rate=3"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := madeOn(wire.CampaignSpec{Target: "gossip"}); got != "gossip" {
		t.Errorf("%q", got)
	}
}

package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"netsplit/api/wire"
)

// TestCausesComeInPages, without their runs; one has them all.
func TestCausesComeInPages(t *testing.T) {
	srv := serve(t, newFake(t))
	page, err := read[wire.Causes](srv, "/v1/campaigns/c-1/causes?limit=2")
	if err != nil || len(page.Items) != 2 || page.Next != "cause-1" || page.Items[0].Runs != nil || page.Items[0].Seen != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	page, err = read[wire.Causes](srv, "/v1/campaigns/c-1/causes?limit=2&cursor="+page.Next)
	if err != nil || len(page.Items) != 1 || page.Next != "" || page.Items[0].ID != "cause-2" {
		t.Errorf("second page: %+v, %v", page, err)
	}
	one, err := read[wire.Cause](srv, "/v1/campaigns/c-1/causes/cause-2")
	if err != nil || len(one.Runs) != 1 || one.Steps[0] != "crash n1" {
		t.Errorf("%+v, %v", one, err)
	}
	expect(t, srv, 404, "GET", "/v1/campaigns/c-1/causes/cause-9", "")
	expect(t, srv, 404, "GET", "/v1/campaigns/c-9/causes", "")
	expect(t, srv, 422, "GET", "/v1/campaigns/c-1/causes?cursor=x", "")
}

// TestASmallestScenarioIsOneThatACampaignTakes: its cut is a partition, and nothing is said
// twice. A list of campaigns does not have it.
func TestASmallestScenarioIsOneThatACampaignTakes(t *testing.T) {
	srv := serve(t, newFake(t))
	c, err := read[wire.Campaign](srv, "/v1/campaigns/c-1")
	if err != nil || len(c.Shrunk) != 1 || c.Shrunk[0].All.Failed != 2 || c.Shrunk[0].Steps[0].Needed != "yes" {
		t.Fatalf("%+v, %v", c.Shrunk, err)
	}
	sc := c.Shrunk[0].Smallest
	if do := sc.Steps[0].Do; do.Isolate != "" || do.Cut == nil || do.Cut.Shape != "complete" {
		t.Errorf("%+v", do)
	}
	b, err := json.Marshal(wire.CampaignSpec{Target: "gossip", Scenario: sc})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, srv, 202, "POST", "/v1/campaigns", string(b))
	expect(t, srv, 202, "POST", "/v1/campaigns", `{"script":{"name":"mine.yaml","text":"steps: []"}}`)
	all, err := read[wire.Campaigns](srv, "/v1/campaigns")
	if err != nil || len(all.Items) != 3 || all.Items[0].Shrunk != nil || all.Items[1].Shrunk != nil || all.Items[0].Spec.Script.Text != "" || all.Items[0].Spec.Script.Name != "mine.yaml" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestShrinkOfASearchIsOnUnlessItIsNone.
func TestShrinkOfASearchIsOnUnlessItIsNone(t *testing.T) {
	for body, want := range map[string]int{
		`{"target":"gossip","strategy":"sequences"}`:            0, // the service's default
		`{"target":"gossip","strategy":"sequences","shrink":0}`: -1,
		`{"target":"gossip","strategy":"sequences","shrink":5}`: 5,
		`{"replay":"c-1-r0001","shrink":4}`:                     4,
		`{"replay":"c-1-r0001","shrink":0}`:                     0,
	} {
		var s wire.CampaignSpec
		if err := json.NewDecoder(strings.NewReader(body)).Decode(&s); err != nil {
			t.Fatal(err)
		}
		m, err := s.Model()
		if err != nil || m.Shrink != want {
			t.Errorf("%s: %d, want %d, %v", body, m.Shrink, want, err)
		}
		again := wire.FromCampaignSpec(m)
		if back, _ := again.Model(); back.Shrink != want || (again.Shrink == nil) != (want == 0) {
			t.Errorf("%s: sent as %v", body, again.Shrink)
		}
	}
}

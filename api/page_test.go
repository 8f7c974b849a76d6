package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/api"
	"netsplit/e2e/browser"
	"netsplit/model"
)

// busy is a service with something in every table of the page: a run is under way, a cut holds,
// and there are findings with long words.
func busy(t *testing.T) *fakeService {
	t.Helper()
	f := newFake(t)
	f.targets = []model.KnownTarget{{Name: "gossip"}}
	f.note = "seen on rack 7, too"
	long := "/var/lib/netsplit/runs/c-live/c-live-r0001/nodes/n1/logs/" + strings.Repeat("x", 120)
	for _, c := range []model.Campaign{
		{ID: "c-live", State: model.CampaignRunning, Created: t0, Running: []string{"c-live-r0001"}, Done: 3, Planned: 20, Spec: model.CampaignSpec{Target: "gossip", Strategy: model.StrategyCoFI}},
		{ID: "c-2", State: model.CampaignQueued, Created: t0.Add(time.Hour), Spec: model.CampaignSpec{Target: "gossip", Args: map[string]string{"rate": "90", "writers": "2"}}},
		{ID: "c-3", State: model.CampaignFailed, Created: t0, Reason: "lab 1 of 1: no " + long, Spec: model.CampaignSpec{Target: "redis-sentinel", Strategy: model.StrategyRandom}},
	} {
		if err := f.PutCampaign(c); err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range []model.VerdictValue{model.VerdictPass, model.VerdictFail, model.VerdictUnknown, model.VerdictVacuous} {
		r := model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: fmt.Sprintf("c-1-r001%d", i), Tap: "gate", Started: t0}, Verdict: model.Verdict{Value: v, Reason: "see " + long}}
		if err := f.PutRun(r); err != nil {
			t.Fatal(err)
		}
	}
	for i, class := range []model.FailureClass{model.Documented, model.BrokenBound} {
		id := fmt.Sprintf("f-2%d", i)
		if err := f.PutFinding(model.Finding{ID: id, Campaign: "c-1", CauseID: id, Class: class, Run: "c-1-r0011", Runs: []string{"c-1-r0011"}, FirstAfter: 7, Failure: model.Failure{Check: "leaders", Summary: "two leaders in epoch 1: " + long}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Store.PutSchedule(model.Schedule{Name: "nightly", Cron: "0 3 * * *", TimeZone: "Europe/Berlin", Created: t0, Spec: model.CampaignSpec{Target: "gossip"}}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []model.PartitionStatus{
		{PartitionSpec: model.PartitionSpec{Name: "by-hand", Partition: model.Partition{Shape: model.Complete, Groups: [][]model.NodeID{{"n1"}, {"n2", "n3"}}}}},
		{PartitionSpec: model.PartitionSpec{Name: strings.Repeat("in-part", 9), Partition: model.Partition{Shape: model.Complete, Groups: [][]model.NodeID{{"n2"}, {"n3"}}, Only: []model.Traffic{{Proto: "tcp", Port: 6379}}}}},
	} {
		p.Partition.Effect, p.State, p.Created, p.InForce, p.Wanted, p.Dropped, p.LeakKnown = model.Drop, model.PartitionInForce, t0, t0, 12, 12, true
		if err := f.PutPartition(p); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// allowed serves the page and gives the address that lets a browser do all.
func allowed(t *testing.T, f *fakeService, change ...func(*api.Config)) string {
	t.Helper()
	routes := http.NewServeMux()
	srv := start(t, routes)
	acc := access(t, t.TempDir(), srv.URL)
	routes.Handle("/", handler(t, f, append(change, func(c *api.Config) { c.Access = acc })...))
	url, _ := expect(t, srv, 200, "POST", "/v1/access/page?start=true", "", "Authorization: Bearer "+token)["url"].(string)
	return url
}

// TestThePageIsReadOnEveryDevice, in light and in dark: nothing reaches over the edge of a
// telephone, controls are large enough for a finger, words stand out from what is below them.
func TestThePageIsReadOnEveryDevice(t *testing.T) {
	devices := browser.Devices()
	v := devices["light"].Open(t, allowed(t, busy(t)), `.live .event text`)
	for name, device := range devices {
		v.Take(device)
		v.Run(`location.hash = "c-1"; location.reload()`, nil) // the picture is as wide as the window was
		v.Await(`#runs a[href="/v1/runs/c-1-r0011/report"]`)
		v.Await(`.live .event text`)
		v.Await("#start-settings input")
		v.Run(`document.querySelector("#start summary").click()`, nil)
		v.Shoot("page " + name)
		seen := v.Look()
		if seen.Width > device.Width || seen.Texts < 150 {
			t.Errorf("%s: %d px wide, with %d texts", name, seen.Width, seen.Texts)
		}
		for what, list := range map[string][]string{"too small": seen.Small, "too faint": seen.Faint, "on each other": seen.Met} {
			if len(list) > 0 {
				t.Errorf("%s: %s:\n%s", name, what, strings.Join(list, "\n"))
			}
		}
	}
}

// TestThePageIsUsedByKeyboard alone: Tab reaches each control in order and shows where it is,
// Enter and Space act, and the focus comes back from a dialog and stays near what changed.
func TestThePageIsUsedByKeyboard(t *testing.T) {
	f := busy(t)
	v := browser.Devices()["light"].Open(t, allowed(t, f), `button[aria-label="Pause nightly"]`)
	v.Await("#start-settings input")
	want := v.Controls()
	if got := v.Tabs(); !slices.Equal(got, want) || len(want) < 30 {
		t.Errorf("Tab met\n%q\nof\n%q", got, want)
	}
	reach := func(name string) {
		t.Helper()
		for range 200 {
			if v.Focus().Name == name {
				return
			}
			v.Press("Tab", "")
		}
		t.Fatalf("Tab does not reach %s", name)
	}
	stays := func(after, want string) {
		t.Helper()
		var got browser.Focus
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if got = v.Focus(); got.Name == want {
				return
			}
		}
		t.Errorf("after %s, %+v has the focus; want %s", after, got, want)
	}
	is := func(after string, want model.CampaignState) {
		t.Helper()
		if c, err := f.GetCampaign("c-2"); err != nil || c.State != want {
			t.Errorf("after %s it is %s, want %s; %v", after, c.State, want, err)
		}
	}

	reach("Pause c-2")
	v.Press("Space", "")
	stays("Space at Pause", "Resume c-2")
	is("Space", model.CampaignPaused)
	v.Press("Enter", "")
	stays("Enter at Resume", "Pause c-2")
	is("Enter", model.CampaignQueued)
	reach("Cancel c-2")
	if said := v.Press("Enter", ""); !strings.Contains(said, "Cancel c-2?") {
		t.Errorf("it asks %q", said)
	}
	stays("Escape", "Cancel c-2")
	is("Escape", model.CampaignQueued)
	v.Press("Enter", "yes")
	stays("a cancelled campaign", "#c-2")
	is("Enter", model.CampaignCancelled)

	reach("Write a note about h-1")
	v.Press("Enter", "")
	stays("Escape", "Write a note about h-1")
	v.Press("Enter", "fixed by #12")
	v.Run(`new Promise((done) => { const look = () => document.getElementById("histories").textContent.includes("fixed by #12") ? done() : setTimeout(look, 50); look(); })`, nil)
	stays("a note", "Write a note about h-1")

	reach("Heal by-hand")
	v.Press("Enter", "")
	stays("a heal", "Heal by-hand") // it heals now, and may be asked again
	reach("Delete nightly")
	v.Press("Enter", "yes")
	stays("a schedule that is gone", "h-schedules")
	if left, err := f.ListSchedules(); err != nil || len(left) > 0 {
		t.Errorf("schedules %v, %v", left, err)
	}

	v.Run(`document.querySelector("#start select").focus()`, nil)
	reach("go")
	v.Press("Enter", "")
	v.Await(`#campaigns a[href="#c-new-1"]`)
	stays("a start", "go")
}

// TestThePageKeepsALinkInFocus while the rows around it change.
func TestThePageKeepsALinkInFocus(t *testing.T) {
	f := newFake(t)
	c := &changing{fakeService: f}
	v := browser.Devices()["light"].Open(t, allowed(t, f, func(conf *api.Config) { conf.Service = c }), `#campaigns a[href="/v1/campaigns/c-1/report"]`)
	v.Run(`document.querySelector('#campaigns a[href="/v1/campaigns/c-1/report"]').focus()`, nil)
	before := v.Focus()
	for looks, end := 0, time.Now().Add(20*time.Second); looks < 4 && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		c.mu.Lock()
		looks = c.looks
		c.mu.Unlock()
	}
	if after := v.Focus(); after.Name != before.Name || after.Name == "" {
		t.Errorf("%+v had the focus, now %+v", before, after)
	}
}

// TestThePageHealsCancelsAndSchedules by clicks, the second after a question.
func TestThePageHealsCancelsAndSchedules(t *testing.T) {
	f := newFake(t)
	f.targets = []model.KnownTarget{{Name: "gossip"}}
	for _, id := range []string{"c-2", "c-3"} {
		if err := f.PutCampaign(model.Campaign{ID: id, State: model.CampaignQueued, Created: t0}); err != nil {
			t.Fatal(err)
		}
	}
	dom := scripted(t, f, "?start=true", `
			const asked = [];
			window.confirm = (question) => { asked.push(question); return !question.includes("c-3"); };
			const click = (label) => document.querySelector('button[aria-label="' + label + '"]').click();
			setTimeout(() => {
				click("Heal everything");
				click("Cancel c-2");
				click("Cancel c-3");
				const form = document.getElementById("start-form").elements;
				form.namedItem("when").value = "cron";
				form.namedItem("when").dispatchEvent(new Event("change"));
				form.namedItem("cron").value = "0 3 * * *";
				form.namedItem("name").value = "nightly";
				form.namedItem("go").click();
			}, 1500);
			setTimeout(() => click("Pause nightly"), 3500);
			setTimeout(() => { document.title = asked.join(" / "); }, 5500);`)
	if f.resets.Load() != 1 {
		t.Errorf("healed %d times", f.resets.Load())
	}
	for id, want := range map[string]model.CampaignState{"c-2": model.CampaignCancelled, "c-3": model.CampaignQueued} {
		if c, err := f.GetCampaign(id); err != nil || c.State != want {
			t.Errorf("%s is %s, %v; want %s", id, c.State, err, want)
		}
	}
	all, err := f.ListSchedules()
	if err != nil || len(all) != 1 || all[0].Name != "nightly" || all[0].Cron != "0 3 * * *" || !all[0].Paused || all[0].Spec.Target != "gossip@1.1" {
		t.Errorf("schedules %+v, %v", all, err)
	}
	for _, want := range []string{"Scheduled nightly", `aria-label="Resume nightly"`, "<title>Cancel c-2? It cannot be resumed. / Cancel c-3? It cannot be resumed.</title>"} {
		if !strings.Contains(dom, want) {
			t.Errorf("no %s in %s", want, dom)
		}
	}
}

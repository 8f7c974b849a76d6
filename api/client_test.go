package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
)

func connect(t *testing.T, base, token string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{API: base, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func read[T any](srv *httptest.Server, path string) (out T, err error) {
	req, err := http.NewRequest(http.MethodGet, srv.URL+path, nil)
	if err != nil {
		return out, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	return out, json.NewDecoder(res.Body).Decode(&out)
}

// The client, or who reads without one, gets what the service said.
func TestClientReachesEverything(t *testing.T) {
	ctx := context.Background()
	f := newFake(t)
	f.runPath = t.TempDir()
	if err := os.WriteFile(filepath.Join(f.runPath, "packets.pcapng"), []byte("[7]"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := start(t, handler(t, f))
	c := connect(t, srv.URL, token)
	check := func(what string, ok bool, err error) {
		t.Helper()
		if err != nil || !ok {
			t.Errorf("%s: %v, %v", what, ok, err)
		}
	}
	lost, window := 0, wire.Duration(3*time.Second)
	spec := wire.CampaignSpec{Target: "gossip", Strategy: "random", Seed: 7, Labs: 2, Runs: 9, Clean: 3, Budget: wire.Span(90 * time.Second),
		Effect: "reset", Gate: "packet-in", Retries: 1, Args: map[string]string{"bug": "true"}, MaxLost: &lost, MaxWindow: &window}
	made, err := c.CreateCampaign(ctx, spec, 0)
	check("create campaign", cmp.Equal(made.Spec, spec), err)
	stored, err := f.GetCampaign(made.ID)
	want := model.CampaignSpec{Target: "gossip", Strategy: model.StrategyRandom, Seed: 7, Labs: 2, Runs: 9, Clean: 3, Budget: 90 * time.Second,
		Effect: model.Reset, Gate: model.GateByPacketIn, Retries: 1, Args: map[string]string{"bug": "true"}, MaxLost: 0, MaxWindow: 3 * time.Second}
	check("stored spec", cmp.Equal(stored.Spec, want), err)
	replay, err := c.CreateCampaign(ctx, wire.CampaignSpec{Replay: "c-1-r0001", Runs: 10}, 0)
	check("replay", replay.Spec.Replay == "c-1-r0001" && replay.Spec.Runs == 10, err)
	got, err := c.Campaign(ctx, made.ID)
	check("campaign", cmp.Equal(got, made), err)
	cs, err := c.Campaigns(ctx, wire.CampaignFilter{Target: "gossip", State: "done"}, 0, "")
	check("done campaigns", len(cs.Items) == 1 && cs.Items[0].ID == "c-1", err)
	cs, err = read[wire.Campaigns](srv, "/v1/campaigns?limit=1")
	check("campaigns", len(cs.Items) == 1 && cs.Next != "", err)
	cs, err = read[wire.Campaigns](srv, "/v1/campaigns?limit=1&cursor="+cs.Next)
	check("second page", len(cs.Items) == 1 && cs.Items[0].ID == made.ID && cs.Next != "", err)
	got, err = c.PauseCampaign(ctx, made.ID, 0)
	check("pause", got.State == "paused", err)
	if _, err := c.PauseCampaign(ctx, "c-1", 0); !errors.Is(err, model.ErrConflict) {
		t.Errorf("pause of one that is done: %v", err)
	}
	got, err = c.ResumeCampaign(ctx, made.ID)
	check("resume", got.State == "queued", err)
	got, err = c.CancelCampaign(ctx, made.ID)
	check("cancel", got.State == "cancelled", err)
	cmpd, err := c.Compare(ctx, "c-1", "c-0")
	check("compare", cmpd.Campaign == wire.Compared{ID: "c-1", Judged: 3} && cmpd.Before.ID == "c-0" && len(cmpd.New) == 1 && cmpd.Gone != nil, err)
	if _, err := c.Compare(ctx, "c-1", ""); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("compared with nothing: %v", err)
	}
	at := t0.Add(48 * time.Hour)
	sch, err := c.PutSchedule(ctx, "nightly", wire.ScheduleSpec{Campaign: spec, At: &at})
	check("schedule", sch.Name == "nightly" && cmp.Equal(sch.Campaign, spec) && sch.At.Equal(at) && sch.Overlap == "skip" && sch.Next != nil, err)
	shown, err := c.Schedule(ctx, "nightly")
	check("its schedule", cmp.Equal(shown, sch), err)
	all, err := c.Schedules(ctx)
	check("schedules", len(all) == 1 && cmp.Equal(all[0], sch), err)
	if _, err := c.PutSchedule(ctx, "never", wire.ScheduleSpec{Campaign: spec}); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a schedule without a time: %v", err)
	}
	check("delete schedule", true, c.DeleteSchedule(ctx, "nightly"))
	if err := c.DeleteSchedule(ctx, "nightly"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	runs, err := c.Runs(ctx, wire.RunFilter{Campaign: "c-1"}, 0, "")
	check("runs", len(runs.Items) == 3, err)
	of, err := read[wire.Runs](srv, "/v1/campaigns/c-1/runs")
	check("runs of a campaign", cmp.Equal(of, runs), err)
	some, err := c.Runs(ctx, wire.RunFilter{Target: "gossip", Verdict: runs.Items[1].Verdict.Value}, 0, "")
	check("runs with a verdict", len(some.Items) > 0 && some.Items[0].Verdict.Value == runs.Items[1].Verdict.Value, err)
	some, err = c.Runs(ctx, wire.RunFilter{Target: "gossi"}, 0, "")
	check("runs of no target", len(some.Items) == 0, err)
	if _, err := c.Runs(ctx, wire.RunFilter{Campaign: "c-none"}, 0, ""); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("runs of no campaign: %v", err)
	}
	if _, err := c.Runs(ctx, wire.RunFilter{Verdict: "fine"}, 0, ""); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("runs with no verdict: %v", err)
	}
	logs, err := c.RunLogs(ctx, "c-1-r0001")
	check("logs", len(logs) == 1 && logs[0].Name == "n1-redis.log", err)
	if log, err := c.RunLog(ctx, "c-1-r0001", "packets.pcapng"); err != nil {
		t.Error(err)
	} else {
		b, err := io.ReadAll(log)
		check("log", string(b) == "[7]", errors.Join(err, log.Close()))
	}
	if err := os.WriteFile(filepath.Join(f.runPath, "c-1.html"), []byte("it says"), 0o600); err != nil {
		t.Fatal(err)
	}
	if report, err := c.CampaignReport(ctx, "c-1"); err != nil {
		t.Error(err)
	} else {
		b, err := io.ReadAll(report)
		check("report of a campaign", string(b) == "it says", errors.Join(err, report.Close()))
	}
	if _, err := c.CampaignReport(ctx, "c-9"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("report of no campaign: %v", err)
	}
	past, err := c.FindingHistories(ctx, "", "", 2, "")
	check("histories", len(past.Items) == 2 && past.Items[0].State == "new" && past.Next == "h-1", err)
	past, err = c.FindingHistories(ctx, "gossip", "gone", 0, past.Next)
	check("histories that are gone", len(past.Items) == 1 && past.Items[0].ID == "h-2" && past.Next == "", err)
	noted, err := c.NoteFinding(ctx, "h-1", "known upstream")
	check("note", noted.Note == "known upstream" && f.note == noted.Note, err)
	if _, err := c.NoteFinding(ctx, "h-9", "x"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("a note about nothing: %v", err)
	}
	pruned, err := c.Prune(ctx, wire.Retention{Age: wire.Span(720 * time.Hour), Bytes: 1 << 30})
	check("prune", pruned == wire.Pruned{Runs: 2, Bytes: 300, Left: 500, Kept: 1} && f.pruned == model.Retention{Age: 720 * time.Hour, Bytes: 1 << 30}, err)
	if _, err := c.Prune(ctx, wire.Retention{}); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("prune without a bound: %v", err)
	}
	m, err := c.PartitionMap(ctx, "c-1")
	check("partition map", len(m.Items) == 2 && m.Items[0].Outcomes[0] == wire.MapOutcome{Kind: "cut", First: "c-1-r0002", Failed: 1, Passed: 1} && m.Items[1].Outcomes != nil, err)
	for _, f := range model.ExportFormats() {
		out, err := c.ExportRun(ctx, "c-1-r0001", f)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(out)
		check("export", string(b) == string(f)+" of c-1-r0001", errors.Join(err, out.Close()))
	}
	up, err := c.UploadTarget(ctx, []byte("an archive"))
	check("upload", up == wire.Target{Name: "gossip:000000000010", Uploaded: true, Newest: true}, err)
	ts, err := c.Targets(ctx)
	check("targets", len(ts) == 1 && ts[0] == up, err)
	target, err := c.Target(ctx, "gossip@1.1")
	check("target", target.Release == "1.1" && target.Settings[0] == wire.Setting{Name: "rate", Default: "70", Help: "writes per second"}, err)
	if _, err := c.Target(ctx, "none/../gossip"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("no target: %v", err)
	}
	check("delete upload", len(f.targets) == 1, c.DeleteTarget(ctx, up.Name))
	if err := c.DeleteTarget(ctx, up.Name); !errors.Is(err, model.ErrNotFound) || len(f.targets) != 0 {
		t.Errorf("deleted twice: %v", err)
	}
	scripts, err := c.Scripts(ctx)
	check("scripts", len(scripts) == 1 && scripts[0] == wire.Script{Name: "gossip/split", Title: "two sides", Target: "gossip", Text: "name: split\n"}, err)
	run, err := c.Run(ctx, "c-1-r0001")
	row := runs.Items[1]
	check("row", row.ID == run.ID && row.Proof.Wanted == run.Proof.Wanted && cmp.Equal(row.Verdict, run.Verdict) && cmp.Equal(row.Cost, run.Cost) && row.Started.Equal(run.Started), nil)
	check("run", run.ID == "c-1-r0001" && run.Proof.CutAt == wire.Duration(1500*time.Millisecond), err)
	cause, err := c.Cause(ctx, "c-1", "cause-2")
	check("cause", cause.ID == "cause-2" && len(cause.Runs) == 1, err)
	if file, err := c.RunFile(ctx, "c-1-r0001", "packets.pcapng"); err != nil {
		t.Error(err)
	} else {
		b, err := io.ReadAll(file)
		check("file", string(b) == "[7]", errors.Join(err, file.Close()))
	}
	if _, err := c.RunFile(ctx, "c-1-r0001", "../meta.json"); err == nil {
		t.Error("a file beside the record's")
	}
	fs, err := c.Findings(ctx, "c-1", 0, "")
	check("findings", len(fs.Items) == 1, err)
	one, err := c.Finding(ctx, "f-1")
	check("row of a finding", len(one.Runs) == 1 && fs.Items[0].Runs == nil, nil)
	one.Runs = nil
	check("finding", cmp.Equal(one, fs.Items[0]), err)
	invs, err := c.Invariants(ctx, "gossip")
	check("invariants", len(invs) == 1 && invs[0].Support == 12, err)
	inv, err := c.SetInvariant(ctx, "", "inv-1", "pinned")
	check("pin", inv.Status == "pinned", err)
	inv, err = c.PinInvariant(ctx, "gossip", "v@n2 == v@n1")
	check("pin a text", inv.Status == "pinned" && inv.Text == "v@n1 == v@n2" && inv.Target == "gossip", err)
	if _, err := c.PinInvariant(ctx, "gossip", "v@n2"); err == nil || !strings.Contains(err.Error(), "write two variables") {
		t.Errorf("half an invariant was pinned: %v", err)
	}
	sw, err := c.Switches(ctx)
	check("switches", len(sw) == 2 && sw[0].Flows[0].Age == wire.Duration(1500*time.Millisecond), err)
	hs, err := c.Hosts(ctx)
	check("hosts", len(hs) == 1 && hs[0].Name == "n1", err)
	cuts, err := c.Annotations(ctx, t0, t0.Add(time.Minute), 0)
	check("annotations", len(cuts) == 2 && cuts[0].Time == t0.Add(time.Second).UnixMilli() && cuts[1].TimeEnd == t0.Add(time.Minute).UnixMilli(), err)
	cuts, err = c.Annotations(ctx, time.Time{}, time.Time{}, 1)
	check("the last annotation", len(cuts) == 2 && cuts[0].Tags == "not-shown", err)
	d, err := c.Examine(ctx)
	check("diagnosis", d.Testbed == "rack7" && len(d.Checks) == 1 && d.Checks[0].Means == "cuts by rules" && d.OK && d.Checks[0].Affects[0] == model.AbilityCut && d.Abilities[3].Absent, err)
	f.delay = 2
	p, err := c.CreatePartition(ctx, wire.PartitionSpec{Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"n1"}, {"n2"}}}}, 10*time.Second)
	check("cut", p.State == "in_force", err)
	again, err := c.Partition(ctx, p.Name)
	check("partition", again.State == "in_force", err)
	ps, err := c.Partitions(ctx, 1, "")
	check("partitions", len(ps.Items) == 1 && ps.Next == "" && ps.Items[0].Installed != nil, err)
	f.delay = 2
	p, err = c.DeletePartition(ctx, p.Name, 10*time.Second)
	check("heal", p.State == "healed", err)
	healed, err := c.Reset(ctx)
	check("reset", healed != nil && len(healed) == 0, err)
	v, err := c.Version(ctx)
	check("version", v.Version == "v0-test", err)
}

func TestClientErrors(t *testing.T) {
	ctx := context.Background()
	f := newFake(t)
	srv := start(t, handler(t, f))
	_, err := connect(t, srv.URL, "wrong").Version(ctx)
	var p *client.Problem
	if !errors.As(err, &p) || p.Status != 401 || !strings.Contains(err.Error(), "NETSPLIT_TOKEN") {
		t.Errorf("wrong token: %v", err)
	}
	c := connect(t, strings.TrimPrefix(srv.URL, "http://"), token) // no scheme
	if _, err := c.Campaign(ctx, "none"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
	if _, err := c.Run(ctx, "../campaigns/c-1"); !errors.Is(err, model.ErrNotFound) && !errors.Is(err, model.ErrInvalid) {
		t.Errorf("an id with a slash: %v", err)
	}
	_, err = c.CreateCampaign(ctx, wire.CampaignSpec{Target: "g", Strategy: "luck"}, 0)
	if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "body.strategy: ") {
		t.Errorf("bad spec: %v", err)
	}
	f.fail = model.ErrConflict
	if _, err := c.CreatePartition(ctx, wire.PartitionSpec{Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"n1"}, {"n2"}}}}, 0); !errors.Is(err, model.ErrConflict) {
		t.Errorf("conflict: %v", err)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if _, err := connect(t, other.URL, token).Version(ctx); err == nil || !strings.Contains(err.Error(), "not a netsplit daemon") {
		t.Errorf("another server: %v", err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	if _, err := connect(t, gone.URL, token).Version(ctx); !errors.Is(err, client.ErrNoDaemon) || !strings.Contains(err.Error(), "netsplit serve") {
		t.Errorf("nothing there: %v", err)
	}
	for _, bad := range []string{"ftp://x", "http://", "http://me:secret@127.0.0.1:7070", "http://127.0.0.1:7070/v1", "127.0.0.1:7070?x=secret"} {
		if _, err := client.New(client.Config{API: bad, Token: token}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("address %q: %v", bad, err)
		}
	}
}

// An answer that is lost on the way is asked for again, and the campaign is
// made once.
func TestClientRepeatsWhatGotNoAnswer(t *testing.T) {
	f := newFake(t)
	h := handler(t, f)
	var calls atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			h.ServeHTTP(httptest.NewRecorder(), r) // done, but the answer is lost
			panic(http.ErrAbortHandler)
		}
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	if _, err := connect(t, srv.URL, token).CreateCampaign(context.Background(), wire.CampaignSpec{Target: "gossip"}, 0); err != nil {
		t.Fatal(err)
	}
	list, _, err := f.ListCampaigns(model.CampaignFilter{}, 0, "")
	if err != nil || len(list) != 2 || calls.Load() != 2 {
		t.Errorf("%d campaigns after %d calls, %v", len(list)-1, calls.Load(), err)
	}
}

// TestClientHealth: what hinders a daemon is an answer; one that refuses to say is an error.
func TestClientHealth(t *testing.T) {
	f := newFake(t)
	srv := serve(t, f)
	c := connect(t, srv.URL, token)
	if h, err := c.Health(t.Context()); err != nil || !h.OK {
		t.Errorf("%+v, %v", h, err)
	}
	f.fail = model.ErrUnavailable
	if h, err := c.Health(t.Context()); err != nil || h.OK || len(h.Checks) == 0 {
		t.Errorf("%+v, %v", h, err)
	}
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"status":503,"detail":"too many requests"}`)
	}))
	defer busy.Close()
	if _, err := connect(t, busy.URL, token).Health(t.Context()); !errors.Is(err, model.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if _, err := connect(t, other.URL, token).Health(t.Context()); err == nil || !strings.Contains(err.Error(), "not a netsplit daemon") {
		t.Errorf("%v", err)
	}
}

// TestEventsFromNow: what happened before is left out, what happens is told, and a stream that
// breaks is no end of the campaign.
func TestEventsFromNow(t *testing.T) {
	f := newFake(t) // with an event of before
	srv := serve(t, f)
	c := connect(t, srv.URL, token)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	err := c.Events(ctx, func() { f.emit("run", "c-1-r0009", "pass") }, func(e model.ServiceEvent) error {
		got = append(got, e.ID)
		cancel()
		return nil
	})
	if err != nil || len(got) != 1 || got[0] != "c-1-r0009" {
		t.Errorf("%v, %v", got, err)
	}
	stop := errors.New("enough")
	for after, want := range map[uint64]uint64{0: 1, 1: 2} {
		if err := c.EventsAfter(t.Context(), after, func() {}, func(e model.ServiceEvent) error {
			if e.Num != want {
				t.Errorf("after %d came %d", after, e.Num)
			}
			return stop
		}); !errors.Is(err, stop) {
			t.Errorf("after %d: %v", after, err)
		}
	}
	if err := c.Events(t.Context(), func() { f.emit("run", "c-1-r0010", "pass") }, func(model.ServiceEvent) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
	ends := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ": netsplit\n\n")
	}))
	defer ends.Close()
	if err := connect(t, ends.URL, token).Events(t.Context(), func() {}, nil); !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "%!") {
		t.Errorf("a stream that ends: %v", err)
	}
	f.fail = model.ErrUnavailable
	if err := c.Events(t.Context(), func() { t.Error("begun") }, nil); err == nil {
		t.Error("no stream, and no error")
	}
}

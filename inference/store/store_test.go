package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/inference/store"
	"netsplit/model"
)

var t0 = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// opened is an empty store that goes with the test.
func opened(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "netsplit.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { noErr(t, s.Close()) })
	return s
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func noErr(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func campaign(i int) model.Campaign {
	return model.Campaign{ID: fmt.Sprintf("c-%d", 100-i), State: model.CampaignRunning, Created: t0.Add(time.Duration(i) * time.Second),
		Spec: model.CampaignSpec{Target: "gossip", Seed: uint64(i), Budget: time.Minute, Args: map[string]string{"bug": "true"}}}
}

func run(c string, i int) model.RunSummary {
	r := model.RunSummary{Verdict: model.Verdict{Value: model.VerdictPass, Reason: "all held"}}
	r.Campaign, r.Run, r.Started = c, fmt.Sprintf("%s-r%04d", c, i), t0.Add(time.Duration(i)*time.Minute)
	return r
}

func TestCampaignsNewestFirstByPages(t *testing.T) {
	s := opened(t)
	for i := range 7 {
		noErr(t, s.PutCampaign(campaign(i)))
	}
	changed := campaign(3)
	changed.State = model.CampaignDone
	noErr(t, s.PutCampaign(changed))
	var got []string
	cursor, pages := "", 0
	for {
		list, next, err := s.ListCampaigns(model.CampaignFilter{}, 3, cursor)
		noErr(t, err)
		for _, c := range list {
			got = append(got, c.ID)
		}
		pages++
		if cursor = next; next == "" {
			break
		}
	}
	if want := []string{"c-94", "c-95", "c-96", "c-97", "c-98", "c-99", "c-100"}; !cmp.Equal(got, want) || pages != 3 {
		t.Errorf("%d pages, %v", pages, got)
	}
	if c := must(s.GetCampaign("c-97"))(t); !cmp.Equal(c, changed) {
		t.Error(cmp.Diff(changed, c))
	}
	if _, err := s.GetCampaign("none"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	_, cur, err := s.ListCampaigns(model.CampaignFilter{}, 1, "")
	noErr(t, err)
	for _, bad := range []string{"x", "!", cur + "A", "bm9uZQ"} {
		if _, _, err := s.ListRuns(model.RunFilter{Campaign: "c-1"}, 1, bad); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
	if _, _, err := s.ListRuns(model.RunFilter{Campaign: "c-1"}, 1, cur); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("cursor of another list: %v", err)
	}
}

// TestListsOfWhatAFilterTakes, over pages: a page is full as long as there are more.
func TestListsOfWhatAFilterTakes(t *testing.T) {
	s := opened(t)
	for i := range 7 {
		c := campaign(i)
		c.Spec.Target = []string{"gossip", "gossip@2", "gossiper", "gossip:3f2a"}[i%4]
		if i > 3 {
			c.State = model.CampaignDone
		}
		noErr(t, s.PutCampaign(c))
	}
	for _, c := range []string{"c-1", "c-2"} {
		for i := range 5 {
			r := run(c, i)
			r.Target, r.Scenario.Strategy = "gossip", model.StrategyCoFI
			if i%2 == 1 {
				r.Verdict.Value = model.VerdictFail
			}
			noErr(t, s.PutRun(r))
		}
	}
	campaigns := func(f model.CampaignFilter) (out []string) {
		for cursor, more := "", true; more; more = cursor != "" {
			list, next, err := s.ListCampaigns(f, 2, cursor)
			noErr(t, err)
			for _, c := range list {
				out = append(out, c.ID)
			}
			cursor = next
		}
		return out
	}
	runs := func(f model.RunFilter) (out []string) {
		for cursor, more := "", true; more; more = cursor != "" {
			list, next, err := s.ListRuns(f, 2, cursor)
			noErr(t, err)
			if len(list) != 2 && next != "" {
				t.Errorf("%+v: a page of %d with more behind it", f, len(list))
			}
			for _, r := range list {
				out = append(out, r.Run)
			}
			cursor = next
		}
		return out
	}
	for _, c := range []struct{ got, want []string }{
		{campaigns(model.CampaignFilter{Target: "gossip"}), []string{"c-95", "c-96", "c-97", "c-99", "c-100"}},
		{campaigns(model.CampaignFilter{Target: "gossip", State: model.CampaignDone}), []string{"c-95", "c-96"}},
		{campaigns(model.CampaignFilter{State: model.CampaignFailed}), nil},
		{runs(model.RunFilter{Verdict: model.VerdictFail}), []string{"c-2-r0003", "c-2-r0001", "c-1-r0003", "c-1-r0001"}},
		{runs(model.RunFilter{Campaign: "c-1", Verdict: model.VerdictPass}), []string{"c-1-r0004", "c-1-r0002", "c-1-r0000"}},
		{runs(model.RunFilter{Target: "gossip", Strategy: model.StrategyClean}), nil},
		{runs(model.RunFilter{Target: "gossi"}), nil},
	} {
		if !cmp.Equal(c.got, c.want) {
			t.Error(cmp.Diff(c.want, c.got))
		}
	}
}

func TestRunsOfOneCampaignNewestFirst(t *testing.T) {
	s := opened(t)
	// "c" is a prefix of "c-1": its runs must not be mixed with those.
	for _, c := range []string{"c", "c-1"} {
		for i := 4; i >= 0; i-- {
			noErr(t, s.StartRun(run(c, i).RunMeta), s.PutRun(run(c, i)))
		}
	}
	list, next, err := s.ListRuns(model.RunFilter{Campaign: "c"}, 0, "")
	noErr(t, err)
	if len(list) != 5 || next != "" || list[0].Run != "c-r0004" || list[4].Run != "c-r0000" {
		t.Errorf("%d runs, next %q", len(list), next)
	}
	page1, next, err := s.ListRuns(model.RunFilter{Campaign: "c-1"}, 4, "")
	noErr(t, err)
	noErr(t, s.PutRun(run("c-1", 5))) // what comes meanwhile moves nothing
	page2, last, err := s.ListRuns(model.RunFilter{Campaign: "c-1"}, 4, next)
	noErr(t, err)
	if len(page1) != 4 || len(page2) != 1 || last != "" || page2[0].Run != "c-1-r0000" {
		t.Errorf("%d and %d runs, next %q", len(page1), len(page2), last)
	}
	if r := must(s.GetRun("c-1-r0002"))(t); !cmp.Equal(r, run("c-1", 2)) {
		t.Error(cmp.Diff(run("c-1", 2), r))
	}
}

func TestStartedRunIsUnfinishedUntilItHasASummary(t *testing.T) {
	s := opened(t)
	for i := range 3 {
		noErr(t, s.StartRun(run("c", i).RunMeta))
	}
	noErr(t, s.PutRun(run("c", 1)), s.PutRun(run("c", 2)))
	got := must(s.UnfinishedRuns())(t)
	if want := []model.RunMeta{run("c", 0).RunMeta}; !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

func TestInputsKeepTheirOrder(t *testing.T) {
	s := opened(t)
	var want []json.RawMessage
	for i := range 300 {
		in := json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))
		want = append(want, in)
		noErr(t, s.AppendInput("c", in))
	}
	noErr(t, s.AppendInput("c-2", json.RawMessage(`1`), json.RawMessage(`2`)))
	if got := must(s.Inputs("c"))(t); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	if got := must(s.Inputs("c-2"))(t); len(got) != 2 || string(got[1]) != "2" {
		t.Errorf("got %s", got)
	}
	if err := s.AppendInput("c", json.RawMessage(`{`)); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestFindingsOfOneAndOfAllCampaigns(t *testing.T) {
	s := opened(t)
	for i, c := range []string{"c1", "c1", "c2"} {
		noErr(t, s.PutFinding(model.Finding{ID: fmt.Sprintf("f-%d", i), Campaign: c, FirstAfter: 9 - i}))
	}
	noErr(t, s.PutFinding(model.Finding{ID: "f-0", Campaign: "c1", FirstAfter: 1, Runs: []string{"a", "b"}}))
	ids := func(campaign string) (out []string) {
		list, _, err := s.ListFindings(campaign, 0, "")
		noErr(t, err)
		for _, f := range list {
			out = append(out, f.ID)
		}
		return out
	}
	noErr(t, s.PutFinding(model.Finding{ID: "f-3", Campaign: "c", FirstAfter: 1}), s.PutFinding(model.Finding{ID: "f-4", Campaign: "c1-1", FirstAfter: 1}))
	if got := ids("c1"); !cmp.Equal(got, []string{"f-0", "f-1"}) {
		t.Errorf("c1: %v", got)
	}
	if got := ids(""); !cmp.Equal(got, []string{"f-2", "f-4", "f-0", "f-1", "f-3"}) {
		t.Errorf("all: %v", got)
	}
	if f := must(s.GetFinding("f-0"))(t); len(f.Runs) != 2 {
		t.Errorf("got %+v", f)
	}
	// One of an older version that is stored anew has one place, by its rank.
	noErr(t, s.PutFinding(model.Finding{ID: "f-0", Campaign: "c1", FirstAfter: 1, Rank: 2}))
	noErr(t, s.PutFinding(model.Finding{ID: "f-1", Campaign: "c1", FirstAfter: 8, Rank: 1}))
	if got := ids("c1"); !cmp.Equal(got, []string{"f-1", "f-0"}) {
		t.Errorf("ranked: %v", got)
	}
	for range 2 { // the second time it is gone already
		noErr(t, s.Update(func(tx *store.Tx) error { return tx.DeleteFinding("f-1") }))
	}
	if _, err := s.GetFinding("f-1"); !errors.Is(err, model.ErrNotFound) || !cmp.Equal(ids("c1"), []string{"f-0"}) {
		t.Errorf("after one was deleted: %v, %v", ids("c1"), err)
	}
}

func TestPinsAndDropsSurviveMining(t *testing.T) {
	s := opened(t)
	inv := func(id string, support int) model.Invariant {
		return model.Invariant{ID: id, Kind: "role", Relation: "==", Support: support, Status: model.InvariantMined}
	}
	noErr(t, s.PutInvariants("redis", []model.Invariant{inv("a", 1), inv("b", 1), inv("c", 1), inv("d", 1)}))
	must(s.SetInvariantStatus("redis", "a", model.InvariantPinned))(t)
	must(s.SetInvariantStatus("", "b", model.InvariantDrop))(t)
	must(s.SetInvariantStatus("redis", "c", model.InvariantPinned))(t)
	noErr(t, s.PutInvariants("redis", []model.Invariant{inv("a", 2), inv("b", 2), inv("e", 2)}))
	var got []string
	for _, i := range must(s.ListInvariants("redis"))(t) {
		got = append(got, fmt.Sprintf("%s %s %s %d", i.Target, i.ID, i.Status, i.Support))
	}
	want := []string{"redis a pinned 2", "redis b dropped 2", "redis c pinned 1", "redis e mined 2"}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	noErr(t, s.PutInvariants("gossip", []model.Invariant{inv("a", 1)}))
	if _, err := s.SetInvariantStatus("", "a", model.InvariantDrop); !errors.Is(err, model.ErrConflict) {
		t.Errorf("two targets: %v", err)
	}
	if _, err := s.SetInvariantStatus("redis", "zz", model.InvariantDrop); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
	if _, err := s.SetInvariantStatus("redis", "a", "great"); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("bad status: %v", err)
	}
	if all := must(s.ListInvariants(""))(t); len(all) != 5 {
		t.Errorf("%d in all", len(all))
	}
}

func TestPartitions(t *testing.T) {
	s := opened(t)
	p := model.PartitionStatus{PartitionSpec: model.PartitionSpec{Name: "p1", For: time.Second,
		Partition: model.Isolate("a", []model.NodeID{"a", "b"}, model.Drop)}, State: model.PartitionInForce, Created: t0, InForce: t0, Wanted: 7}
	noErr(t, s.PutPartition(p))
	if got := must(s.GetPartition("p1"))(t); !cmp.Equal(got, p) {
		t.Error(cmp.Diff(p, got))
	}
	if got, next, err := s.ListPartitions(0, ""); len(got) != 1 || next != "" || err != nil {
		t.Errorf("%d partitions, then %q: %v", len(got), next, err)
	}
	noErr(t, s.DeletePartition("p1"), s.DeletePartition("p1"))
	if _, err := s.GetPartition("p1"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestEndedPartitionsAreForgotten: those that ended first go, those that stand and
// the one that ended last stay, however old; the list comes by pages.
func TestEndedPartitionsAreForgotten(t *testing.T) {
	s := opened(t)
	put := func(name string, i int, st model.PartitionState) {
		p := model.PartitionStatus{PartitionSpec: model.PartitionSpec{Name: name}, State: st, Created: t0.Add(time.Duration(i) * time.Second)}
		if st == model.PartitionHealed {
			p.Healed = p.Created.Add(time.Millisecond)
		}
		noErr(t, s.PutPartition(p))
	}
	put("stands", 0, model.PartitionInForce)
	put("failed", 3000, model.PartitionFailed)
	const n = store.KeptPartitions + 98 // with the three others, one more than is let grow
	for i := range n {
		put(fmt.Sprintf("p%d", i), 2+i, model.PartitionHealed)
	}
	put("long", 1, model.PartitionFailed)

	var names []string
	for cursor := ""; ; {
		list, next, err := s.ListPartitions(150, cursor)
		noErr(t, err)
		if len(list) > 150 {
			t.Fatalf("a page of %d", len(list))
		}
		for _, p := range list {
			names = append(names, p.Name)
		}
		if cursor = next; next == "" {
			break
		}
	}
	want := []string{"failed"}
	for i := n - 1; len(want) < store.KeptPartitions-1; i-- {
		want = append(want, fmt.Sprintf("p%d", i))
	}
	if want = append(want, "long", "stands"); !cmp.Equal(names, want) {
		t.Error(cmp.Diff(want, names))
	}
}

func TestIdempotencyKeys(t *testing.T) {
	s := opened(t)
	claim := func(k, hash string, at time.Time) string {
		old, resp, fresh, err := s.ClaimKey(k, hash, at)
		noErr(t, err)
		return fmt.Sprintf("%v %q %q", fresh, old, resp)
	}
	expect := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	expect(claim("k", "h1", t0), `true "" ""`)
	expect(claim("k", "h1", t0), `false "h1" ""`)
	noErr(t, s.FinishKey("k", []byte("answer")))
	expect(claim("k", "h2", t0.Add(23*time.Hour)), `false "h1" "answer"`)
	expect(claim("k", "h2", t0.Add(24*time.Hour)), `true "" ""`)
	noErr(t, s.ReleaseKey("k"))
	expect(claim("k", "h3", t0.Add(24*time.Hour)), `true "" ""`)
	// Claiming any key forgets those that are too old.
	expect(claim("other", "h", t0.Add(72*time.Hour)), `true "" ""`)
	if err := s.FinishKey("k", nil); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("an expired key is still there: %v", err)
	}
}

// TestOldKeysGo little by little: as many claims as there were forget all of them.
func TestOldKeysGo(t *testing.T) {
	s := opened(t)
	const n = 300
	for i := range n {
		_, _, _, err := s.ClaimKey(fmt.Sprintf("old-%03d", i), "h", t0)
		noErr(t, err)
	}
	for i := range n / 10 {
		_, _, _, err := s.ClaimKey(fmt.Sprintf("new-%03d", i), "h", t0.Add(48*time.Hour))
		noErr(t, err)
	}
	for i := range n {
		if err := s.FinishKey(fmt.Sprintf("old-%03d", i), nil); !errors.Is(err, model.ErrNotFound) {
			t.Fatalf("key %d is still there: %v", i, err)
		}
	}
}

func TestUpdateIsAllOrNothing(t *testing.T) {
	s := opened(t)
	noErr(t, s.PutCampaign(campaign(1)))
	stop := errors.New("stop")
	err := s.Update(func(tx *store.Tx) error {
		changed := campaign(1)
		changed.Done = 5
		noErr(t, tx.PutRun(run("c", 1)), tx.PutCampaign(changed), tx.PutCampaign(campaign(2)))
		return stop
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if _, err := s.GetRun("c-r0001"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("run was kept: %v", err)
	}
	if c := must(s.GetCampaign("c-99"))(t); c.Done != 0 {
		t.Errorf("campaign was changed: %+v", c)
	}
	if l, _, _ := s.ListCampaigns(model.CampaignFilter{}, 0, ""); len(l) != 1 {
		t.Errorf("%d campaigns", len(l))
	}
	func() {
		defer func() {
			if recover() != "mine" {
				t.Error("the caller's own panic was not passed on")
			}
		}()
		_ = s.Update(func(tx *store.Tx) error { noErr(t, tx.PutRun(run("c", 1))); panic("mine") })
	}()
	if _, err := s.GetRun("c-r0001"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("after a panic the run was kept: %v", err)
	}
	if err := s.View(func(tx *store.Tx) error { return tx.PutRun(run("c", 1)) }); err == nil {
		t.Error("a View could write")
	}
}

func TestBadIDs(t *testing.T) {
	s := opened(t)
	for _, id := range []string{"", "a\x00b", string(make([]byte, 2000))} {
		c := campaign(1)
		c.ID = id
		if err := s.PutCampaign(c); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("id %.10q: %v", id, err)
		}
	}
}

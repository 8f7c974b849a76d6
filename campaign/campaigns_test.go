package campaign

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"netsplit/inference/store"
	"netsplit/model"
)

// A campaign that waits behind another is cancelled at once, not when its turn
// comes; one whose run was cut short says so, and not that it goes on.
func TestAQueuedCampaignIsCancelledAtOnce(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, log: slog.New(slog.DiscardHandler), store: store.NewMemory(),
		jobs: map[string]*job{}, subs: map[chan struct{}]bool{}, wake: make(chan struct{}, 1)}
	for _, id := range []string{"c-1", "c-2", "c-3"} {
		c := model.Campaign{ID: id, State: model.CampaignQueued, Spec: model.CampaignSpec{Target: "redis-sentinel"}}
		if err := s.store.PutCampaign(c); err != nil {
			t.Fatal(err)
		}
		s.enqueue(c)
	}
	if err := s.store.StartRun(model.RunMeta{Campaign: "c-2", Run: "c-2-r0001"}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // twice is harmless
		c, err := s.CancelCampaign(context.Background(), "c-2")
		if err != nil || c.State != model.CampaignCancelled || c.Ended.IsZero() {
			t.Fatalf("cancelled while queued: %+v, %v", c, err)
		}
	}
	if len(s.queue) != 2 || s.queue[0].c.ID != "c-1" || s.queue[1].c.ID != "c-3" {
		t.Errorf("queue of %d after the middle one of three was cancelled", len(s.queue))
	}

	left := filepath.Join(s.runDir("c-2", "c-2-r0001"), workDir, "n1", "data")
	if err := os.MkdirAll(left, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.resume(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(filepath.Dir(left))); err == nil {
		t.Error("the data of a run that was cut short is there still")
	}
	r, err := s.store.GetRun("c-2-r0001")
	if want := "cut short by the end of its campaign: cancelled by a user"; err != nil || r.Verdict.Reason != want {
		t.Errorf("the run under way when it was cancelled: %q, %v, want %q", r.Verdict.Reason, err, want)
	}
}

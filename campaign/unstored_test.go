package campaign

import (
	"errors"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"netsplit/internal/storetest"
	"netsplit/model"
)

// onFullDisk is a service whose store takes no campaign while the disk is full.
func onFullDisk(t *testing.T, full *bool) *Service {
	t.Helper()
	s := &Service{store: storetest.New(t), log: slog.New(slog.DiscardHandler), jobs: map[string]*job{}, subs: map[chan struct{}]bool{}, wake: make(chan struct{}, 1), cfg: Config{RunsDir: t.TempDir()}}
	s.put = func(c model.Campaign) error {
		if *full {
			return syscall.ENOSPC
		}
		return s.store.PutCampaign(c)
	}
	return s
}

// TestAnEndThatCannotBeStoredIsSeen: on a full disk a campaign ends, and whoever follows it
// would wait forever if only the store was asked. Once there is room it is stored.
func TestAnEndThatCannotBeStoredIsSeen(t *testing.T) {
	full := true
	s := onFullDisk(t, &full)
	begun := model.Campaign{ID: "c-1", State: model.CampaignRunning, Spec: model.CampaignSpec{Target: "gossip"}}
	if err := s.store.PutCampaign(begun); err != nil {
		t.Fatal(err)
	}
	s.enqueue(begun)
	j := s.queue[0]
	s.queue = nil
	s.ended(j, errors.New("write events.jsonl: no space left on device"))
	stored := func() model.CampaignState {
		t.Helper()
		c, err := s.store.GetCampaign("c-1")
		if err != nil {
			t.Fatal(err)
		}
		return c.State
	}
	see := func() {
		t.Helper()
		c, err := s.Campaign(t.Context(), "c-1")
		list, _, lerr := s.Campaigns(t.Context(), model.CampaignFilter{}, 10, "")
		if err != nil || lerr != nil || c.State != model.CampaignFailed || len(list) != 1 || list[0].State != model.CampaignFailed || list[0].Reason != c.Reason {
			t.Errorf("seen: %+v, %v; listed: %+v, %v", c, err, list, lerr)
		}
	}
	see()
	s.storeUnstored() // still full
	see()
	if st := stored(); st != model.CampaignRunning {
		t.Fatalf("stored as %s: the disk is not full", st)
	}
	if _, err := s.ResumeCampaign(t.Context(), "c-1"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("resumed on a full disk: %v", err)
	}
	see()
	if list, _, err := s.Campaigns(t.Context(), model.CampaignFilter{State: model.CampaignRunning}, 10, ""); err != nil || len(list) != 0 {
		t.Errorf("listed as running: %+v, %v", list, err)
	}
	full = false
	s.storeUnstored()
	see()
	if st := stored(); st != model.CampaignFailed || len(s.unstored) != 0 {
		t.Errorf("stored as %s, %d not stored", st, len(s.unstored))
	}
	full = true
	s.keepUnstored(model.Campaign{ID: "c-1", State: model.CampaignFailed, Ended: time.Now()})
	full = false
	if c, err := s.ResumeCampaign(t.Context(), "c-1"); err != nil || c.State != model.CampaignQueued || len(s.unstored) != 0 {
		t.Errorf("resumed: %+v, %v", c, err)
	}
}

// TestWhatIsStoredLaterStays: the store has room again when a run is booked, so an older state
// that it did not take is of no use any more.
func TestWhatIsStoredLaterStays(t *testing.T) {
	full := true
	s := onFullDisk(t, &full)
	s.enqueue(model.Campaign{ID: "c-1", State: model.CampaignRunning, Spec: model.CampaignSpec{Target: "gossip"}})
	j := s.queue[0]
	s.update(j, func(c *model.Campaign) { c.Running = []string{"c-1-r0001"} })
	if len(s.unstored) != 1 {
		t.Fatal("the disk is not full")
	}
	s.book(j, &model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: "c-1-r0001"}, Verdict: model.Verdict{Value: model.VerdictPass}})
	full = false
	s.storeUnstored()
	if c, err := s.store.GetCampaign("c-1"); err != nil || c.Done != 1 || len(c.Running) != 0 {
		t.Errorf("stored %+v, %v", c, err)
	}
}

// TestACommandContinuesNoOtherCampaign: it leaves what a process that died left to whoever
// asks for it, or to the next daemon.
func TestACommandContinuesNoOtherCampaign(t *testing.T) {
	for inProcess, want := range map[bool]int{true: 0, false: 2} {
		s := &Service{store: storetest.New(t), log: slog.New(slog.DiscardHandler), jobs: map[string]*job{}, subs: map[chan struct{}]bool{}, wake: make(chan struct{}, 1),
			cfg: Config{RunsDir: t.TempDir(), InProcess: inProcess}}
		err := errors.Join(s.store.PutCampaign(model.Campaign{ID: "c-1", State: model.CampaignRunning}), s.store.PutCampaign(model.Campaign{ID: "c-2", State: model.CampaignQueued}),
			s.store.PutCampaign(model.Campaign{ID: "c-3", State: model.CampaignPaused}), s.store.StartRun(model.RunMeta{Campaign: "c-1", Run: "c-1-r0001"}), s.resume())
		if err != nil || len(s.queue) != want {
			t.Errorf("in process %v: %d campaigns are queued, want %d: %v", inProcess, len(s.queue), want, err)
		}
		if r, err := s.Run(t.Context(), "c-1-r0001"); err != nil || !r.CutShort { // its process is dead, whoever continues
			t.Errorf("its run: %+v, %v", r, err)
		}
		if c, err := s.ResumeCampaign(t.Context(), "c-1"); err != nil || inProcess && (c.State != model.CampaignQueued || len(s.queue) != 1) {
			t.Errorf("resumed: %+v, %v", c, err)
		}
	}
}

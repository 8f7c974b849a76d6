package campaign

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/internal/storetest"
	"netsplit/model"
)

func scheduling(t *testing.T) *Service {
	t.Helper()
	return &Service{cfg: Config{RunsDir: t.TempDir(), InProcess: true}, log: slog.New(slog.DiscardHandler), store: storetest.New(t),
		jobs: map[string]*job{}, subs: map[chan struct{}]bool{}, wake: make(chan struct{}, 1), rescheduled: make(chan struct{}, 1)}
}

// needless is a target that needs nothing of the machine.
func needless(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "target.yaml")
	write(t, file, "name: mine\nnodes: [n1, n2]\nclients: [c1]\n"+
		"processes: [{name: s, hosts: [n1], command: [sleep, '9']}]\nstable: [{name: up, hosts: [n1], probe: {command: [echo, up]}, match: up}]\nvariables: []\n"+
		"workloads: [{name: w, host: c1, command: ['true']}]\nchecks: []\ntiming: {settle: 1s, workload: 1s, max_cut: 1s, recover: 1s}\n")
	return file
}

// dueAt has a schedule's time come.
func dueAt(t *testing.T, s *Service, name string, at time.Time, started bool) model.Schedule {
	t.Helper()
	c, err := s.store.GetSchedule(name)
	if err != nil {
		t.Fatal(err)
	}
	c.Next = at
	if err := s.store.PutSchedule(c); err != nil {
		t.Fatal(err)
	}
	if _, err := s.due(t.Context(), time.Now(), started); err != nil {
		t.Fatal(err)
	}
	if c, err = s.store.GetSchedule(name); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAScheduleMakesCampaigns: once, or again and again; what comes while the last one has not
// ended is left out, or waits, but no more than one does.
func TestAScheduleMakesCampaigns(t *testing.T) {
	s := scheduling(t)
	spec := model.CampaignSpec{Target: needless(t), Strategy: model.StrategyRandom, MaxLost: -1, MaxWindow: -1}
	past, soon := time.Now().Add(-time.Second), time.Now().Add(time.Hour)
	c, created, err := s.PutSchedule(t.Context(), model.Schedule{Name: "once", Spec: spec, At: soon})
	if err != nil || !created || !c.Next.Equal(soon) {
		t.Fatalf("%+v, %v", c, err)
	}
	if next, err := s.due(t.Context(), time.Now(), true); err != nil || !next.Equal(soon) || len(s.queue) != 0 {
		t.Errorf("next %v, %v, %d queued", next, err, len(s.queue))
	}
	c = dueAt(t, s, "once", past, true) // the daemon was down then
	if !c.Next.IsZero() || c.Note != "" || len(s.queue) != 1 || s.queue[0].c.ID != c.Last || s.queue[0].c.Schedule != "once" || s.queue[0].c.Spec.Seed == 0 {
		t.Errorf("%+v, %d queued", c, len(s.queue))
	}
	if next, err := s.due(t.Context(), soon.Add(time.Hour), false); err != nil || !next.IsZero() || len(s.queue) != 1 {
		t.Errorf("a schedule that is over made a campaign: next %v, %v", next, err)
	}

	// One whose time passes while it is paused is over, and says so; what is over is not changed
	// into something else that never comes.
	if _, _, err := s.PutSchedule(t.Context(), model.Schedule{Name: "late", Spec: spec, At: soon, Paused: true}); err != nil {
		t.Fatal(err)
	}
	late, err := s.store.GetSchedule("late")
	if late.At, late.Next = past, past; err != nil || s.store.PutSchedule(late) != nil {
		t.Fatal(err)
	}
	for _, paused := range []bool{true, false, false} {
		late.Paused = paused
		c, _, err := s.PutSchedule(t.Context(), late)
		if err != nil || !c.Next.IsZero() || c.Note != "it was paused then" {
			t.Errorf("paused %v: %+v, %v", paused, c, err)
		}
	}
	late.Spec.Runs = 99
	if _, _, err := s.PutSchedule(t.Context(), late); err == nil || !strings.Contains(err.Error(), "is over") {
		t.Errorf("what is over was changed: %v", err)
	}

	for _, overlap := range []model.Overlap{model.OverlapSkip, model.OverlapQueue} {
		s.queue, s.jobs = nil, map[string]*job{}
		name := "often-" + string(overlap)
		if _, _, err := s.PutSchedule(t.Context(), model.Schedule{Name: name, Spec: spec, Cron: "0 3 * * *", TimeZone: "Asia/Tokyo", Overlap: overlap}); err != nil {
			t.Fatal(err)
		}
		c = dueAt(t, s, name, past, true)
		if c.Last != "" || c.Note != "the daemon was down then" || c.Next.UTC().Hour() != 18 || !c.Next.After(time.Now()) || len(s.queue) != 0 {
			t.Errorf("missed: %+v, %d queued", c, len(s.queue))
		}
		first := dueAt(t, s, name, past, false)
		if first.Note != "" || len(s.queue) != 1 {
			t.Fatalf("%+v, %d queued", first, len(s.queue))
		}
		if c = dueAt(t, s, name, past, false); !strings.Contains(c.Note, first.Last) || c.Last != first.Last || len(s.queue) != 1 {
			t.Errorf("%s behind one that is queued: %+v, %d queued", overlap, c, len(s.queue))
		}
		s.queue = nil // it runs
		c = dueAt(t, s, name, past, false)
		if want := map[model.Overlap]int{model.OverlapSkip: 0, model.OverlapQueue: 1}[overlap]; len(s.queue) != want || (c.Note == "") != (want == 1) {
			t.Errorf("%s behind one that runs: %+v, %d queued", overlap, c, len(s.queue))
		}
	}
	s.queue, s.jobs = nil, map[string]*job{}
	last, err := s.store.GetCampaign(c.Last)
	if last.State = model.CampaignPaused; err != nil || s.store.PutCampaign(last) != nil {
		t.Fatal(err)
	}
	c.Overlap = model.OverlapSkip
	if err := s.store.PutSchedule(c); err != nil {
		t.Fatal(err)
	}
	if c = dueAt(t, s, c.Name, past, false); len(s.queue) != 0 || !strings.Contains(c.Note, last.ID) {
		t.Errorf("behind one that is paused: %+v, %d queued", c, len(s.queue))
	}
	if err := s.DeleteSchedule(t.Context(), c.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Schedule(t.Context(), c.Name); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
}

// TestAScheduleThatCannotBe is refused, and one that cannot make its campaign says why.
func TestAScheduleThatCannotBe(t *testing.T) {
	s := scheduling(t)
	spec := model.CampaignSpec{Target: needless(t), MaxLost: -1, MaxWindow: -1}
	soon := time.Now().Add(time.Hour)
	for want, c := range map[string]model.Schedule{
		"needs a time (at) or a cron expression": {Spec: spec},
		"and not both":                           {Spec: spec, At: soon, Cron: "@daily"},
		"timeZone is for cron":                   {Spec: spec, At: soon, TimeZone: "UTC"},
		"is over":                                {Spec: spec, At: soon.Add(-2 * time.Hour)},
		"write minute, hour":                     {Spec: spec, Cron: "0 25 * * *"},
		"no such time comes":                     {Spec: spec, Cron: "0 0 31 2 *"},
		"use a name of the IANA database":        {Spec: spec, Cron: "@daily", TimeZone: "Mars/Olympus"},
		`time zone "Local" is unknown`:           {Spec: spec, Cron: "@daily", TimeZone: "Local"},
		`cron "TZ=UTC": give the time zone`:      {Spec: spec, Cron: "TZ=UTC"},
		`"CRON_TZ=UTC 0 3 * * *": give`:          {Spec: spec, Cron: "CRON_TZ=UTC 0 3 * * *"},
		"give @every a time of 1s or more":       {Spec: spec, Cron: "@every -5s"},
		`overlap "both"`:                         {Spec: spec, Cron: "@daily", Overlap: "both"},
		"nosuch":                                 {Spec: model.CampaignSpec{Target: "nosuch"}, Cron: "@daily"},
	} {
		c.Name = "x"
		if _, _, err := s.PutSchedule(t.Context(), c); !errors.Is(err, model.ErrInvalid) && !errors.Is(err, model.ErrNotFound) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
	if list, err := s.Schedules(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%d kept, %v", len(list), err)
	}
	if _, _, err := s.PutSchedule(t.Context(), model.Schedule{Name: "gone", Spec: spec, Cron: "@daily"}); err != nil {
		t.Fatal(err)
	}
	c, _ := s.store.GetSchedule("gone")
	c.Spec.Target = "gone:000000000000" // somebody deleted the upload
	if err := s.store.PutSchedule(c); err != nil {
		t.Fatal(err)
	}
	if c = dueAt(t, s, "gone", time.Now().Add(-time.Second), false); !strings.HasPrefix(c.Note, "no campaign could be made: ") || c.Next.IsZero() || len(s.queue) != 0 {
		t.Errorf("%+v", c)
	}
	if c, created, err := s.PutSchedule(t.Context(), model.Schedule{Name: "gone", Spec: spec, Cron: "@hourly", Paused: true}); err != nil || created || c.Note == "" || c.Created.IsZero() {
		t.Errorf("replaced: %+v, %v", c, err)
	}
	if c = dueAt(t, s, "gone", time.Now().Add(-time.Second), false); len(s.queue) != 0 {
		t.Errorf("a paused schedule made a campaign: %+v", c)
	}
}

package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"netsplit/internal/storetest"
	"netsplit/model"
	"netsplit/record/rundir"
)

// TestADiskThatIsFullIsUnwell: of the records or of the store, in bytes or in files,
// and where the last run could not be recorded; it is said what to do.
func TestADiskThatIsFullIsUnwell(t *testing.T) {
	const enough = leastFree
	for name, c := range map[string]struct {
		runs, store room
		recorded    error
		want        string // "" if it is well
	}{
		"room":               {room{enough, 1}, room{enough, -1}, nil, ""},
		"records":            {room{enough - 1, 1}, room{enough, 1}, nil, "/r has 99 MB free, and room for 1 more files: runs fail without: delete"},
		"store":              {room{enough, 1}, room{0, -1}, nil, "/s has 0 MB free, and room for any number of files"},
		"files":              {room{enough, 0}, room{enough, 1}, nil, "/r has 100 MB free, and room for 0 more files"},
		"the last run":       {room{enough, 1}, room{enough, 1}, fmt.Errorf("write events.jsonl: %w", syscall.ENOSPC), "the last run could not be recorded: write events.jsonl: no space left on device: make room in /r"},
		"another run's fate": {room{enough, 1}, room{enough, 1}, errors.New("the switch is gone"), ""},
	} {
		s := &Service{store: storetest.New(t), cfg: Config{RunsDir: "/r", StorePath: "/s/netsplit.db"}}
		s.room = func(dir string) (room, error) {
			return map[string]room{"/r": c.runs, "/s": c.store}[dir], nil
		}
		s.noteRecorded(c.recorded)
		detail, err := s.diskHealth()
		if c.want == "" && (err != nil || !strings.Contains(detail, "100 MB free for records of runs; 100 MB free for the store")) {
			t.Errorf("%s: %q, %v", name, detail, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		s.noteRecorded(nil)
		if _, err := s.diskHealth(); c.recorded != nil && err != nil {
			t.Errorf("%s: the next run was recorded, and still: %v", name, err)
		}
	}
}

func TestTheRoomOfAFolderIsKnown(t *testing.T) {
	dir := t.TempDir()
	if r, err := roomAt(dir); err != nil || r.bytes <= 0 {
		t.Errorf("%+v, %v", r, err)
	}
	s := &Service{store: storetest.New(t), cfg: Config{RunsDir: filepath.Join(dir, "gone"), StorePath: filepath.Join(dir, "gone", "netsplit.db")}}
	if _, err := s.diskHealth(); err == nil || strings.Count(err.Error(), "the folder of ") != 1 || !strings.Contains(err.Error(), "must exist") {
		t.Errorf("%v", err)
	}
}

// TestACampaignWaitsForRoom: it says why, goes on once there is room or ends as it is asked to,
// and its budget does not run meanwhile.
func TestACampaignWaitsForRoom(t *testing.T) {
	why := fmt.Errorf("write /elsewhere/summary.json: %w", syscall.ENOSPC)
	for name, c := range map[string]struct {
		empty bool
		stop  error
	}{"emptied": {empty: true}, "paused": {stop: errPaused}, "cancelled": {stop: errCancelled}, "the daemon ends": {stop: errClosing}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			full, no := atomic.Bool{}, false
			full.Store(true)
			s := onFullDisk(t, &no)
			s.room = func(string) (room, error) {
				if full.Load() {
					return room{0, 1}, nil
				}
				return room{leastFree, 1}, nil
			}
			s.enqueue(model.Campaign{ID: "c-1", State: model.CampaignRunning, Running: []string{"c-1-r0001"}})
			j := s.queue[0]
			if !s.waitsForRoom(j, why) || s.waitsForRoom(j, errors.New("no switch")) {
				t.Error("a campaign waits for room, and for nothing else")
			}
			ended := make(chan error)
			go func() { ended <- s.awaitRoom(j, 0, why) }()
			for since := time.Now(); ; {
				got, err := s.getCampaign("c-1")
				if time.Since(since) > time.Minute {
					t.Fatalf("it does not wait: %+v, %v", got, err)
				}
				if err == nil && got.Reason != "" {
					if len(got.Running) > 0 || got.State != model.CampaignRunning || !strings.Contains(got.Reason, "the disk is full") || !strings.Contains(got.Reason, "/elsewhere/summary.json") {
						t.Errorf("while it waits: %+v", got)
					}
					break
				}
				time.Sleep(time.Millisecond)
			}
			if c.empty {
				full.Store(false)
			} else {
				j.cancel(c.stop)
			}
			if err := <-ended; !errors.Is(err, c.stop) {
				t.Errorf("it ended with %v, want %v", err, c.stop)
			}
			if got, err := s.getCampaign("c-1"); err != nil || got.Idle <= 0 || c.empty == (got.Reason != "") {
				t.Errorf("after it waited: %+v, %v", got, err)
			}
			if !c.empty && s.waitsForRoom(j, why) {
				t.Error("one that was stopped waits")
			}
		})
	}
}

// TestACampaignThatFailsOnAFullDisk names the cause and how to go on.
func TestACampaignThatFailsOnAFullDisk(t *testing.T) {
	no := false
	s := onFullDisk(t, &no)
	s.cfg.InProcess = true
	s.enqueue(model.Campaign{ID: "c-1", State: model.CampaignRunning})
	j := s.queue[0]
	err := fmt.Errorf("write /r/summary.json: %w", syscall.EDQUOT)
	if s.waitsForRoom(j, err) {
		t.Error("that of a command waits")
	}
	s.ended(j, err)
	if c, err := s.getCampaign("c-1"); err != nil || c.State != model.CampaignFailed || !strings.Contains(c.Reason, "/r/summary.json") || !strings.Contains(c.Reason, "netsplit campaign resume c-1") {
		t.Errorf("%+v, %v", c, err)
	}
}

// onePlace makes runs that end as it says.
type onePlace struct {
	place
	ends func(model.WorkItem) error
}

func (onePlace) target() *model.Target                { return &model.Target{Name: "mine"} }
func (onePlace) workers() int                         { return 1 }
func (onePlace) slot(context.Context) (func(), error) { return func() {}, nil }
func (p onePlace) run(_ context.Context, w model.WorkItem) (model.RunSummary, error) {
	return model.RunSummary{RunMeta: model.RunMeta{Campaign: w.Campaign, Run: w.Run}}, p.ends(w)
}

// TestRunsOfAFullDiskAreNotBooked: of those that are known beforehand, as replays are. They are
// made again.
func TestRunsOfAFullDiskAreNotBooked(t *testing.T) {
	s := bookkeeper(t)
	j := &job{c: model.Campaign{ID: "c-1", State: model.CampaignRunning}}
	var finished []string
	err := s.several(t.Context(), j, onePlace{ends: func(w model.WorkItem) error {
		return map[string]error{"c-1-r0001": errors.New("no switch"), "c-1-r0002": fmt.Errorf("write: %w", syscall.ENOSPC)}[w.Run]
	}}, 5, func(n int) model.WorkItem {
		return model.WorkItem{Campaign: "c-1", Run: fmt.Sprintf("c-1-r%04d", n)}
	}, func(sum model.RunSummary) { finished = append(finished, sum.Run) })
	left, uerr := s.store.UnfinishedRuns()
	if !model.IsFull(err) || len(finished) != 1 || j.c.Done != 1 || uerr != nil || len(left) != 1 || left[0].Run != "c-1-r0002" {
		t.Errorf("%v; finished %v, %d done, unfinished %+v, %v", err, finished, j.c.Done, left, uerr)
	}
}

// TestARunThatCannotBeStoredIsNotDone: it is made again.
func TestARunThatCannotBeStoredIsNotDone(t *testing.T) {
	s := bookkeeper(t)
	j := &job{c: model.Campaign{ID: "c-1", State: model.CampaignRunning}}
	s.runFinished(j, failedRun(1))
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	s.runFinished(j, failedRun(2))
	if c, err := s.getCampaign("c-1"); err != nil || c.Done != 1 || j.c.Done != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

// counting counts the runs on other machines.
type counting struct {
	noMetrics
	n *int
}

func (c counting) RunElsewhere(model.RunMetrics) { *c.n++ }

// TestARunOfARunnerCountsOnce: one whose judging met a full disk is judged again, and counts then.
func TestARunOfARunnerCountsOnce(t *testing.T) {
	s, n := bookkeeper(t), 0
	s.metrics = counting{n: &n}
	r := &remote{s: s, t: &model.Target{Name: "t", Nodes: []model.NodeID{"n1"}}}
	w := model.WorkItem{Campaign: "c1", Run: "c1-r0001"}
	dir := s.runDir(w.Campaign, w.Run)
	if err := errors.Join(os.CopyFS(dir, os.DirFS("judge/testdata/earlier/random")), rundir.WriteJSON(filepath.Join(dir, rundir.MetricsFile), model.RunMetrics{})); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		failed error
		want   int
	}{{syscall.ENOSPC, 0}, {nil, 1}} {
		if _, err := r.judge(w, time.Now(), c.failed); !errors.Is(err, c.failed) || n != c.want {
			t.Errorf("%v: %v, counted %d times, want %d", c.failed, err, n, c.want)
		}
	}
}

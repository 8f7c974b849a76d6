package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"netsplit/api/trust"
	"netsplit/api/wire"
	"netsplit/campaign/cluster"
	"netsplit/model"
	"netsplit/sut"
)

// work keeps a campaign going, and remembers what came of runs.
type work struct {
	d         *daemon
	target    string
	campaigns map[string]bool
	judged    map[string]string // verdict of each run
	cutShort  map[string]bool
	last      time.Time     // when a run was judged last
	gap       time.Duration // the longest time in which none was
	givenUp   int
}

// maxGap is how long no run may be judged: runs take some seconds, and one whose runner was killed
// some more.
const maxGap = 3 * time.Minute

func newWork(d *daemon) *work {
	return &work{d: d, campaigns: map[string]bool{}, judged: map[string]string{}, cutShort: map[string]bool{}, last: time.Now()}
}

func (w *work) upload(ctx context.Context) error {
	archive, _, err := sut.Pack(filepath.Join(w.d.root, "e2e", "targets", "gossip"))
	if err != nil {
		return err
	}
	c, err := w.d.client()
	if err != nil {
		return err
	}
	up, err := c.UploadTarget(ctx, archive)
	w.target = up.Name
	return err
}

// runsOfOne is how many fault runs a campaign has.
const runsOfOne = 30

// look remembers verdicts, and begins a campaign if none is under way.
func (w *work) look(ctx context.Context) error {
	c, err := w.d.client()
	if err != nil {
		return err
	}
	list, err := c.Campaigns(ctx, wire.CampaignFilter{}, 0, "")
	if err != nil {
		return err
	}
	busy := false
	for _, x := range list.Items {
		w.campaigns[x.ID] = true
		busy = busy || x.State == "queued" || x.State == "running"
	}
	if !busy {
		if _, err := c.CreateCampaign(ctx, wire.CampaignSpec{Target: w.target, Strategy: "random", Labs: w.d.labs, Clean: 1, Runs: runsOfOne}, 0); err != nil {
			return err
		}
	}
	rows, err := c.Runs(ctx, wire.RunFilter{}, 200, "")
	for _, r := range rows.Items {
		if r.CutShort {
			w.cutShort[r.ID] = true
		}
		if !r.CutShort && r.Ended != nil {
			if w.judged[r.ID] == "" {
				w.last = time.Now()
			}
			w.judged[r.ID] = r.Verdict.Value
		}
	}
	w.gap = max(w.gap, time.Since(w.last))
	return err
}

// check says which results are there no more, or changed.
func (w *work) check(ctx context.Context) (lost []string) {
	c, err := w.d.client()
	if err != nil {
		return []string{err.Error()}
	}
	for run, verdict := range w.judged {
		r, err := c.Run(ctx, run)
		switch {
		case err != nil:
			lost = append(lost, fmt.Sprintf("%s: %v", run, err))
		case r.Verdict.Value != verdict:
			lost = append(lost, fmt.Sprintf("%s was %s and is %s", run, verdict, r.Verdict.Value))
		default:
			_, err := os.Stat(filepath.Join(w.d.dir, "runs", r.Campaign, run, "summary.json"))
			if err != nil && verdict == string(model.VerdictUnknown) && strings.Contains(r.Verdict.Reason, cluster.ErrGivenUp.Error()) {
				w.givenUp++ // three runners were killed while they made it: there is no record
			} else if err != nil {
				lost = append(lost, fmt.Sprintf("%s: %v", run, err))
			}
		}
	}
	slices.Sort(lost)
	return lost
}

// asker asks the API at an even pace.
type asker struct {
	d    *daemon
	http http.Client
	n    atomic.Int64

	mu     sync.Mutex
	took   []time.Duration
	failed []string
}

func newAsker(d *daemon) *asker {
	return &asker{d: d, http: http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 100,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return trust.Dial(ctx, d.socket) }}}}
}

var asked = []string{"/v1/campaigns", "/v1/runs", "/v1/findings", "/v1/finding-histories", "/v1/partitions", "/healthz", "/metrics", "/v1/annotations?limit=100", "/"}

// ask asks until ctx ends. A request that finds no daemon counts as not made: it was killed.
func (a *asker) ask(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	every := time.Second / time.Duration(max(a.d.rate, 1))
	for n := 0; ctx.Err() == nil; n++ {
		path := asked[n%len(asked)]
		all.Go(func() {
			began := time.Now()
			res, err := a.http.Get("http://localhost" + path)
			if err != nil {
				return // the connection broke: a kill
			}
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			if err != nil {
				return // so, too
			}
			a.n.Add(1)
			a.mu.Lock()
			defer a.mu.Unlock()
			a.took = append(a.took, time.Since(began))
			if res.StatusCode != http.StatusOK {
				a.failed = append(a.failed, fmt.Sprintf("%s: %s", path, res.Status))
			}
		})
		time.Sleep(every)
	}
}

func (a *asker) failures() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.failed)
}

// first is the first failure, for people.
func (a *asker) first() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.failed) == 0 {
		return ""
	}
	return "(" + a.failed[0] + ")"
}

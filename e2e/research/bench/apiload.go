package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"netsplit/api"
	"netsplit/api/trust"
	"netsplit/campaign"
	"netsplit/inference/store"
	"netsplit/model"
)

// apiSize is how much the store of the part "api" holds, and how hard it is asked.
type apiSize struct {
	runs, events, rate int
	time               time.Duration
	dir                string // "": a store is made, and removed
}

// perCampaign is how many runs each campaign of that store has, but for the first
// one, which has half of all.
const perCampaign = 100

// apiLoad makes a store, has a daemon of its own serve it, asks every list at an
// even pace while runs are booked, and tells how long answers took.
func apiLoad(ctx context.Context, size apiSize, say func(string, ...any)) (rows []row, err error) {
	dir := size.dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "netsplit-api-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
	}
	path := filepath.Join(dir, "netsplit.db")
	if _, err := os.Stat(path); err != nil {
		began := time.Now()
		if err := fillStore(path, size); err != nil {
			return nil, err
		}
		say("%d runs and %d events stored in %s", size.runs, size.events, time.Since(began).Round(time.Second))
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "child", "api", path, strconv.Itoa(size.runs))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		stdin.Close()
		err = errors.Join(err, cmd.Wait())
	}()
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the daemon did not come up: %w", err)
	}
	opened := time.Since(began)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return trust.Dial(ctx, strings.TrimSpace(addr))
	}
	l := &apiAsker{base: "http://localhost", client: &http.Client{Timeout: 10 * time.Second,
		Transport: &http.Transport{MaxIdleConns: 1000, MaxIdleConnsPerHost: 1000, DialContext: dial}}, took: map[string][]time.Duration{}, bytes: map[string]int64{}, failed: map[string]int{}}
	paths, err := l.paths(size)
	if err != nil {
		return nil, err
	}
	before, busy := memoryOf(cmd.Process.Pid), busyOf(cmd.Process.Pid)
	say("the daemon was up after %s with %s; %d requests a second for %s", opened.Round(time.Millisecond), before, size.rate, size.time)
	l.run(ctx, paths, size)
	after := memoryOf(cmd.Process.Pid)
	busy = busyOf(cmd.Process.Pid) - busy
	rows = append(rows, l.rows(size)...)
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	rows = append(rows, row{what: "daemon's memory before and after the requests", ours: before.String() + "; " + after.String()},
		row{what: "daemon's processor time for a request", ours: fmt.Sprintf("%.1f ms, booking of runs included", float64(busy)/1e6/float64(size.rate)/size.time.Seconds())},
		row{what: "time to open the store and be up", ours: opened.Round(time.Millisecond).String()},
		row{what: "size of the store", ours: fmt.Sprintf("%d MB", st.Size()>>20)})
	return rows, nil
}

// memory of a process now and at most, in MB.
type memory struct{ now, most int }

func (m memory) String() string { return fmt.Sprintf("%d MB, %d at most", m.now, m.most) }

func memoryOf(pid int) (m memory) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for _, line := range strings.Split(string(b), "\n") {
		// RssAnon leaves out the pages of the store that the kernel caches.
		var kb int
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kb); n == 1 {
			m.now = kb >> 10
		}
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 {
			m.most = kb >> 10
		}
	}
	return m
}

// busyOf is the processor time that a process has taken: utime and stime of proc(5), in
// hundredths of a second.
func busyOf(pid int) time.Duration {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// apiAsker asks and takes the time.
type apiAsker struct {
	base   string
	client *http.Client

	mu     sync.Mutex
	took   map[string][]time.Duration // by route
	bytes  map[string]int64
	failed map[string]int
}

// requested is a route of the API and what of it is asked for.
type requested struct{ route, path string }

// besideRoute reads nothing: what it takes is the machine's and the server's.
const besideRoute = "version"

// paths are the lists, a later page of each, single elements, and what Prometheus
// and Grafana ask.
func (l *apiAsker) paths(size apiSize) ([]requested, error) {
	now := time.Now().UnixMilli()
	hour, month := now-int64(time.Hour/time.Millisecond), now-30*24*int64(time.Hour/time.Millisecond)
	out := []requested{
		{"campaigns", "/v1/campaigns"}, {"runs", "/v1/campaigns/c-0/runs"}, {"runs, limit=1000", "/v1/campaigns/c-0/runs?limit=1000"},
		{"findings", "/v1/findings"}, {"findings of one", "/v1/findings?campaign=c-0"}, {"partitions", "/v1/partitions"}, {"invariants", "/v1/invariants"},
		{"annotations, 1 h", fmt.Sprintf("/v1/annotations?from=%d&to=%d", hour, now)}, {"annotations, 30 d", fmt.Sprintf("/v1/annotations?from=%d&to=%d", month, now)},
		{"campaign", "/v1/campaigns/c-0"}, {"run", "/v1/runs/" + runID("c-0", size.runs/4)}, {"metrics", "/metrics"}, {"health", "/healthz"}, {besideRoute, "/v1/version"},
	}
	for _, a := range out[:4] {
		status, b, err := l.get(a.path)
		if err != nil {
			return nil, err
		}
		if status != http.StatusOK {
			return nil, fmt.Errorf("%s: status %d: %s", a.path, status, b)
		}
		var page struct{ Next string }
		if err := json.Unmarshal(b, &page); err != nil {
			return nil, fmt.Errorf("%s: %w", a.path, err)
		}
		if page.Next != "" {
			sep := "?"
			if strings.Contains(a.path, "?") {
				sep = "&"
			}
			out = append(out, requested{a.route + ", page 2", a.path + sep + "cursor=" + page.Next})
		}
	}
	return out, nil
}

func (l *apiAsker) get(path string) (int, []byte, error) {
	res, err := l.client.Get(l.base + path)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, b, err
}

// run asks at an even pace, whether or not answers have come: who waits for a slow
// answer is counted from when the question was due.
func (l *apiAsker) run(ctx context.Context, paths []requested, size apiSize) {
	var all sync.WaitGroup
	defer all.Wait()
	began := time.Now()
	for n := 0; ; n++ {
		due := began.Add(time.Duration(n) * time.Second / time.Duration(size.rate))
		if due.Sub(began) >= size.time || ctx.Err() != nil {
			return
		}
		time.Sleep(time.Until(due))
		a := paths[n%len(paths)]
		all.Go(func() {
			status, b, err := l.get(a.path)
			took := time.Since(due)
			l.mu.Lock()
			defer l.mu.Unlock()
			l.took[a.route] = append(l.took[a.route], took)
			l.bytes[a.route] = max(l.bytes[a.route], int64(len(b)))
			if err != nil || status != http.StatusOK {
				l.failed[a.route]++
			}
		})
	}
}

// apiGoal is the p99 that an answer may take.
const apiGoal = 50 * time.Millisecond

func (l *apiAsker) rows(size apiSize) (out []row) {
	var all []time.Duration
	failed := 0
	var routes []string
	for r := range l.took {
		routes = append(routes, r)
	}
	slices.Sort(routes)
	beside := l.took[besideRoute]
	line := func(what string, took []time.Duration, failed int, bytes string) row {
		p50, p99 := quantile(took, .5), quantile(took, .99)
		text := fmt.Sprintf("p50 %.1f ms, p99 %.1f ms%s", float64(p50)/1e6, float64(p99)/1e6, bytes)
		if failed > 0 {
			text += fmt.Sprintf(", %d of %d failed", failed, len(took))
		}
		return row{what: what, ours: text, beside: fmt.Sprintf("p99 %.1f ms, of /v1/version", float64(quantile(beside, .99))/1e6), goal: "p99 < 50 ms", met: is(p99 < apiGoal && failed == 0)}
	}
	for _, r := range routes {
		all, failed = append(all, l.took[r]...), failed+l.failed[r]
		out = append(out, line("API "+r, l.took[r], l.failed[r], fmt.Sprintf(", %d kB", l.bytes[r]>>10)))
	}
	return append([]row{line(fmt.Sprintf("API, all routes, %d requests/s, %d runs", size.rate, size.runs), all, failed, "")}, out...)
}

func runID(campaign string, n int) string { return fmt.Sprintf("%s-r%05d", campaign, n) }

// fillStore makes a store by its own methods: campaigns with runs, findings, the
// explorer's inputs, which are the events that a store keeps, manual partitions and
// invariants.
func fillStore(path string, size apiSize) error {
	s, err := store.Open(path)
	if err != nil {
		return err
	}
	start := time.Now().Add(-time.Duration(size.runs) * time.Minute)
	perRun := size.events / size.runs
	n, of := 0, 0
	for c := 0; n < size.runs; c++ {
		id, count := fmt.Sprintf("c-%d", c), perCampaign
		if c == 0 {
			count = size.runs / 2
		}
		count = min(count, size.runs-n)
		if err := s.PutCampaign(model.Campaign{ID: id, State: model.CampaignDone, Created: start.Add(time.Duration(n) * time.Minute), Done: count, Planned: count, Findings: 5,
			Spec: model.CampaignSpec{Target: "redis-sentinel", Strategy: model.StrategyCoFI, Runs: count}}); err != nil {
			return err
		}
		for first := 0; first < count; first += 20 {
			err := s.Update(func(tx *store.Tx) error {
				var inputs []json.RawMessage
				for i := first; i < min(first+20, count); i++ {
					if err := tx.PutRun(sampleRun(id, i, start.Add(time.Duration(n+i)*time.Minute))); err != nil {
						return err
					}
					for range perRun {
						inputs = append(inputs, json.RawMessage(fmt.Sprintf(`{"kind":"result","scenario":"s%07d","verdict":"pass"}`, of)))
						of++
					}
				}
				return tx.AppendInput(id, inputs...)
			})
			if err != nil {
				return err
			}
		}
		err := s.Update(func(tx *store.Tx) error {
			for f := range 5 {
				x := model.Finding{ID: fmt.Sprintf("f-%d-%d", c, f), Campaign: id, Target: "redis-sentinel", Class: model.Broken, Run: runID(id, f), FirstAfter: f + 1,
					Failure: sampleRun(id, 3, start).Verdict.Failures[0]}
				for i := range count / 4 {
					x.Runs = append(x.Runs, runID(id, i*4))
				}
				if err := tx.PutFinding(x); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		n += count
	}
	err = s.Update(func(tx *store.Tx) error {
		for i := range 1000 {
			at := start.Add(time.Duration(i) * time.Minute)
			p := model.PartitionStatus{PartitionSpec: model.PartitionSpec{Name: fmt.Sprintf("p-%d", i),
				Partition: model.Isolate("n1", []model.NodeID{"n1", "n2", "n3", "n4", "n5"}, model.Drop)}, State: model.PartitionHealed,
				Created: at, InForce: at.Add(time.Second), Healed: at.Add(30 * time.Second), Wanted: 100, Dropped: 100, LeakKnown: true}
			if err := tx.PutPartition(p); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = s.PutInvariants("redis-sentinel", sampleInvariants(100))
	}
	return errors.Join(err, s.Close())
}

func sampleInvariants(n int) (out []model.Invariant) {
	for i := range n {
		out = append(out, model.Invariant{ID: fmt.Sprintf("inv-%d", i), Kind: "role", Relation: "==", Support: 100, Changes: 4, Distinct: 3, Runs: 3, Chance: 1e-9,
			A: model.VarRef{Name: "master", About: fmt.Sprintf("n%d", i), Node: "n1"}, B: model.VarRef{Name: "master", About: fmt.Sprintf("n%d", i), Node: "n2"}})
	}
	return out
}

// sampleRun is a run as big as those of the shipped targets: 4 kB when it is sent
// whole. Every fourth one failed, all but every tenth were cut.
func sampleRun(campaign string, n int, started time.Time) model.RunSummary {
	r := model.RunSummary{Ended: started.Add(40 * time.Second), Messages: map[string]int{}, Probes: 300, ProbeCost: time.Second,
		Cost:      model.Cost{Start: time.Second, Settle: 5 * time.Second, Workload: 20 * time.Second, Recover: 10 * time.Second, Ours: time.Second},
		GateDelay: &model.DelayStats{Count: 40000, P50: 90 * time.Microsecond, P99: time.Millisecond, Max: 3 * time.Millisecond}}
	r.Campaign, r.Run, r.Target, r.Lab, r.Tap, r.Gate, r.Version, r.Started = campaign, runID(campaign, n), "redis-sentinel", "p1-1", "gate", "port", "v0", started
	nodes := []model.NodeID{"n1", "n2", "n3", "n4", "n5"}
	inv := sampleInvariants(12)
	cut := model.Isolate("n1", nodes, model.Drop)
	at := &model.FaultCondition{Invariant: inv[0], State: &model.State{A: "10.0.0.1", B: "10.0.0.2"}}
	r.Scenario = model.Scenario{ID: fmt.Sprintf("s%05d", n), Strategy: model.StrategyCoFI, Observe: inv,
		Steps: []model.Step{{When: model.Trigger{State: at}, Do: model.Fault{Cut: &cut, Isolate: "n1"}, Max: 10 * time.Second}},
		Why:   "the state that most runs met and that was not cut at yet"}
	for i := range 40 {
		r.Messages[fmt.Sprintf("resp PUBLISH __sentinel__:hello %d", i)] = 100 + i
	}
	r.Verdict = model.Verdict{Value: model.VerdictPass, Reason: "every check held, and the cut of n1 dropped 300 of 300 packets that wanted to cross"}
	if n%4 == 3 {
		r.Verdict = model.Verdict{Value: model.VerdictFail, Reason: "12 of 283 acknowledged writes are missing", Failures: []model.Failure{{Check: "lost-acknowledged-writes",
			Signature: "lost-acknowledged-writes list leader isolated", Class: model.Broken, Summary: "12 of 283 acknowledged writes are missing at the end; the first was acknowledged by n1 2.1 s after the cut",
			Quote: "Acknowledged writes are kept.", Detail: []string{strings.Repeat("write 17 acknowledged by n1 at 12.3 s is missing; ", 8)}, Amount: 12}}}
	}
	for i := range 6 {
		r.Verdict.Excuses = append(r.Verdict.Excuses, model.Excuse{F: "write", Error: "timeout", Node: "n1", Why: "n1 reached 1 of n1, n2, n3 and needed 2: the cut", Count: 10 + i})
		r.Result.States = append(r.Result.States, model.MetState{})
	}
	if n%10 != 0 {
		r.Proof = &model.Proof{CutAt: 8 * time.Second, InForceAt: 8 * time.Second, HealAt: 15 * time.Second, HealedAt: 15 * time.Second, Wanted: 300, Dropped: 300, LeakKnown: true}
		for _, l := range cut.Links() {
			r.Proof.Links = append(r.Proof.Links, l)
			r.Proof.PerLink = append(r.Proof.PerLink, model.LinkProof{Link: l, Wanted: 40, Dropped: 40})
		}
	}
	r.Result.Scenario, r.Result.Verdict, r.Result.Reached = r.Scenario.ID, r.Verdict, r.Proof != nil
	return r
}

// apiChild serves a store until its standard input ends, and books a run twice a
// second, as a campaign with many labs would.
func apiChild(path string, runs int) error {
	metrics := api.NewMetrics("bench", nil)
	log := slog.New(slog.DiscardHandler)
	s, err := campaign.Open(campaign.Config{RunsDir: filepath.Dir(path), StorePath: path, ControllerAddr: "127.0.0.1:0", Metrics: metrics, Log: log, Version: "bench"})
	if err != nil {
		return err
	}
	metrics.State(s.State)
	ctx, cancel := context.WithCancel(context.Background())
	ln, err := trust.Listen(path + ".sock")
	if err != nil {
		cancel()
		return errors.Join(err, s.Close())
	}
	served := make(chan error, 1)
	go func() {
		served <- api.Serve(ctx, api.New(api.Config{Service: s, Metrics: metrics, Keys: s.Keys(), Version: "bench", Log: log}), ln)
	}()
	booked := make(chan error, 1)
	go func() { booked <- bookRuns(ctx, s.Keys(), runs) }()
	fmt.Println(ln.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	return errors.Join(<-served, <-booked, s.Close())
}

func bookRuns(ctx context.Context, s *store.Store, n int) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for ; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		r := sampleRun("c-0", n, time.Now())
		err := errors.Join(s.StartRun(r.RunMeta), s.PutRun(r), s.AppendInput("c-0", json.RawMessage(`{"kind":"result"}`)))
		if err != nil {
			return err
		}
	}
}

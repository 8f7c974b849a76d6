package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// cluster answers like the REST services of Hadoop 3.3.0, shortened.
type cluster struct {
	mu    sync.Mutex
	apps  map[string]string // state by id
	why   string            // diagnostics of every application
	nodes string            // the list of nodes
	held  string            // what the NodeManager holds
	ha    string
	deaf  bool // an application that is told to stop goes on
	old   bool // of 2.7: attempts without an id
}

func (f *cluster) set(id, state string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apps[id] = state
}

func (f *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := func(id string) string {
		return fmt.Sprintf(`{"id":%q,"state":%q,"diagnostics":%q,"runningContainers":3}`, id, f.apps[id], f.why)
	}
	path := strings.TrimPrefix(r.URL.Path, "/ws/v1/")
	switch id := strings.TrimPrefix(path, "cluster/apps/"); {
	case path == "cluster/info":
		fmt.Fprintf(w, `{"clusterInfo":{"id":1,"haState":%q}}`, f.ha)
	case path == "cluster/nodes":
		fmt.Fprint(w, f.nodes)
	case path == "node/containers":
		fmt.Fprint(w, f.held)
	case path == "cluster/apps" && len(f.apps) == 0:
		fmt.Fprint(w, `{"apps":null}`)
	case path == "cluster/apps":
		var all []string
		for k := range f.apps {
			all = append(all, one(k))
		}
		fmt.Fprintf(w, `{"apps":{"app":[%s]}}`, strings.Join(all, ","))
	case strings.HasSuffix(path, "/state") && r.Method == http.MethodPut:
		if !f.deaf {
			f.apps[strings.TrimSuffix(id, "/state")] = "KILLED"
		}
		w.WriteHeader(http.StatusAccepted)
	case strings.HasSuffix(path, "/appattempts") && f.old:
		fmt.Fprint(w, `{"appAttempts":{"appAttempt":[{"id":1,"containerId":"container_9_0001_01_000001"}]}}`)
	case strings.HasSuffix(path, "/appattempts"):
		fmt.Fprint(w, `{"appAttempts":{"appAttempt":[{"id":1,"appAttemptId":"appattempt_9_0001_000001"},{"id":2,"appAttemptId":"appattempt_9_0001_000002"}]}}`)
	case strings.HasSuffix(path, "000002/containers"): // one: no list
		fmt.Fprint(w, `{"container":{"containerId":"container_9_0001_02_000001","containerState":"RUNNING","nodeId":"n2:8041"}}`)
	case f.apps[id] != "":
		fmt.Fprintf(w, `{"app":%s}`, one(id))
	default:
		http.NotFound(w, r)
	}
}

const (
	oneNode = `{"nodes":{"node":[{"state":"RUNNING","id":"n2:8041","nodeHostName":"n2","numContainers":1}]}}`
	noNode  = `{"nodes":""}`
	oneHeld = `{"containers":{"container":[{"id":"container_9_0001_01_000001","state":"RUNNING"},{"id":"container_9_0001_01_000002","state":"DONE"}]}}`
)

func session(t *testing.T, f *cluster, java string) (*client, *bytes.Buffer) {
	t.Helper()
	if f.ha == "" {
		f.ha = "ACTIVE"
	}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	w := newWeb([]string{"n1"})
	w.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", srv.Listener.Addr().String())
	}}
	dir := t.TempDir()
	script := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return p
	}
	var out bytes.Buffer
	h := history{workload.NewHistory(&out, time.Now())}
	c := &client{settings: settings{rms: []string{"n1"}, nms: []string{"n2"}, self: "c1", dir: dir, app: "sleep", maps: 2, task: time.Second, seed: 7,
		java: script("java", java), netsplit: script("netsplit", `echo "$@" >> "`+dir+`/actions"`)},
		h: h, web: w, limits: limits{poll: 5 * time.Millisecond, stop: 20 * time.Second, launch: 20 * time.Second, agree: 20 * time.Second, admin: time.Millisecond, tell: 5 * time.Second}}
	return c, &out
}

// lines are the operations of a history, as "f type key error-word".
func lines(t *testing.T, out *bytes.Buffer) []string {
	t.Helper()
	var all []string
	for d := json.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		var op model.Operation
		if err := d.Decode(&op); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		word, _, _ := strings.Cut(op.Error, ":")
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", op.F, op.Type, op.Key, word)))
	}
}

func want(t *testing.T, out *bytes.Buffer, want ...string) {
	t.Helper()
	if got := strings.Join(lines(t, out), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("history:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

// fakeJob acts as SleepJob (three seconds of it: the third launch goes on
// until it is killed) and as ApplicationCLI -kill.
const fakeJob = `case "$*" in
*ApplicationCLI\ application\ -kill\ application_9_0002) exit 0;;
*ApplicationCLI*) exit 255;;
*-mt\ 60000*) echo "x INFO impl.YarnClientImpl: Submitted application application_9_0002"; exec sleep 0.3;;
*) echo "x INFO impl.YarnClientImpl: Submitted application application_9_0001";;
esac`

func TestApplicationsAreLaunchedAndStopped(t *testing.T) {
	f := &cluster{apps: map[string]string{"application_9_0001": "RUNNING", "application_9_0002": "RUNNING"}}
	c, out := session(t, f, fakeJob)
	go func() { time.Sleep(150 * time.Millisecond); f.set("application_9_0002", "KILLED") }()
	c.applications(context.Background())
	want(t, out, "submit invoke", "submit ok application_9_0001", "run invoke application_9_0001", "run ok application_9_0001",
		"submit invoke", "submit ok application_9_0002", "stop invoke application_9_0002", "stop ok application_9_0002")
	b, _ := os.ReadFile(filepath.Join(c.dir, idsFile))
	if string(b) != "application_9_0001\napplication_9_0002\n" {
		t.Errorf("applications for the end: %q", b)
	}
}

// TestTwoUsersRunSideBySide: both applications are accepted before either ends,
// and each user waits for his own.
func TestTwoUsersRunSideBySide(t *testing.T) {
	f := &cluster{apps: map[string]string{"application_9_0001": "RUNNING", "application_9_0002": "RUNNING"}}
	c, out := session(t, f, fmt.Sprintf(`if mkdir %s/first 2>/dev/null
then echo "Submitted application application_9_0001"; exec sleep 0.5
else echo "Submitted application application_9_0002"; exec sleep 60
fi`, t.TempDir()))
	c.limits.last = time.Hour
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c.twoUsers(ctx)
	process, open := map[string]int{}, map[int]string{}
	for line := range strings.Lines(out.String()) {
		var op model.Operation
		if err := json.Unmarshal([]byte(line), &op); err != nil {
			t.Fatal(err)
		}
		if op.Type != model.OpInvoke {
			delete(open, op.Process)
			continue
		}
		if was := open[op.Process]; was != "" {
			t.Errorf("process %d begins %s while it does %s", op.Process, op.F, was)
		}
		open[op.Process] = op.F
		if op.F == "run" {
			process[op.Key] = op.Process
		}
	}
	if want := map[string]int{"application_9_0001": userProcess, "application_9_0002": otherProcess}; !maps.Equal(process, want) {
		t.Errorf("runs by process: %v, want %v", process, want)
	}
	// The first ends by itself, the second one runs on.
	got := strings.Join(lines(t, out), "\n")
	if !strings.Contains(got, "run ok application_9_0001") || !strings.Contains(got, "run info application_9_0002 interrupted") {
		t.Errorf("the ends of two applications:\n%s", got)
	}
}

func TestFailuresOfCommandsAreTold(t *testing.T) {
	f := &cluster{apps: map[string]string{"application_9_0001": "FAILED"}}
	c, out := session(t, f, `echo "Submitted application application_9_0001"; echo "INFO mapreduce.Job: Job job_9_0001 failed with state FAILED due to: no luck"; echo later; exit 1`)
	c.limits.last = time.Hour
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c.applications(ctx)
	want(t, out, "submit invoke", "submit ok application_9_0001", "run invoke application_9_0001", "run fail application_9_0001 unsuccessful")
	if !strings.Contains(out.String(), "no luck") {
		t.Errorf("the cause is missing: %s", out)
	}

	c, out = session(t, f, `echo "java.net.ConnectException: refused"; exit 255`)
	c.limits.last = time.Hour
	c.applications(ctx)
	want(t, out, "submit invoke", "submit fail  rejected")
}

func TestAWorkloadThatIsOverKnowsNothing(t *testing.T) {
	c, out := session(t, &cluster{apps: map[string]string{"application_9_0001": "RUNNING"}}, `echo "Submitted application application_9_0001"; exec sleep 60`)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	c.applications(ctx)
	want(t, out, "submit invoke", "submit ok application_9_0001", "run invoke application_9_0001", "run info application_9_0001 interrupted")
}

func TestServersAreRestartedWhileAnApplicationRuns(t *testing.T) {
	for workload, actions := range map[string]string{
		"nm-failover": "node stop nodemanager n2\nnode start nodemanager n2\n",
		"rm-failover": "node kill resourcemanager n1\nnode start resourcemanager n1\n",
		"start":       "node stop nodemanager n2\nnode stop resourcemanager n1\nnode start resourcemanager n1\nnode start nodemanager n2\n",
	} {
		c, out := session(t, &cluster{apps: map[string]string{"application_9_0001": "RUNNING"}, nodes: oneNode}, `echo "Submitted application application_9_0001"; exec sleep 0.5`)
		c.failover, c.limits.last = "kill", time.Hour
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		workloads[workload](c, ctx)
		cancel()
		if b, _ := os.ReadFile(filepath.Join(c.dir, "actions")); string(b) != actions {
			t.Errorf("%s: actions %q, want %q", workload, b, actions)
		}
		if got := strings.Join(lines(t, out), "\n"); !strings.Contains(got, "run ok application_9_0001") {
			t.Errorf("%s: no application ran:\n%s", workload, got)
		}
	}
}

func TestAWrongCauseIsTold(t *testing.T) {
	f := &cluster{apps: map[string]string{"application_9_0001": "ACCEPTED"}, nodes: noNode, why: "Application is added to the scheduler and is not yet activated. Queue's AM resource limit exceeded."}
	c, out := session(t, f, "")
	look := func() { c.watch(context.Background(), "application_9_0001", func(app) bool { return true }) }
	look()
	want(t, out) // it may have been right a moment ago
	f.nodes = oneNode
	look()
	f.nodes = noNode
	look()
	want(t, out)
	look()
	look() // said once
	want(t, out, "explain invoke application_9_0001", "explain fail application_9_0001 wrong-cause")

	f.nodes = oneNode // there may be something to the limit
	c, out = session(t, f, "")
	look = func() { c.watch(context.Background(), "application_9_0001", func(app) bool { return true }) }
	look()
	look()
	want(t, out)

	// Of two equal nodes one is gone, and with it half of the limit: 0.3 of 2048 or of
	// 4096 MB, and 0.2 of them, with which two masters never fit (512, 896).
	for reported, wrong := range map[[2]string]bool{{"640", "512"}: true, {"640", "768"}: false, {"512", "512"}: false} {
		f.why = "[Mon Nov 23 11:31:52 +0000 2026] Application is added to the scheduler and is not yet activated. Queue's AM resource limit exceeded.  Details : AM Partition = <DEFAULT_PARTITION>; AM Resource Request = <memory:512, vCores:1>; Queue Resource Limit for AM = <memory:" + reported[0] + ", vCores:1>; User AM Resource Limit of the queue = <memory:" + reported[0] + ", vCores:1>; Queue AM Resource Usage = <memory:" + reported[1] + ", vCores:1>; "
		for _, all := range []string{"n2", "n2 n3"} {
			c, out = session(t, f, "")
			c.nms = strings.Fields(all)
			look()
			look()
			if wrong && all == "n2 n3" {
				want(t, out, "explain invoke application_9_0001", "explain fail application_9_0001 wrong-cause")
			} else {
				want(t, out)
			}
		}
	}
}

// An application that takes all the time there is leaves none to ask how the
// others ended, if nothing is kept for that.
func TestTheEndTellsThoughItsApplicationIsSlow(t *testing.T) {
	c, out := session(t, &cluster{apps: map[string]string{"application_9_0001": "FINISHED"}, nodes: oneNode}, `echo "Submitted application application_9_0003"; exec sleep 60`)
	if err := os.WriteFile(filepath.Join(c.dir, idsFile), []byte("application_9_0001\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Second)
	defer cancel()
	c.final(ctx)
	want(t, out, "final-run invoke", "final-run info  interrupted", "final-status invoke application_9_0001", "final-status ok application_9_0001",
		"final-role invoke n1", "final-role ok n1")
}

func TestTheEndStopsComparesAndTells(t *testing.T) {
	job := `echo "Submitted application application_9_0003"`
	f := &cluster{apps: map[string]string{"application_9_0002": "RUNNING", "application_9_0003": "FINISHED"}, nodes: oneNode, held: oneHeld}
	c, out := session(t, f, job)
	if err := os.WriteFile(filepath.Join(c.dir, idsFile), []byte("application_9_0001\napplication_9_0002\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.final(context.Background())
	want(t, out, "final-stop invoke application_9_0002", "final-stop ok application_9_0002",
		"final-run invoke", "final-run ok application_9_0003", "final-agree invoke n2", "final-agree ok n2",
		"final-status invoke application_9_0001", "final-status ok application_9_0001",
		"final-status invoke application_9_0002", "final-status ok application_9_0002",
		"final-status invoke application_9_0003", "final-status ok application_9_0003",
		"final-role invoke n1", "final-role ok n1")
	for _, v := range []string{`"value":"NOTFOUND"`, `"value":"KILLED"`, `"value":"FINISHED"`, `"value":"ACTIVE"`} {
		if !strings.Contains(out.String(), v) {
			t.Errorf("%s is missing in %s", v, out)
		}
	}

	f = &cluster{apps: map[string]string{"application_9_0002": "RUNNING", "application_9_0003": "FINISHED"}, deaf: true,
		nodes: oneNode, held: `{"containers":null}`}
	c, out = session(t, f, job)
	c.limits.stop, c.limits.agree = 200*time.Millisecond, 2*time.Second
	c.final(context.Background())
	got := strings.Join(lines(t, out), "\n")
	for _, bad := range []string{"final-stop fail application_9_0002 not-stopped", "final-agree fail n2 differ"} {
		if !strings.Contains(got, bad) {
			t.Errorf("no %q in\n%s", bad, got)
		}
	}
	if !strings.Contains(out.String(), "counts 1 containers on n2, the NodeManager has 0") {
		t.Errorf("the difference is missing: %s", out)
	}
}

func TestContainersOfTheLastAttempt(t *testing.T) {
	f := &cluster{apps: map[string]string{"application_9_0001": "RUNNING"}}
	c, _ := session(t, f, "")
	var out bytes.Buffer
	if err := c.web.listContainers(context.Background(), &out); err != nil || out.String() != "containers 1\ncontainer_9_0001_02_000001 RUNNING n2\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	f.old = true
	out.Reset()
	if err := c.web.listContainers(context.Background(), &out); err == nil || !strings.Contains(err.Error(), "2.8") || out.Len() > 0 {
		t.Errorf("a release that lists none: %q, %v", out.String(), err)
	}
	f.ha = "STANDBY"
	out.Reset()
	if err := c.web.listContainers(context.Background(), &out); err == nil || out.Len() > 0 {
		t.Errorf("a standby says %q, %v: it has no list, not an empty one", out.String(), err)
	}
}

func TestShapesOfEmptyLists(t *testing.T) {
	for _, text := range []string{`{"nodes":null}`, `{"nodes":""}`, `{"nodes":{}}`, `{"nodes":{"node":[]}}`} {
		var v struct {
			Nodes struct {
				Node []node `json:"node"`
			} `json:"nodes"`
		}
		if err := decode([]byte(text), &v); err != nil || len(v.Nodes.Node) != 0 {
			t.Errorf("%s: %v, %v", text, v, err)
		}
	}
	var v any
	if err := decode([]byte("<html>"), &v); err == nil {
		t.Error("a page passes for JSON")
	}
}

func TestTheArchiveHasEveryClassOnce(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive(context.Background(), "true", dir, dir); err == nil || !strings.Contains(err.Error(), "DumpLoadedClassList") {
		t.Errorf("no lists: %v", err)
	}
	write("rm.classes", "# comment\na/B\n@lambda-proxy x\na/C\n")
	write("nm.classes", "a/D\na/B\ncustom/E source: /x.jar\norg/tor@lambda-proxy x\n")
	if err := archive(context.Background(), "true", dir, dir); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "all.list")); string(b) != "a/B\na/C\na/D\n" {
		t.Errorf("list %q", b)
	}
	write("java", "#!/bin/sh\necho no memory; exit 1\n")
	if err := archive(context.Background(), filepath.Join(dir, "java"), dir, dir); err == nil || !strings.Contains(err.Error(), "no memory") {
		t.Errorf("a JVM that fails: %v", err)
	}
}

func TestFlagsAreChecked(t *testing.T) {
	t.Setenv("NETSPLIT_RUN_START", "soon")
	var out bytes.Buffer
	if err := run(context.Background(), []string{"run"}, strings.NewReader(""), &out); err == nil || !strings.Contains(err.Error(), "Unix nanoseconds") {
		t.Errorf("bad start: %v", err)
	}
	if err := run(context.Background(), []string{"run", "--workload", "x"}, strings.NewReader(""), &out); err == nil || !strings.Contains(err.Error(), "nm-failover") {
		t.Errorf("bad workload: %v", err)
	}
}

func TestNeedsFollowTheCluster(t *testing.T) {
	c := &client{settings: settings{rms: []string{"n1"}, nms: []string{"n2"}, self: "c1"}}
	if got := fmt.Sprint(c.reachAll()); got != "[{c1 [n1] 1} {c1 [n2] 1} {n2 [n1] 1}]" {
		t.Errorf("one of each: %s", got)
	}
	c = &client{settings: settings{rms: []string{"n1", "n2"}, nms: []string{"n3", "n4"}, self: "c1", storage: "d1"}}
	if got := fmt.Sprint(c.reachAll()); got != "[{c1 [n1 n2] 1} {d1 [n1 n2] 1} {c1 [d1] 1} {c1 [n3 n4] 1} {d1 [n3 n4] 1}]" {
		t.Errorf("two of each: %s", got)
	}
}

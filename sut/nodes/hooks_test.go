package nodes

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/testbed"
)

// recorder is a journal that keeps what it is told.
type recorder struct {
	mu   sync.Mutex
	text []string
	num  atomic.Uint64
}

func (h *recorder) add(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, fmt.Sprintf(format, args...))
}

func (h *recorder) Note(format string, args ...any)   { h.add("note: "+format, args...) }
func (h *recorder) Fail(format string, args ...any)   { h.add("fail: "+format, args...) }
func (h *recorder) Unread(format string, args ...any) { h.add("unheard: "+format, args...) }
func (h *recorder) NodeDone(a model.NodeAction)       { h.add("done: %s", a.Verb) }

func (h *recorder) Number() uint64 { return h.num.Add(1) }

func (h *recorder) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.text, "\n")
}

// hooks are processes of a target with one server, db on n1, that hooks run in a
// folder.
func hooks(t *testing.T, h model.Hooks) (p *Processes, journal *recorder, dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, rundir.LogsDir), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, text := range []*string{&h.Start, &h.Stop, &h.Crash} {
		if *text != "" {
			*text = "cd " + dir + "; " + *text
		}
	}
	journal = new(recorder)
	tb := model.Testbed{Name: "t", Hosts: []model.TestbedHost{{Name: "n1", IP: netip.MustParseAddr("10.0.0.1")}}, Hooks: h}
	p = New(Config{Dir: dir, Start: time.Now(), Journal: journal, Testbed: &testbed.Testbed{Testbed: tb},
		Kit: &Kit{Target: &model.Target{Name: "one", Nodes: []model.NodeID{"n1"}, Processes: []model.Process{{Name: "db", Hosts: []model.NodeID{"n1"}}}}}})
	return p, journal, dir
}

func does(p *Processes, verb model.NodeVerb) error {
	return p.Act(model.NodeAction{Verb: verb, Host: "n1", Process: "db"})
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// TestAServerWhoseStartFailedIsStopped at the end of the run: it may run all the
// same. It can be started again before that, and is then stopped once.
func TestAServerWhoseStartFailedIsStopped(t *testing.T) {
	for _, again := range []bool{false, true} {
		p, journal, dir := hooks(t, model.Hooks{Start: "touch runs; [ -e works ]", Stop: "echo >>stopped; rm runs"})
		if err := does(p, model.NodeStart); err == nil {
			t.Fatal("the hook failed")
		}
		if err := does(p, model.NodeStop); err == nil || !strings.Contains(err.Error(), "does not run") {
			t.Errorf("stop of a server that was not started: %v", err)
		}
		if again {
			if err := os.WriteFile(filepath.Join(dir, "works"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := does(p, model.NodeStart); err != nil {
				t.Error(err)
			}
		}
		p.stopServers(0)
		stopped, _ := os.ReadFile(filepath.Join(dir, "stopped"))
		if exists(dir, "runs") || string(stopped) != "\n" || strings.Contains(journal.String(), "note") {
			t.Errorf("again %v: it runs: %v, stopped %q; %s", again, exists(dir, "runs"), stopped, journal)
		}
	}
}

// TestAServerWhoseStartIsSlowIsStopped: its hook ends when the run is over.
func TestAServerWhoseStartIsSlowIsStopped(t *testing.T) {
	p, journal, dir := hooks(t, model.Hooks{Start: "touch begun; until [ -e go ]; do sleep 0.01; done; touch runs", Stop: "rm runs"})
	started, over := make(chan error, 1), make(chan struct{})
	go func() { started <- does(p, model.NodeStart) }()
	until(t, "the hook runs", func() bool { return exists(dir, "begun") })
	go func() {
		defer close(over)
		p.stopServers(0)
	}()
	until(t, "the run is over", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.closing
	})
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	<-over
	if exists(dir, "runs") {
		t.Error("it runs after the run")
	}
	if err := <-started; err == nil || journal.String() != "" {
		t.Errorf("it is said to have started: %v; %s", err, journal)
	}
	if err := does(p, model.NodeStart); err == nil {
		t.Error("started after the run")
	}
}

// TestAServerIsEndedOnce: by who starts it or by a workload, and by the end of the run,
// which waits.
func TestAServerIsEndedOnce(t *testing.T) {
	for _, byStart := range []bool{true, false} {
		p, journal, dir := hooks(t, model.Hooks{Start: "touch begun; until [ -e go ]; do sleep 0.01; done; touch runs",
			Stop: "mkdir stops || exit 1; until [ -e end ]; do sleep 0.01; done; rm runs", Crash: "touch crashed; exit 1"})
		write := func(name string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		first := make(chan error, 1)
		if byStart {
			go func() { first <- does(p, model.NodeStart) }()
			until(t, "the hook runs", func() bool { return exists(dir, "begun") })
			p.Exits()
			write("go")
		} else {
			write("go")
			if err := does(p, model.NodeStart); err != nil {
				t.Fatal(err)
			}
			go func() { first <- does(p, model.NodeStop) }()
		}
		until(t, "it is stopped", func() bool { return exists(dir, "stops") })
		over := make(chan struct{})
		go func() {
			defer close(over)
			p.stopServers(0)
		}()
		time.Sleep(300 * time.Millisecond) // enough for another stop, were there one
		select {
		case <-over:
			t.Errorf("by start %v: the run ends before the server", byStart)
		default:
		}
		write("end")
		<-over
		if err := <-first; (err != nil) != byStart {
			t.Errorf("by start %v: %v", byStart, err)
		}
		if exists(dir, "runs") || exists(dir, "crashed") || strings.Contains(journal.String(), "note") {
			t.Errorf("by start %v: runs %v, crashed %v; %s", byStart, exists(dir, "runs"), exists(dir, "crashed"), journal)
		}
	}
}

// TestWhatAHookStartsInTheBackgroundStays, and may go on printing; what is left of a
// hook that takes too long does not.
func TestWhatAHookStartsInTheBackgroundStays(t *testing.T) {
	server := `sh -c 'echo $$ >pid; while sleep 0.1; do echo still here; touch printed; done' &`
	p, _, dir := hooks(t, model.Hooks{Start: server + ` echo started`, Stop: "kill $(cat pid)"})
	pid := func() int {
		text, _ := os.ReadFile(filepath.Join(dir, "pid"))
		n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return n
	}
	lives := func() bool { return pid() > 0 && unix.Kill(pid(), 0) == nil }
	began := time.Now()
	if err := does(p, model.NodeStart); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > hookLimit/2 {
		t.Errorf("it took %v", took)
	}
	until(t, "it runs", lives)
	os.Remove(filepath.Join(dir, "printed"))
	until(t, "it prints", func() bool { return exists(dir, "printed") })
	if !lives() {
		t.Error("it has ended")
	}
	p.stopServers(0)
	until(t, "it ends", func() bool { return !lives() })

	p, _, dir = hooks(t, model.Hooks{Start: server + ` sleep 100`, Stop: "true", Timeout: time.Second})
	if err := does(p, model.NodeStart); err == nil || !strings.Contains(err.Error(), "did not end within 1s") {
		t.Errorf("%v", err)
	}
	until(t, "what is left of it ends", func() bool { return !lives() })
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

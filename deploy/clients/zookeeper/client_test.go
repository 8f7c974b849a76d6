package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"netsplit/deploy/clients/workload"
	"netsplit/e2e/need"
	"netsplit/model"
	"netsplit/sut/software"
)

func TestErrorsAreDefiniteOnlyWhereAServerAnswered(t *testing.T) {
	for err, want := range map[error]string{
		zk.ErrBadVersion: "badversion true",
		fmt.Errorf("wrapped: %w", zk.ErrNodeExists): "nodeexists true",
		zk.ErrConnectionClosed:                      "connection-closed false",
		zk.ErrSessionExpired:                        "session-expired false",
		fmt.Errorf("something\nelse"):               "other something else false",
	} {
		if text, definite := errorText(err); fmt.Sprint(text, " ", definite) != want {
			t.Errorf("%v: %q %v, want %s", err, text, definite, want)
		}
	}
}

func TestAWriteWithoutAnAnswerMayHaveHappened(t *testing.T) {
	var out bytes.Buffer
	s := &session{common: &common{out: workload.NewHistory(&out, time.Now())}, conn: &zk.Conn{}}
	for _, c := range []struct {
		err     error
		changes bool
		want    model.OpType
	}{
		{nil, true, model.OpOK},
		{zk.ErrBadVersion, true, model.OpFail},
		{zk.ErrConnectionClosed, true, model.OpInfo},
		{zk.ErrConnectionClosed, false, model.OpFail},
	} {
		out.Reset()
		s.end(model.Operation{F: "set"}, c.err, c.changes)
		var op model.Operation
		if err := json.Unmarshal(out.Bytes(), &op); err != nil || op.Type != c.want {
			t.Errorf("%v, changes %v: %s (%v), want %s", c.err, c.changes, op.Type, err, c.want)
		}
	}
}

func TestNeedsNameTheServerAndAMajority(t *testing.T) {
	c := common{host: "c1", nodes: []node{{"n1", "a"}, {"n2", "b"}, {"n3", "c"}}}
	want := []model.Need{{Via: "c1", From: []model.NodeID{"n2"}, Count: 1}, {Via: "n2", From: []model.NodeID{"n1", "n2", "n3"}, Count: 2}}
	if diff := cmp.Diff(want, c.needs("n2")); diff != "" {
		t.Error(diff)
	}
	if c.needs("") != nil {
		t.Error("without a server there is nothing to need")
	}
}

func TestRestartsFollowTheSeed(t *testing.T) {
	const d = 15 * time.Second
	a, b := plan(7, 3, d), plan(7, 3, d)
	if diff := cmp.Diff(a, b); diff != "" || cmp.Equal(a, plan(8, 3, d)) {
		t.Errorf("same seed: %s; another seed: %v %v", diff, a, plan(8, 3, d))
	}
	for i, m := range a {
		if share := d / 3; m < time.Duration(i)*share || m > time.Duration(i)*share+share/2 {
			t.Errorf("restart %d at %v is not in the first half of its share", i, m)
		}
	}
}

func TestBadFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"data"}, {"data", "--nodes", "n1"}, {"data", "--nodes", "n1=x"},
		{"data", "--nodes", "n1=10.0.0.1", "--workload", "much"},
		{"data", "--nodes", "n1=10.0.0.1", "--rate", "0"},
		{"lock", "--nodes", "n1=10.0.0.1", "--contenders", "0"},
		{"operate", "--nodes", "n1=10.0.0.1", "--verb", "shoot"},
	} {
		if err := run(t.Context(), args, strings.NewReader(""), io.Discard); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}

func TestAWorkloadThatIsNotAskedForEndsAtOnce(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), []string{"lock", "--nodes", "n1=192.0.2.1", "--workload", "data,failover", "--for", "1h"}, blocked{t.Context()}, &out)
	if err != nil || out.Len() > 0 {
		t.Errorf("%v, printed %q", err, out.String())
	}
}

// blocked is a standard input that stays open.
type blocked struct{ ctx context.Context }

func (b blocked) Read([]byte) (int, error) { <-b.ctx.Done(); return 0, io.EOF }

// server starts one ZooKeeper on the loopback interface and returns its port.
func server(t *testing.T) int {
	t.Helper()
	need.Program(t, "mvn", "maven")
	r, err := software.Load("zookeeper", "3.9.3", "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	set, err := software.Get(ctx, r, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "zoo.cfg")
	conf := fmt.Sprintf("tickTime=200\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=*\npreAllocSize=1024\n", dir, port)
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(set.Java, "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dzookeeper.forceSync=no", // a busy disk takes longer for it than a test has
		"-cp", set.Lib+"/*", "org.apache.zookeeper.server.ZooKeeperServerMain", file)
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for until := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if m, err := mode(node{addr: fmt.Sprintf("127.0.0.1:%d", port)}); err == nil && m == "standalone" {
			return port
		}
		if time.Now().After(until) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("the server does not serve:\n%s", printed.String())
		}
	}
}

// TestRealServer runs the workloads on a ZooKeeper, one after the other, and
// reads the tree back.
func TestRealServer(t *testing.T) {
	var out bytes.Buffer
	c := &common{host: "c1", nodes: []node{{"n1", fmt.Sprintf("127.0.0.1:%d", server(t))}}, seed: 3, session: time.Second, on: "all",
		out: workload.NewHistory(&out, time.Now())}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	failed := make(chan error, 2)
	go func() {
		failed <- runData(ctx, c, dataOptions{rate: 40, writers: 2, configure: time.Second})
	}()
	go func() {
		failed <- runLock(ctx, c, lockOptions{contenders: 3, hold: 200 * time.Millisecond})
	}()
	for range 2 {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := readAll(ctx, c); err != nil {
		t.Fatal(err)
	}
	readsBesideOneThatIsDown(t, c)
	var ops []model.Operation
	count := map[string]int{}
	wrote, has := map[string]bool{}, map[string]bool{}
	holder := ""
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var op model.Operation
		if err := json.Unmarshal([]byte(line), &op); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		ops = append(ops, op)
		count[op.F+" "+string(op.Type)]++
		switch {
		case (op.F == "create" || op.F == "append") && op.Type == model.OpOK:
			wrote[op.Key] = true
		case op.F == "final-list":
			has[op.Key] = true
		case op.F == "acquire" && holder != "":
			t.Errorf("%s is held by %s, %s gets the lock", op.Key, holder, op.Value)
		case op.F == "acquire":
			holder = op.Value
		case op.F == "release" && op.Value == holder:
			holder = ""
		case op.F == "final-status" && op.Value != "":
			t.Errorf("the queue is not empty: %s", op.Value)
		}
	}
	for _, want := range []string{"create ok", "append ok", "set ok", "configure ok", "sync-read ok", "read ok", "enqueue ok", "acquire ok", "release ok",
		"leave ok", "status ok", "final-role ok", "final-list ok", "final-list-done ok", "final-state ok", "final-state-done ok", "final-status ok"} {
		if count[want] == 0 {
			t.Errorf("no %s in the history: %v", want, count)
		}
	}
	for key := range wrote {
		if !has[key] {
			t.Errorf("%s was acknowledged and is not in the final list", key)
		}
	}
	if !slices.IsSortedFunc(ops, func(a, b model.Operation) int { return int(a.Time - b.Time) }) {
		t.Error("the history is not in the order of its times")
	}
}

// TestATreeThatChangesIsReadAgain has nodes come and go in the queue while the
// tree is read: what is returned must be a state that there was, in which the
// queue's node counts no child that the queue lacks.
func TestATreeThatChangesIsReadAgain(t *testing.T) {
	c := &common{host: "c1", nodes: []node{{"n1", fmt.Sprintf("127.0.0.1:%d", server(t))}}, session: 4 * time.Second,
		out: workload.NewHistory(io.Discard, time.Now())}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	writer, err := open(c, 0, 0, true, nil)
	if err != nil || !writer.ready(ctx) {
		t.Fatal("no session", err)
	}
	defer writer.conn.Close()
	reader, err := open(c, 1, 0, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.conn.Close()
	for _, p := range []string{"/netsplit", lockPath} {
		if _, err := writer.conn.Create(p, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			t.Fatal(err)
		}
	}
	for range 6 {
		done := make(chan error, 1)
		go func() {
			var err error
			for range 200 {
				if _, err = writer.conn.Create(lockPath+"/q", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
					break
				}
				if err = writer.conn.Delete(lockPath+"/q", -1); err != nil {
					break
				}
			}
			done <- err
		}()
		got, err := readTree(ctx, reader)
		if werr := <-done; err != nil || werr != nil {
			t.Fatal(err, werr)
		}
		for _, s := range got.state {
			// A server counts a node's children into the cversion it tells: it is
			// odd while there is one (a plain reading of twice the creations less
			// the children).
			if s[0] == lockPath && strings.Contains(s[1], "cversion=") && len(got.queue) == 0 && odd(t, s[1]) {
				t.Fatalf("a queue without a node, whose node counts one: %s", s[1])
			}
		}
	}
}

func odd(t *testing.T, stat string) bool {
	t.Helper()
	_, rest, _ := strings.Cut(stat, "cversion=")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n%2 == 1
}

// readsBesideOneThatIsDown: a server that is down takes no time from those behind it.
func readsBesideOneThatIsDown(t *testing.T, up *common) {
	t.Helper()
	var out bytes.Buffer
	c := &common{host: "c1", nodes: append([]node{{"n0", "127.0.0.1:1"}}, up.nodes...), session: time.Second, out: workload.NewHistory(&out, time.Now())}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := readAll(ctx, c); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"type":"ok","f":"final-list-done"`, `"type":"info","f":"final-list-done"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s:\n%s", want, &out)
		}
	}
}

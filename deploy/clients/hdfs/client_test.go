package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/deploy/clients/workload"
	"netsplit/e2e/need"
	"netsplit/model"
)

// fakeShell answers like Shell.java; what it says of a command is in the
// command's last word.
const fakeShell = `#!/bin/sh
echo ready
while read -r id verb rest; do
  last=${rest##* }
  case "$verb $last" in
    "-cat "*/checksum) if [ -f "$(dirname "$0")/content" ]; then echo "$id 0 $(base64 -w0 < "$(dirname "$0")/content") "; else echo "$id 0 $(printf x | base64 -w0) "; fi; continue ;;
  esac
  case $last in
    */hang) ;;
    */gone) exit 3 ;;
    */bad) echo "$id 1  $(printf '%s' 'cat: Call From c1/10.0.0.1 to n1:8020 failed on socket timeout exception: java.net.SocketTimeoutException: x' | base64 -w0)" ;;
    */checksum) echo "$id 1  $(printf '2026-11-21 20:00:00,1 WARN hdfs.DFSClient: x\njava.io.IOException: y\n\tat z\nchecksum: Fail to get block checksum for LocatedBlock{BP-1}\n' | base64 -w0)" ;;
    */none) echo "$id 1  $(printf "checksum: \\140/t/u1/none': Fail to get block MD5 for LocatedBlock{BP-1; locs=[]}\n" | base64 -w0)" ;;
    *) echo "$id 0 $(printf '%s' "$verb $rest" | base64 -w0) " ;;
  esac
done
`

func fake(t *testing.T) (*cluster, *shell) {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "java.sh")
	if err := os.WriteFile(script, []byte(fakeShell), 0o755); err != nil {
		t.Fatal(err)
	}
	c := &cluster{me: "c1", nns: ids([]string{"n1", "n2"}), dns: ids([]string{"n3", "n4", "n5"}), jns: ids([]string{"n3", "n4", "n5"}),
		replication: 2, script: script, dir: dir, work: dir, seed: 7, out: history{workload.NewHistory(&bytes.Buffer{}, time.Now())}}
	sh, err := startShell(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sh.stop)
	return c, sh
}

func TestCommandsGetTheirOwnAnswers(t *testing.T) {
	c, sh := fake(t)
	a, b := &user{cluster: c, sh: sh, id: 1, patience: 10 * time.Second}, &user{cluster: c, sh: sh, id: 2, patience: 10 * time.Second}
	for i := range 20 {
		for _, u := range []*user{a, b} {
			want := fmt.Sprintf("-cat /t/%d-%d", u.id, i)
			if got, err := sh.run(u, strings.Fields(want)...); err != nil || got != want {
				t.Fatalf("%q answered %q, %v", want, got, err)
			}
		}
	}
}

func TestFailuresBeginWithAStableWord(t *testing.T) {
	c, sh := fake(t)
	u := &user{cluster: c, sh: sh, id: 1, patience: 10 * time.Second}
	for path, want := range map[string]string{
		"/t/bad":      "SocketTimeoutException: cat: Call From",
		"/t/checksum": "Fail-to-get-block: checksum: Fail to get block checksum for LocatedBlock{BP-1}",
		"/t/none":     "Fail-to-get-block: checksum: `/t/u1/none': Fail to get block MD5 for LocatedBlock{BP-1; locs=[]}",
	} {
		if _, err := sh.run(u, "-checksum", path); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want one that begins with %q", path, err, want)
		}
	}
	u.patience = 50 * time.Millisecond
	if _, err := sh.run(u, "-cat", "/t/hang"); !isTimeout(err) {
		t.Errorf("a command without an answer: error %v, want a timeout", err)
	}
	u.patience = 10 * time.Second
	if _, err := sh.run(u, "-cat", "/t/x"); err != nil {
		t.Errorf("the command after one that timed out: %v", err)
	}
	if _, err := sh.run(u, "-cat", "/t/gone"); err == nil || !strings.HasPrefix(err.Error(), "client-died") {
		t.Errorf("a shell that ended: error %v, want client-died", err)
	}
}

// TestAChecksumOfAReadableFileHasNoExcuse: what a user does when he gets no
// checksum, and what of it stands without needs that a cut could excuse.
func TestAChecksumOfAReadableFileHasNoExcuse(t *testing.T) {
	for _, f := range []struct {
		path, content string
		want          []string
	}{
		{"/t/x", "", []string{"ok checksum"}},
		{"/t/bad", "", []string{"fail checksum SocketTimeoutException"}}, // of another kind: he leaves it
		{"/t/checksum", "", []string{"fail checksum Fail-to-get-block", "fail read changed"}},
		{"/t/checksum", "it", []string{"fail checksum Fail-to-get-block", "ok read", "fail checksum-of-readable Fail-to-get-block"}},
	} {
		c, sh := fake(t)
		c.active.Store(&c.nns[0])
		var out bytes.Buffer
		c.out = history{workload.NewHistory(&out, time.Now())}
		u := &user{cluster: c, sh: sh, id: 1, patience: 10 * time.Second, files: map[string]string{"f": f.path}}
		if f.content != "" { // the file as it was written
			if err := os.WriteFile(filepath.Join(c.dir, "content"), content(c.seed, "f"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		u.checksumOf("f")
		var got []string
		var requested time.Duration
		for line := range strings.Lines(out.String()) {
			var op model.Operation
			if err := json.Unmarshal([]byte(line), &op); err != nil {
				t.Fatal(err)
			}
			if op.Type == model.OpInvoke {
				if op.F == "checksum" {
					requested = op.Time
				}
				if op.F == "checksum-of-readable" && (len(op.Needs) != 2 || op.Needs[1].Count != len(c.dns) || op.Time > requested) {
					t.Errorf("%s at %v needs %v, want a NameNode and all DataNodes, from when the checksum was asked for (%v)", op.F, op.Time, op.Needs, requested)
				}
				continue
			}
			word, _, _ := strings.Cut(op.Error, ":")
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", op.Type, op.F, word)))
		}
		if diff := cmp.Diff(f.want, got); diff != "" {
			t.Errorf("%s %q: %s", f.path, f.content, diff)
		}
	}
}

func TestHistoryTellsFailuresFromTimeouts(t *testing.T) {
	var out bytes.Buffer
	h := history{workload.NewHistory(&out, time.Now())}
	needs := []model.Need{{Via: "c1", From: []model.NodeID{"n1"}, Count: 1}}
	for _, err := range []error{nil, errors.New("StandbyException: x"), fmt.Errorf("%w after 1s", errTimeout)} {
		_ = h.do(model.Operation{F: "write", Key: "k", Needs: needs}, func() (string, error) { return "", err })
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		var op model.Operation
		if err := json.Unmarshal([]byte(line), &op); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %d %s", op.Type, op.F, len(op.Needs), op.Error))
	}
	want := []string{"invoke write 1 ", "ok write 0 ", "invoke write 1 ", "fail write 0 StandbyException: x", "invoke write 1 ", "info write 0 timeout after 1s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNeedsFollowTheActiveNameNode(t *testing.T) {
	c := &cluster{me: "c1", nns: ids([]string{"n1", "n2"}), dns: ids([]string{"n3", "n4", "n5"}), jns: ids([]string{"n3", "n4", "n5"}), replication: 2}
	show := func(needs []model.Need) string {
		var out []string
		for _, n := range needs {
			out = append(out, fmt.Sprintf("%s %d of %v", n.Via, n.Count, n.From))
		}
		return strings.Join(out, ", ")
	}
	c.active.Store(&c.nns[1])
	if got, want := show(c.names()), "c1 1 of [n2], n2 2 of [n3 n4 n5]"; got != want {
		t.Errorf("names need %s, want %s", got, want)
	}
	if got, want := show(c.data()), "c1 1 of [n2], n2 2 of [n3 n4 n5], c1 2 of [n3 n4 n5], n2 2 of [n3 n4 n5]"; got != want {
		t.Errorf("data needs %s, want %s", got, want)
	}
	c.active.Store(nil)
	if got, want := show(c.names()), "c1 2 of [n1 n2], n1 2 of [n3 n4 n5], n2 2 of [n3 n4 n5]"; got != want {
		t.Errorf("while the service moves names need %s, want %s", got, want)
	}
}

func TestContentFollowsFromSeedAndName(t *testing.T) {
	if !bytes.Equal(content(1, "f0-001"), content(1, "f0-001")) {
		t.Error("the same file has two contents")
	}
	if bytes.Equal(content(1, "f0-001"), content(2, "f0-001")) || bytes.Equal(content(1, "f0-001"), content(1, "f0-002")) {
		t.Error("two files have one content")
	}
}

// nameNode is the web server of a NameNode in a state; "" answers nothing.
func nameNode(t *testing.T, c *cluster, state string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if state == "" {
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, `{"beans" : [ {"name" : "x", "State" : %q} ]}`, state)
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if c.httpPort, err = strconv.Atoi(u.Port()); err != nil {
		t.Fatal(err)
	}
}

// TestFencingTellsWhomItKills: the end of a NameNode that could not be made
// standby is entered as the administrator's, that of one that was is not.
func TestWhoIsToBeFenced(t *testing.T) {
	const standby = "WARN ha.FailoverController: Unable to gracefully make NameNode at n1/10.0.0.1:8020 standby (unable to connect)\n"
	const back = "ERROR ha.FailoverController: Unable to make NameNode at n2/10.0.0.2:8020 active (unable to connect). Failing back.\n"
	for said, want := range map[string]model.NodeID{"": "", "INFO x\n": "", standby: "n1", back: "n2", standby + back: "n2", back + standby: "n1"} {
		c := &cluster{work: t.TempDir()}
		if err := os.WriteFile(filepath.Join(c.work, toolLog), []byte(said), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := c.due(); err != nil || got != want {
			t.Errorf("after %q %q is to be fenced (%v), want %q", said, got, err, want)
		}
	}
	if got, err := (&cluster{work: t.TempDir()}).due(); err != nil || got != "" {
		t.Errorf("no failover runs, and %q is to be fenced (%v)", got, err)
	}
}

func TestFencingTellsWhomItKills(t *testing.T) {
	for _, c := range []struct {
		state, said string
		reported    bool
	}{
		{"active", "", true},
		{"standby", "", false},
		{"", "", true},
		{"standby", "WARN ha.FailoverController: Unable to gracefully make NameNode at 127.0.0.1/127.0.0.1:8020 standby (unable to connect)", true},
		{"standby", "WARN ha.FailoverController: Unable to gracefully make NameNode at n9/10.0.0.9:8020 standby (unable to connect)", false},
	} {
		t.Run("state "+c.state+" "+c.said, func(t *testing.T) {
			dir := t.TempDir()
			victim := exec.Command("sleep", "60")
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
			netsplit := filepath.Join(dir, "netsplit")
			script := fmt.Sprintf("#!/bin/sh\necho \"$*\" >%s/asked\nkill -KILL %d\n", dir, victim.Process.Pid)
			if err := os.WriteFile(netsplit, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			if c.said != "" {
				if err := os.WriteFile(filepath.Join(dir, toolLog), []byte("INFO x\n"+c.said+"\n\tat y\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			a := &admin{cluster: &cluster{work: dir, netsplit: netsplit, out: history{workload.NewHistory(&bytes.Buffer{}, time.Now())}}}
			nameNode(t, a.cluster, c.state)
			if err := os.WriteFile(a.pidFile("namenode", "127.0.0.1"), []byte(strconv.Itoa(victim.Process.Pid)+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := a.fence(context.Background(), "127.0.0.1"); err != nil {
				t.Fatal(err)
			}
			err := victim.Wait()
			var x *exec.ExitError
			if !errors.As(err, &x) || x.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Errorf("the NameNode ended with %v, want SIGKILL", err)
			}
			requested, err := os.ReadFile(filepath.Join(dir, "asked"))
			if reported := err == nil; reported != c.reported || reported && string(requested) != "node kill namenode 127.0.0.1\n" {
				t.Errorf("netsplit was asked %v (%q), want %v", reported, requested, c.reported)
			}
			if got := a.fencedHosts(); len(got) != 1 || got[0] != "127.0.0.1" {
				t.Errorf("fenced: %v", got)
			}
			if got := a.fencedHosts(); len(got) != 0 {
				t.Errorf("the same fencing is told twice: %v", got)
			}
		})
	}
}

// TestAFailedFailoverIsTriedAgain: until it is done, also when the time is over, and
// the users then have a moment to look.
func TestAFailedFailoverIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	a := &admin{rng: rand.New(rand.NewPCG(1, 1)), cluster: &cluster{me: "c1", nns: ids([]string{"127.0.0.1", "localhost"}), jns: ids([]string{"n3"}), work: dir,
		script: filepath.Join(dir, "java.sh"), out: history{workload.NewHistory(&out, time.Now())}}}
	nameNode(t, a.cluster, "active")
	// The first fails, as one does whose NameNode is cut off.
	if err := os.WriteFile(a.script, []byte("[ -f "+dir+"/again ] && exit 0\n: >"+dir+"/again\necho 'Failover failed: x' >&2; exit 255\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // the time is over as soon as the first has begun
		within(20*time.Second, func() bool { _, err := os.Stat(filepath.Join(dir, "again")); return err == nil })
		cancel()
	}()
	a.failovers(ctx)
	var got []string
	var last time.Duration
	for line := range strings.Lines(out.String()) {
		var op model.Operation
		if err := json.Unmarshal([]byte(line), &op); err != nil {
			t.Fatal(err)
		}
		got, last = append(got, string(op.Type)), op.Time
	}
	if want := []string{"invoke", "fail", "invoke", "ok"}; !slices.Equal(got, want) {
		t.Errorf("failovers: %v, want %v", got, want)
	}
	if left := a.out.Since(time.Now()) - last; left < time.Second {
		t.Errorf("the users had %s to look", left)
	}
	if s := a.active.Load(); s == nil {
		t.Error("nobody knows who serves")
	}
}

func TestADataNodeThatWasShutDownIsNotListed(t *testing.T) {
	c := &cluster{nns: ids([]string{"127.0.0.1"})}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"beans" : [ {"LiveNodes" : "{\"n2:9866\":{\"lastContact\":0},\"n4:9866\":{\"lastContact\":5}}"} ]}`)
	}))
	t.Cleanup(s.Close)
	u, _ := url.Parse(s.URL)
	c.httpPort, _ = strconv.Atoi(u.Port())
	for host, want := range map[model.NodeID]bool{"n2": true, "n4": false, "n3": false} {
		if got := c.listed(context.Background(), host); got != want {
			t.Errorf("%s is listed: %v, want %v", host, got, want)
		}
	}
}

func TestShellCompiles(t *testing.T) {
	need.Program(t, "javac", "openjdk-17-jdk-headless")
	// Without Hadoop's classes the only errors are that these are missing.
	src := filepath.Join(t.TempDir(), "Shell.java")
	if err := os.WriteFile(src, shellSource, 0o644); err != nil {
		t.Fatal(err)
	}
	b, _ := exec.Command("javac", "-proc:none", "-d", t.TempDir(), src).CombinedOutput()
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, ": error: ") && !strings.Contains(line, "package org.apache.hadoop") && !strings.Contains(line, "cannot find symbol") {
			t.Error(line)
		}
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsplit/api/trust"
	"netsplit/api/wire"
)

// TestAPartitionIsARow, whatever its reason says; all of that is shown of one.
func TestAPartitionIsARow(t *testing.T) {
	spec := wire.PartitionSpec{Name: "p1", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}}
	p := wire.PartitionStatus{PartitionSpec: spec, State: "requested", Reason: "not proved:\nhost a: no link\thost b:\n  network is down\n"}
	var list, one bytes.Buffer
	if err := printPartitions(&list, []wire.PartitionStatus{p, p}); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(list.String()), "\n")
	if len(rows) != 3 || !strings.HasSuffix(rows[1], "not proved: host a: no link host b: network is down") || rows[1] != rows[2] {
		t.Errorf("%d rows:\n%s", len(rows), list.String())
	}
	if err := describePartition(&one, p); err != nil || !strings.Contains(one.String(), "  not proved:\n  host a: no link\thost b:\n") {
		t.Errorf("shown:\n%s", one.String())
	}
}

// TestLapsesAreShown, and how many there were before.
func TestLapsesAreShown(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	to := at.Add(1500 * time.Millisecond)
	p := wire.PartitionStatus{State: "requested", Lapsed: 22, Lapses: []wire.Lapse{{From: at, To: &to, Why: "somebody\nchanged a rule"}, {From: at, Why: "it expired"}}}
	var out bytes.Buffer
	if err := describePartition(&out, p); err != nil {
		t.Fatal(err)
	}
	want := "  20 earlier lapses are not listed\n" +
		"  lapsed    03:04:05.000, for 1.500 s, when packets may have passed: somebody; changed a rule\n" +
		"  lapsed    03:04:05.000, until now, when packets may have passed: it expired\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
}

// TestWhatACutCannotMean is refused before any daemon is asked: names that are none,
// and numbers and times that a daemon would take for left out.
func TestWhatACutCannotMean(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"partial", "n1,", "n2"}, `group "n1,": write host names with single commas and no blanks: n1,n2 is one group`},
		{[]string{"partial", "n1", ",n2"}, `group ",n2"`},
		{[]string{"partial", "n1,,n3", "n2"}, `group "n1,,n3"`},
		{[]string{"partial", "n1", ""}, `group ""`},
		{[]string{"isolate", "n1 n2"}, `group "n1 n2"`},
		{[]string{"isolate", "n1", "--for", "0"}, "--for 0s: write a time greater than 0, such as 30s, or leave it out"},
		{[]string{"isolate", "n1", "--for", "-3s"}, "--for -3s"},
		{[]string{"leader-in", "--size", "0"}, "--size 0: use 1 or more"},
		{[]string{"leader-out", "--size", "-2"}, "--size -2: use 1 or more"},
		{[]string{"star", "n1"}, `unknown shape "star"`},
	} {
		code, _, errs := cli(t, append([]string{"partition", "cut", "--api", "127.0.0.1:1"}, c.args...)...)
		if code != exitUsage || !strings.Contains(errs, c.says) {
			t.Errorf("%q: status %d, %s; want %s", c.args, code, errs, c.says)
		}
	}
	if code, _, errs := cli(t, "campaign", "--budget", "0s", "--api", "127.0.0.1:1", "redis-sentinel"); code != exitUsage || !strings.Contains(errs, "--budget 0s: write a time greater than 0") {
		t.Errorf("status %d: %s", code, errs)
	}
	for _, args := range [][]string{{"heal", ""}, {"heal", "p1", ""}, {"show", ""}} {
		if code, _, errs := cli(t, append([]string{"partition", "--api", "127.0.0.1:1"}, args...)...); code != exitUsage || !strings.Contains(errs, "name of a partition is empty") {
			t.Errorf("%q: status %d, %s", args, code, errs)
		}
	}
	// What means something goes to the daemon, which there is none of.
	for _, args := range [][]string{{"partial", "n1,n3", "n2", "--for", "3s"}, {"partial", "n1, n3", "n2"}, {"leader-in", "--size", "1"}, {"ring"}} {
		if code, _, errs := cli(t, append([]string{"partition", "cut", "--api", "127.0.0.1:1"}, args...)...); code != exitFailed || !strings.Contains(errs, "no netsplit daemon") {
			t.Errorf("%q: status %d, %s", args, code, errs)
		}
	}
}

// answering answers a cut, and then each question for it, with the next state of it; the
// last one for ever.
func answering(t *testing.T, states ...wire.PartitionStatus) (address string) {
	var requested atomic.Int32
	return listening(t, func(w http.ResponseWriter, r *http.Request) {
		p := states[min(int(requested.Add(1)), len(states))-1]
		p.Name = "p1"
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		if err := json.NewEncoder(w).Encode(p); err != nil {
			t.Error(err)
		}
	})
}

// listening is a daemon that answers so, found by a socket.
func listening(t *testing.T, answer http.HandlerFunc) (address string) {
	path := filepath.Join(t.TempDir(), "own", "s")
	ln, err := trust.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	api := httptest.Server{Listener: ln, Config: &http.Server{Handler: answer}}
	api.Start()
	t.Cleanup(api.Close)
	return "unix:" + path
}

// TestACutFromAFile asks for just what the file says, and prints what the API answers.
func TestACutFromAFile(t *testing.T) {
	var requested string
	address := listening(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requested = strings.TrimSpace(string(b))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		now := time.Now()
		p := wire.PartitionStatus{PartitionSpec: wire.PartitionSpec{Name: "p1", Partition: wire.Partition{Shape: "isolate"}}, State: "in_force", InForce: &now}
		if err := json.NewEncoder(w).Encode(p); err != nil {
			t.Error(err)
		}
	})
	const spec = `{"name":"p1","for":"30s","shape":"isolate","groups":[["n1"]],"only":[{"proto":"tcp","port":80}]}`
	file := filepath.Join(t.TempDir(), "p.json")
	for _, c := range []struct {
		text, says string
		more       []string
	}{
		{text: spec},
		{spec, "--file " + file + " and isolate both say what to cut: leave one out", []string{"isolate"}},
		{spec, "and --name both say", []string{"--name", "x"}},
		{spec + "{}", "a file holds one partition", nil},
		{`{"shap":"isolate"}`, `unknown field "shap"`, nil},
		{`isolate n1`, "want JSON such as", nil},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		code, out, errs := cli(t, append([]string{"partition", "cut", "-o", "json", "--file", file, "--api", address}, c.more...)...)
		if c.says != "" {
			if code != exitUsage || !strings.Contains(errs, c.says) {
				t.Errorf("%s %v: status %d, %s", c.text, c.more, code, errs)
			}
			continue
		}
		var got, want, was wire.PartitionSpec
		var p wire.PartitionStatus
		if err := errors.Join(json.Unmarshal([]byte(spec), &want), json.Unmarshal([]byte(requested), &was), json.Unmarshal([]byte(out), &p)); err != nil {
			t.Fatalf("%v: asked %s, printed %s", err, requested, out)
		}
		if got = p.PartitionSpec; code != exitPass || !reflect.DeepEqual(was, want) || got.Name != "p1" || p.State != "in_force" {
			t.Errorf("status %d, asked %s, printed %s, %s", code, requested, out, errs)
		}
	}
	if code, _, errs := cli(t, "partition", "cut", "-f", file+"x"); code != exitUsage || !strings.Contains(errs, "no such file") {
		t.Errorf("status %d, %s", code, errs)
	}
}

// TestACutTellsWhatHindersIt while it waits, each reason once. One that is over again
// was made.
func TestACutTellsWhatHindersIt(t *testing.T) {
	now := time.Now()
	hindered, proving := wire.PartitionStatus{State: "requested", Reason: "in the way:\nrule 7"}, wire.PartitionStatus{State: "requested"}
	still := "netsplit: partition p1 is not in force yet, trying again: "
	for _, c := range []struct {
		states    []wire.PartitionStatus
		code      int
		out, errs string
	}{
		{[]wire.PartitionStatus{hindered, hindered, proving, {State: "in_force", InForce: &now}}, exitPass, "p1 is in force", still + "in the way: rule 7\n" + still + "it is being proved\n"},
		{[]wire.PartitionStatus{proving, {State: "in_force", InForce: &now}}, exitPass, "p1 is in force", still + "it is being proved\n"},
		{[]wire.PartitionStatus{{State: "healing", InForce: &now}}, exitPass, "p1 is healing", ""},
		{[]wire.PartitionStatus{{State: "failed", Reason: "no room"}}, exitFailed, "p1 is failed", "netsplit: partition p1 is failed and not in force: no room\n"},
	} {
		code, out, errs := cli(t, "partition", "cut", "isolate", "n1", "--api", answering(t, c.states...))
		if code != c.code || errs != c.errs || !strings.Contains(out, c.out) {
			t.Errorf("%+v: status %d, %s, %s", c.states, code, out, errs)
		}
	}
}

// TestACommandThatIsNone is wrong use at every level, not a call for help.
func TestACommandThatIsNone(t *testing.T) {
	for _, args := range [][]string{{"haal"}, {"partition", "haal", "p1"}, {"testbed", "lern"}, {"lab", "upp"}, {"target", "nosuch"}, {"script", "nosuch"}} {
		if code, _, errs := cli(t, args...); code != exitUsage || !strings.Contains(errs, "unknown command") {
			t.Errorf("%q: status %d, %s", args, code, errs)
		}
	}
	if _, _, errs := cli(t, "partition", "hael"); !strings.Contains(errs, "did you mean heal?") {
		t.Errorf("%s", errs)
	}
	if code, out, _ := cli(t, "partition"); code != exitPass || !strings.Contains(out, "Available Commands") {
		t.Errorf("status %d: %s", code, out)
	}
}

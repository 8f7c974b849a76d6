package nodes

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/testbed"
)

// fakeSSH runs what it is told on a host whose files are in the folder "far" beside
// it: paths of ours lie there. Its connection breaks where a file "broken" is.
const fakeSSH = `#!/bin/sh
shift
at="${0%/*}"
export PATH="$at:$PATH"
sh -c "$(printf %s "$*" | sed "s#$at/run#$at/far$at/run#g")"
status=$?
[ ! -e "$at/broken" ] || exit 255
exit $status
`

// fakeUnshare checks for the file that is to be mounted, and mounts nothing.
const fakeUnshare = `#!/bin/sh
while [ "$1" != sh ]; do shift; done
[ -s "$5" ] || { echo "mount: no file $5" >&2; exit 32; }
shift 5
exec "$@"
`

// far are processes of a target with one server, db on n1, behind a fake ssh; dir is
// where that is.
func far(t *testing.T, command ...string) (p *Processes, dir string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	dir = t.TempDir()
	for name, text := range map[string]string{"ssh": fakeSSH, "unshare": fakeUnshare} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := filepath.Join(dir, "run")
	rec, err := rundir.Create(run, model.RunMeta{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	host := model.TestbedHost{Name: "n1", IP: netip.MustParseAddr("10.0.0.1"), Exec: []string{filepath.Join(dir, "ssh"), "root@n1"}}
	p = New(Config{Dir: run, Record: rec, Start: time.Now(), Journal: new(recorder), Testbed: &testbed.Testbed{Testbed: model.Testbed{Name: "t", Hosts: []model.TestbedHost{host}}},
		Kit: &Kit{Target: &model.Target{Name: "one", Hostnames: true, Nodes: []model.NodeID{"n1"},
			Processes: []model.Process{{Name: "db", Hosts: []model.NodeID{"n1"}, Command: command}},
			Stable:    []model.Condition{{Name: "up", Hosts: []model.NodeID{"n1"}, Probe: model.Probe{Command: []string{"cat", "up"}}, Match: "yes"}},
			Timing:    model.Timing{Settle: 20 * time.Second}}}})
	return p, dir
}

// TestNamesReachRemoteHosts: what is run there finds the file of names.
func TestNamesReachRemoteHosts(t *testing.T) {
	p, dir := far(t, "sh", "-c", "touch runs; exec sleep 100")
	p.c.Kit.Target.Stable = nil
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "the server runs", func() bool { return exists(filepath.Join(dir, "far", p.dirOf("n1")), "runs") })
	b, err := os.ReadFile(filepath.Join(dir, "far", p.hostsPath()))
	if err != nil || !strings.Contains(string(b), "10.0.0.1 n1\n") {
		t.Errorf("names there: %q, %v", b, err)
	}
	if answer, err := p.Ask(context.Background(), "n1", model.Probe{Command: []string{"echo", "yes"}}); err != nil || strings.TrimSpace(answer) != "yes" {
		t.Errorf("a probe there: %q, %v", answer, err)
	}
	if err := p.StopAll(); err != nil || fmt.Sprint(p.c.Journal) != "" {
		t.Errorf("%v; %s", err, p.c.Journal)
	}
	if exists(filepath.Join(dir, "far"), p.work()) {
		t.Error("the run leaves something there")
	}
}

// TestWhyAStartFailed names the broken connection, not what did not come of it.
func TestWhyAStartFailed(t *testing.T) {
	p, dir := far(t)
	p.c.Kit.Target.Hostnames = false
	p.c.Kit.Target.Processes[0].Command = []string{"sh", "-c", "touch runs; until [ -e '" + dir + "/broken' ]; do sleep 0.01; done"}
	go func() {
		for !exists(filepath.Join(dir, "far", p.dirOf("n1")), "runs") && t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		_ = os.WriteFile(filepath.Join(dir, "broken"), nil, 0o644)
	}()
	err := p.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "could not be started: the connection to host n1 broke while the target started: the state of db is unknown") {
		t.Error(err)
	}
	os.Remove(filepath.Join(dir, "broken"))
	_ = p.StopAll()
}

// TestAWorkloadThatFailsSaysWhy, without a look into its log.
func TestAWorkloadThatFailsSaysWhy(t *testing.T) {
	p, _ := far(t)
	w := model.Workload{Name: "w", Host: "n1", Command: []string{"sh", "-c", "echo no module >&2; echo >&2; exit 3"}}
	p.c.Kit.Target.Hostnames, p.c.Kit.Target.Processes, p.c.Kit.Target.Stable = false, nil, nil
	p.c.Kit.Target.Workloads = []model.Workload{w}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Workloads(t.Context(), p.c.Kit.Target.Workloads, "workload")
	if got, want := fmt.Sprint(p.c.Journal), `workload w on n1: it ended with exit status 3; it printed "no module"; all output is in `; !strings.Contains(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	_ = p.StopAll()
}

// TestACommandOfTheSetUpThatFailsSaysWhy, as a server does that ends.
func TestACommandOfTheSetUpThatFailsSaysWhy(t *testing.T) {
	p, dir := far(t, "sh", "-c", "echo disk is full >&2; echo; exit 3")
	p.c.Kit.Target.Hostnames = false
	p.c.Kit.Target.Processes[0].Once = true
	err := p.Start(t.Context())
	log := filepath.Join(dir, "run", rundir.LogsDir, "n1-db.log")
	if want := `db on n1 ended with exit status 3; it printed "disk is full"; all output is in ` + log; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	_ = p.StopAll()
}

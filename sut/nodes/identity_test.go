package nodes

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/e2e/need"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
	"netsplit/sut"
	"netsplit/testbed"
	"netsplit/testbed/disk"
	"netsplit/testbed/proc"
)

// self is this program, which can be what the target's processes are started with.
var self string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == proc.ConfineVerb {
		os.Exit(proc.ConfineMain(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == disk.Verb {
		os.Exit(disk.Main(os.Args[2:]))
	}
	var err error
	if self, err = os.Executable(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// openDir is a folder that everybody may use, unlike t.TempDir.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "netsplit-open-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// asRoot are the rights of targets in tests of other things.
var asRoot = model.Rights{User: "root"}

// TestAServerHasTheRightsThatItsFileAsksFor: those of nobody where it asks for none,
// in a run whose folder is shut to others; the record says which.
func TestAServerHasTheRightsThatItsFileAsksFor(t *testing.T) {
	need.Root(t, "give up its rights")
	secret := filepath.Join(openDir(t), "secret")
	if err := os.WriteFile(secret, []byte("sesame"), 0o600); err != nil {
		t.Fatal(err)
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	const who = `echo "$(id -u) $(grep CapEff /proc/self/status | cut -f2) $(cat `
	script := who + secret + ` 2>/dev/null)"; echo again > conf/own && cp conf/own new; exit 0`
	tg := &model.Target{Name: "one", Nodes: []model.NodeID{"n1"}}
	add := func(name string, r model.Rights, script string) {
		tg.Processes = append(tg.Processes, model.Process{Name: name, Hosts: tg.Nodes, Files: map[string]string{"conf/own": "first"}, Command: []string{"sh", "-c", script}, Rights: r})
	}
	add("plain", model.Rights{}, script)
	add("caps", model.Rights{Capabilities: []string{"net_bind_service"}}, script)
	add("user", model.Rights{User: "nobody"}, who+secret+` 2>/dev/null)"`)
	add("root", asRoot, script)
	add("lacks", model.Rights{}, "cat "+secret)
	dir := filepath.Join(t.TempDir(), "c-1", "r1")
	w, err := rundir.Create(dir, model.RunMeta{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the run's folder: %v, %v", st, err)
	}
	p := New(Config{Dir: dir, Start: time.Now(), Journal: new(recorder), Record: w, Kit: &Kit{Target: tg, expand: sut.ExpandInput{Netsplit: self, Cache: filepath.Join(t.TempDir(), "cache")}},
		Testbed: &testbed.Testbed{Testbed: model.Testbed{Hosts: []model.TestbedHost{{Name: "n1"}}}}})
	if p.logs, err = newLogs(tg.Logs, p.c.Journal.Number, func(string, record.LogLine) {}); err != nil {
		t.Fatal(err)
	}
	if err := p.prepare(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"76653 0000000000000000 \n", "76653 0000000000000400 \n", nobody.Uid + " 0000000000000000 \n", "0 "} {
		q := tg.Processes[i]
		err := p.once(t.Context(), q)
		b, rerr := os.ReadFile(p.logPath("n1", q.Name))
		if err != nil || rerr != nil || !strings.HasPrefix(string(b), want) || q.Name == "root" != strings.Contains(string(b), "sesame") {
			t.Errorf("%s: it said %q, %v, %v, want %q", q.Name, b, err, rerr, want)
		}
	}
	if err := p.once(t.Context(), tg.Processes[4]); err == nil || !strings.Contains(err.Error(), "it runs as user netsplit-target with no capabilities") || !strings.Contains(err.Error(), "user: root") {
		t.Errorf("one that lacks a right: %v", err)
	}
	answer, err := p.Ask(t.Context(), "n1", model.Probe{Command: []string{"id", "-un"}, Limit: 5 * time.Second})
	if err != nil || answer != "netsplit-target\n" {
		t.Errorf("a probe runs as %q, %v", answer, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, _, err := rundir.ReadLines[record.Started](dir, rundir.ProcessesFile)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i].At = 0
	}
	started := func(name, user string, caps ...string) record.Started {
		return record.Started{Host: "n1", Process: name, User: user, Capabilities: append([]string{}, caps...)}
	}
	want := []record.Started{started("plain", targetUser), started("caps", targetUser, "net_bind_service"), started("user", "nobody"), started("root", "root", "all"), started("lacks", targetUser)}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the record says (-want +got)\n%s", d)
	}
}

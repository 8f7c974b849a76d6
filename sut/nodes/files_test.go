package nodes

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/e2e/need"
	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/sut"
	"netsplit/testbed"
)

// TestAServerIsHeldEachTimeItStarts: what is decided comes of its operations, those of others
// are not asked for, and what it did not sync is lost in a power cut.
func TestAServerIsHeldEachTimeItStarts(t *testing.T) {
	need.Root(t, "hold the file operations of a server")
	server := func(name string) model.Process {
		return model.Process{Name: name, Hosts: []model.NodeID{"n1"}, Command: []string{"sh", "-c",
			"cd " + name + " && echo one >> log-7; echo two >> log-7 || echo failed >> log-7; echo > done; exec sleep 60"}, Files: map[string]string{name + "/conf": "x"}}
	}
	tg := &model.Target{Name: "one", Nodes: []model.NodeID{"n1"}, Processes: []model.Process{server("other"), server("db")}, Timing: model.Timing{Settle: time.Minute}}
	dir := filepath.Join(t.TempDir(), "run")
	rec, err := rundir.Create(dir, model.RunMeta{Run: "c-1-r0001"})
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	heard := make(chan model.FileOperation, 100)
	writes := 0
	p := New(Config{Kit: &Kit{Target: tg, expand: sut.ExpandInput{Netsplit: self, Cache: filepath.Join(t.TempDir(), "cache")}}, Run: "c-1-r0001", Dir: dir, Start: time.Now(), Record: rec, Journal: &journal{},
		Testbed: &testbed.Testbed{Testbed: model.Testbed{Hosts: []model.TestbedHost{{Name: "n1", IP: netip.MustParseAddr("10.0.0.1")}}}},
		Files: &Files{
			Holds:     func(h model.NodeID, process string) bool { return h == "n1" && process == "db" },
			CutsPower: func(model.NodeID) bool { return true },
			Decide: func(o model.FileOperation) (a model.FileAnswer) { // one call at a time
				if o.Kind == "db/log-#" && o.Op == model.FileWrite {
					if writes++; writes == 2 {
						a.Errno = "EIO"
					}
				}
				heard <- o
				return a
			},
		}})
	closed := false
	stop := func() {
		if !closed {
			closed = true
			if err := p.StopAll(); err != nil {
				t.Error(err)
			}
		}
	}
	defer stop()
	// done is what the server did until it was done.
	done := func() (out []string) {
		for limit := time.After(time.Minute); ; {
			select {
			case o := <-heard:
				out = append(out, string(o.Host)+" "+o.Process+" "+string(o.Op)+" "+o.Path)
				if o.Kind == "db/done" && o.Op == model.FileWrite {
					return out
				}
			case <-limit:
				t.Fatalf("the server did only %q", out)
			}
		}
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"create db/log-7", "write db/log-7", "open db/log-7", "write db/log-7", "open db/log-7", "write db/log-7", "create db/done", "write db/done"}
	for i := range want {
		want[i] = "n1 db " + want[i]
	}
	if d := cmp.Diff(want, done()); d != "" {
		t.Error(d)
	}
	if err := p.Act(model.NodeAction{Verb: model.NodeKill, Process: "db", Host: "n1"}); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(p.dirOf("n1"), "db/log-7")
	if b, err := os.ReadFile(log); err != nil || string(b) != "one\nfailed\n" {
		t.Errorf("the file holds %q, %v: the second write fails", b, err)
	}
	if d, err := p.Corrupt("n1", "db/log-#", 2, 1); err != nil || d.Path != "db/log-7" || len(d.Changed) != 2 || d.Size != 11 {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := p.Corrupt("n1", "db/none", 2, 1); err == nil || !strings.Contains(err.Error(), "no file db/none") {
		t.Error(err)
	}
	// What was not synced and then torn is torn on disk.
	if d, err := p.Tear("n1", "db/log-#", 6); err != nil || d.Size != 11 || d.Kept != 5 {
		t.Errorf("%+v, %v", d, err)
	}
	torn := filepath.Join(p.dirOf("n1"), "db/torn-1")
	for bytes, want := range map[int]string{0: "0123", 2: "012345", 99: ""} {
		if err := os.WriteFile(torn, []byte("01234567"), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := p.Tear("n1", "db/torn-#", bytes)
		if b, _ := os.ReadFile(torn); err != nil || string(b) != want || d.Size != 8 || d.Kept != int64(len(want)) {
			t.Errorf("torn by %d: %q, %+v, %v", bytes, b, d, err)
		}
	}
	if err := os.Remove(torn); err != nil {
		t.Fatal(err)
	}
	lost, err := p.PowerCut("n1")
	lost = slices.DeleteFunc(lost, func(d model.FileDamage) bool { return d.Path == "db/done" }) // it may have been written or not
	if err != nil || len(lost) > 0 {
		t.Errorf("%+v, %v", lost, err)
	}
	if fi, err := os.Stat(log); err != nil || fi.Size() != 5 {
		t.Errorf("the torn file: %v, %v", fi, err)
	}
	if _, err := p.PowerCut("n2"); !errors.Is(err, ErrNeverStarted) {
		t.Error(err)
	}
	if err := p.Act(model.NodeAction{Verb: model.NodeStart, Process: "db", Host: "n1"}); err != nil {
		t.Fatal(err)
	}
	if got := done(); len(got) != 6 || got[0] != "n1 db open db/log-7" { // it was there, and nothing failed
		t.Errorf("started again it did %q", got)
	}
	if err := p.FilesUnseen(); err != nil {
		t.Error(err)
	}
	stop()
	if len(p.gates.byServer) != 0 {
		t.Error("its gate is left")
	}
}

package campaign

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"netsplit/internal/storetest"
	"netsplit/model"
	"netsplit/record/rundir"
)

// TestAFileOfARunIsARegularOneInItsFolder: whatever else somebody put there is a
// conflict, said at once and not followed.
func TestAFileOfARunIsARegularOneInItsFolder(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, store: storetest.New(t)}
	for _, run := range []string{"r1", "r2"} {
		if err := s.store.PutRun(model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: run}}); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := t.TempDir()
	write(t, filepath.Join(elsewhere, rundir.MetaFile), "secret")
	dir := s.runDir("c-1", "r1")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Symlink(elsewhere, s.runDir("c-1", "r2")),
		os.Symlink(filepath.Join(elsewhere, rundir.MetaFile), filepath.Join(dir, rundir.RulesFile)), unix.Mkfifo(filepath.Join(dir, rundir.EventsFile), 0o600)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, rundir.MetaFile), "ours")
	f, err := s.RunFile(t.Context(), "r1", rundir.MetaFile)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(f); err != nil || string(b) != "ours" {
		t.Errorf("%q, %v", b, err)
	}
	f.Close()
	logs := filepath.Join(dir, rundir.LogsDir)
	if err := errors.Join(os.MkdirAll(filepath.Join(logs, "n1"), 0o700), os.Symlink(elsewhere, filepath.Join(logs, "n2"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(elsewhere, rundir.MetaFile), filepath.Join(logs, "n1", "link.log")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(logs, "n1", "server.log"), "it began")
	list, err := s.RunLogs(t.Context(), "r1")
	if want := []model.LogFile{{Name: "n1/server.log", Bytes: 8}}; err != nil || !slices.Equal(list, want) {
		t.Errorf("%v, %v, want %v", list, err, want)
	}
	if f, err = s.RunLog(t.Context(), "r1", list[0].Name); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(f); err != nil || string(b) != "it began" {
		t.Errorf("%q, %v", b, err)
	}
	f.Close()
	for name, want := range map[string]error{"n1/none.log": model.ErrNotFound, strings.Repeat("0", 300): model.ErrNotFound, "n1/server.log/x": model.ErrNotFound, "n1": model.ErrInvalid, ".": model.ErrInvalid, "n1/link.log": model.ErrConflict, "n2/" + rundir.MetaFile: model.ErrConflict,
		"../" + rundir.MetaFile: model.ErrInvalid, "/etc/passwd": model.ErrInvalid, "n1/../../" + rundir.MetaFile: model.ErrInvalid} {
		if f, err := s.RunLog(t.Context(), "r1", name); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v, want %v", name, f, err, want)
		}
	}
	if _, err := s.RunFile(t.Context(), "r1", rundir.HistoryFile); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
	for _, c := range []struct{ run, file, why string }{{"r1", rundir.RulesFile, "link"}, {"r1", rundir.EventsFile, "FIFO"}, {"r2", rundir.MetaFile, "link"}} {
		if _, err := s.RunFile(t.Context(), c.run, c.file); !errors.Is(err, model.ErrConflict) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s of %s: %v, want a conflict that names the %s", c.file, c.run, err, c.why)
		}
	}
}

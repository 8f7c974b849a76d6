package campaign

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"netsplit/internal/storetest"
	"netsplit/model"
	"netsplit/record/rundir"
)

// TestARunIsAsked by its id; a record that somebody changed is a conflict.
func TestARunIsAsked(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, store: storetest.New(t)}
	for _, run := range []string{"r1", "r2", "r3"} {
		if err := s.store.PutRun(model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: run}}); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere, dir := t.TempDir(), s.runDir("c-1", "r1")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.MkdirAll(s.runDir("c-1", "r3"), 0o700), os.Symlink(elsewhere, s.runDir("c-1", "r2"))); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{elsewhere, dir} {
		write(t, filepath.Join(d, rundir.MetaFile), `{"run":"r1"}`)
		write(t, filepath.Join(d, rundir.EventsFile), `{"n":1,"t":5,"k":"start"}`+"\n")
	}
	out, err := s.QueryRun(t.Context(), "r1", "select n, t, kind from event", 10)
	if err != nil || len(out.Rows) != 1 || out.Rows[0][2] != "start" {
		t.Errorf("%+v, %v", out, err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, rundir.HistoryFile), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		run, sql string
		want     error
	}{{"r1", "select 1", model.ErrConflict}, {"r2", "select 1", model.ErrConflict}, {"r3", "select 1", model.ErrNotFound}, {"r4", "select 1", model.ErrNotFound}} {
		if out, err := s.QueryRun(t.Context(), c.run, c.sql, 10); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v: want %v", c.run, out, err, c.want)
		}
	}
}

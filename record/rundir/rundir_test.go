package rundir

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
	"netsplit/record"
)

func TestLinesComeBackInOrderAndAKilledWritersTailIsLeftOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r1")
	w, err := Create(dir, model.RunMeta{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	want := []model.Event{{Num: 1, Kind: model.EventStart}, {Num: 2, Kind: model.EventTick, At: 5}}
	for _, e := range want {
		w.Append(EventsFile, e)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, cut, err := ReadLines[model.Event](dir, EventsFile)
	if err != nil || cut || cmp.Diff(want, got) != "" {
		t.Fatalf("read back: cut %v, err %v, diff %s", cut, err, cmp.Diff(want, got))
	}

	path := filepath.Join(dir, EventsFile)
	b, _ := os.ReadFile(path)
	if err := os.WriteFile(path, b[:len(b)-4], 0o644); err != nil {
		t.Fatal(err)
	}
	got, cut, err = ReadLines[model.Event](dir, EventsFile)
	if err != nil || !cut || cmp.Diff(want[:1], got) != "" {
		t.Fatalf("cut tail: cut %v, err %v, got %v", cut, err, got)
	}

	if err := os.WriteFile(path, append([]byte("{broken\n"), b...), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err = ReadLines[model.Event](dir, EventsFile); err == nil {
		t.Fatal("a broken line in the middle was accepted")
	}
}

func TestLinesAreCountedByFile(t *testing.T) {
	w, err := Create(t.TempDir(), model.RunMeta{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.Append(EventsFile, model.Event{})
	}
	w.Append(HistoryFile, record.Entry{})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(w.Lines()), "map[events.jsonl:3 history.jsonl:1]"; got != want {
		t.Errorf("lines %s, want %s", got, want)
	}
}

// TestWhatComesAfterTheEndIsNotCounted: nobody would write it out, and the record
// would lack a line.
func TestWhatComesAfterTheEndIsNotCounted(t *testing.T) {
	for range 20 {
		w, err := Create(t.TempDir(), model.RunMeta{})
		if err != nil {
			t.Fatal(err)
		}
		var late sync.WaitGroup
		for range 4 {
			late.Go(func() {
				for range 200 {
					w.Append(EventsFile, model.Event{})
				}
			})
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		late.Wait()
		w.Append(EventsFile, model.Event{})
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		events, _, err := ReadLines[model.Event](w.Dir, EventsFile)
		if n := w.Lines()[EventsFile]; err != nil || len(events) != n || n > 800 {
			t.Fatalf("%d lines, %d counted, %v", len(events), n, err)
		}
	}
}

func TestARecordedRunIsNotOverwritten(t *testing.T) {
	dir := t.TempDir()
	if _, err := Create(dir, model.RunMeta{Run: "r1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir, model.RunMeta{Run: "r1"}); err == nil {
		t.Fatal("second Create overwrote the first run")
	}
}

// TestFlushReturnsItsOwnError, however soon its caller asks.
func TestFlushReturnsItsOwnError(t *testing.T) {
	for range 500 {
		w, err := Create(t.TempDir(), model.RunMeta{})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/dev/full", filepath.Join(w.Dir, EventsFile)); err != nil {
			t.Fatal(err)
		}
		w.Append(EventsFile, model.Event{Num: 1})
		if w.Flush() == nil {
			t.Fatal("writing to a full disk reported no error")
		}
		if w.Close() == nil {
			t.Fatal("the error was forgotten")
		}
	}
}

func TestAFullDiskIsReportedAndDoesNotBlock(t *testing.T) {
	w, err := Create(t.TempDir(), model.RunMeta{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", filepath.Join(w.Dir, EventsFile)); err != nil {
		t.Fatal(err)
	}
	w.Append(EventsFile, model.Event{Num: 1})
	if err := w.Flush(); err == nil {
		t.Fatal("writing to a full disk reported no error")
	}
	w.Append(EventsFile, model.Event{Num: 2}) // must return
	if w.Err() == nil {
		t.Fatal("the error was forgotten")
	}
}

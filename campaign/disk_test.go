package campaign

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"netsplit/internal/storetest"
)

// TestADiskThatIsFullIsUnwell: of the records or of the store, in bytes or in files,
// and where the last run could not be recorded; it is said what to do.
func TestADiskThatIsFullIsUnwell(t *testing.T) {
	const enough = leastFree
	for name, c := range map[string]struct {
		runs, store room
		recorded    error
		want        string // "" if it is well
	}{
		"room":               {room{enough, 1}, room{enough, -1}, nil, ""},
		"records":            {room{enough - 1, 1}, room{enough, 1}, nil, "/r has 99 MB free, and room for 1 more files: runs fail without: delete"},
		"store":              {room{enough, 1}, room{0, -1}, nil, "/s has 0 MB free, and room for any number of files"},
		"files":              {room{enough, 0}, room{enough, 1}, nil, "/r has 100 MB free, and room for 0 more files"},
		"the last run":       {room{enough, 1}, room{enough, 1}, fmt.Errorf("write events.jsonl: %w", syscall.ENOSPC), "the last run could not be recorded: write events.jsonl: no space left on device: make room in /r"},
		"another run's fate": {room{enough, 1}, room{enough, 1}, errors.New("the switch is gone"), ""},
	} {
		s := &Service{store: storetest.New(t), cfg: Config{RunsDir: "/r", StorePath: "/s/netsplit.db"}}
		s.room = func(dir string) (room, error) {
			return map[string]room{"/r": c.runs, "/s": c.store}[dir], nil
		}
		s.noteRecorded(c.recorded)
		detail, err := s.diskHealth()
		if c.want == "" && (err != nil || !strings.Contains(detail, "100 MB free for records of runs; 100 MB free for the store")) {
			t.Errorf("%s: %q, %v", name, detail, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		s.noteRecorded(nil)
		if _, err := s.diskHealth(); c.recorded != nil && err != nil {
			t.Errorf("%s: the next run was recorded, and still: %v", name, err)
		}
	}
}

func TestTheRoomOfAFolderIsKnown(t *testing.T) {
	dir := t.TempDir()
	if r, err := roomAt(dir); err != nil || r.bytes <= 0 {
		t.Errorf("%+v, %v", r, err)
	}
	s := &Service{store: storetest.New(t), cfg: Config{RunsDir: filepath.Join(dir, "gone"), StorePath: filepath.Join(dir, "gone", "netsplit.db")}}
	if _, err := s.diskHealth(); err == nil || strings.Count(err.Error(), "the folder of ") != 1 || !strings.Contains(err.Error(), "must exist") {
		t.Errorf("%v", err)
	}
}

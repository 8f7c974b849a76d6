package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"netsplit/internal/regular"
	"netsplit/model"
)

// TestARecordIsReadFromRegularFilesOnly: a FIFO would block the daemon, a link
// would have it tell what is elsewhere.
func TestARecordIsReadFromRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.WriteFile(other, []byte("{}"), 0o600), os.Symlink(other, filepath.Join(dir, MetaFile)),
		unix.Mkfifo(filepath.Join(dir, TargetFile), 0o600), os.Symlink(other, filepath.Join(dir, EventsFile)), unix.Mkfifo(filepath.Join(dir, RulesFile), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{MetaFile, TargetFile} {
		var v any
		if err := ReadJSON(filepath.Join(dir, file), &v); !errors.Is(err, regular.Err) {
			t.Errorf("%s: %v, %v", file, v, err)
		}
	}
	for _, file := range []string{EventsFile, RulesFile} {
		if l, _, err := ReadLines[model.Event](dir, file); !errors.Is(err, regular.Err) {
			t.Errorf("%s: %v, %v", file, l, err)
		}
	}
}

// TestWhatIsTooLongIsNotReadWhole: a record may come from another machine.
func TestWhatIsTooLongIsNotReadWhole(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{MetaFile, EventsFile} {
		if err := errors.Join(os.WriteFile(filepath.Join(dir, file), nil, 0o600), os.Truncate(filepath.Join(dir, file), 1<<40)); err != nil {
			t.Fatal(err)
		}
	}
	var v any
	if err := ReadJSON(filepath.Join(dir, MetaFile), &v); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Error(err)
	}
	if _, _, err := ReadLines[model.Event](dir, EventsFile); err == nil || !strings.Contains(err.Error(), "line 1: it has more than 64 MiB") {
		t.Error(err)
	}
}

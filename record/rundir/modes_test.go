package rundir

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"netsplit/model"
)

// TestRecordsAreTheirOwnersWhateverTheUmask: folders and files.
func TestRecordsAreTheirOwnersWhateverTheUmask(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077} {
		root := filepath.Join(t.TempDir(), "runs")
		old := unix.Umask(umask)
		err := func() error {
			defer unix.Umask(old)
			if err := MakeRoot(root); err != nil {
				return err
			}
			w, err := Create(filepath.Join(root, "c-1", "r1"), model.RunMeta{Run: "r1"})
			if err != nil {
				return err
			}
			w.Append(EventsFile, model.Event{Num: 1})
			log, err := OpenLog(filepath.Join(root, "netsplit.log"))
			return errors.Join(err, WriteJSON(filepath.Join(w.Dir, TestbedFile), model.Testbed{}), w.Close(), log.Close())
		}()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			i, err := d.Info()
			if err != nil {
				return err
			}
			n++
			want := fs.FileMode(0o600)
			if d.IsDir() {
				want = 0o700
			}
			if i.Mode().Perm() != want {
				t.Errorf("umask %03o: %s has %v, want %v", umask, path, i.Mode().Perm(), want)
			}
			return nil
		})
		if err != nil || n != 8 {
			t.Errorf("%d files and folders, %v", n, err)
		}
	}
}

package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"netsplit/model"
)

func cut(t *testing.T, u *Unsynced) []Loss {
	t.Helper()
	losses, err := u.PowerCut()
	if err != nil {
		t.Fatal(err)
	}
	for i := range losses {
		losses[i].Path = filepath.Base(losses[i].Path)
	}
	return losses
}

// TestAPowerCutLeavesWhatWasForgotten: that is on disk, whatever was synced.
func TestAPowerCutLeavesWhatWasForgotten(t *testing.T) {
	dir := t.TempDir()
	var u Unsynced
	g := remembering(t, &u, func(model.FileOperation) Answer { return Pass() }, dir)
	k := start(t, g, nil)
	create := fmt.Sprint(os.O_CREATE | os.O_RDWR)
	k.do("chdir "+dir, "0 ok", "open torn torn "+create, "0 ok", "write torn 0123456789", "10 ok", "open lost lost "+create, "0 ok", "write lost abc", "3 ok")
	k.killed()
	torn := filepath.Join(dir, "torn")
	if err := errors.Join(Truncate(torn, 4), u.Forget(torn)); err != nil {
		t.Fatal(err)
	}
	if got := cut(t, &u); len(got) != 1 || got[0].Path != "lost" || got[0].Size != 3 {
		t.Errorf("%+v", got)
	}
	if b, err := os.ReadFile(torn); err != nil || string(b) != "0123" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestAPowerCutTakesWhatWasNotSynced and nothing else, whichever call synced it.
func TestAPowerCutTakesWhatWasNotSynced(t *testing.T) {
	dir := t.TempDir()
	var u Unsynced
	g := remembering(t, &u, func(model.FileOperation) Answer { return Pass() }, dir)
	k := start(t, g, nil)
	create, again := fmt.Sprint(os.O_CREATE|os.O_RDWR), fmt.Sprint(os.O_RDWR)
	appending, synced := fmt.Sprint(os.O_CREATE|os.O_WRONLY|os.O_APPEND), fmt.Sprint(os.O_CREATE|os.O_WRONLY|unix.O_DSYNC)
	k.do("chdir "+dir, "0 ok", "open out out "+create, "0 ok", "write out abcdefghij", "10 ok")
	for _, f := range []string{"over", "short", "empty", "hole", "copied", "gone", "twice", "named"} {
		k.do("open "+f+" "+f+" "+create, "0 ok", "write "+f+" 0123456789", "10 ok", "sync "+f, "0 ok")
	}
	k.do("pwrite over ABC 4", "3 ok", "pwrite over more 20", "4 ok",
		"ftruncate short 3", "0 ok", "pwrite short xyz 2", "3 ok",
		fmt.Sprintf("open empty2 empty %d", os.O_RDWR|os.O_TRUNC), "0 ok", "write empty2 new", "3 ok",
		"fallocate hole 3 4096", "0 ok",
		"open out2 out "+again, "0 ok", "open copied2 copied "+again, "0 ok", "copy out2 copied2 5", "5 ok",
		"write gone more", "4 ok", "unlink gone", "0 ok",
		"write twice more", "4 ok", "datasync twice", "0 ok", "write twice evenmore", "8 ok",
		"write named more", "4 ok", "rename named renamed", "0 ok",
		"open new new "+appending, "0 ok", "write new abc", "3 ok", "write new def", "3 ok",
		"open path path "+create, "0 ok", "write path 0123456789", "10 ok", "sync path", "0 ok", "truncate path 4", "0 ok",
		"open dsync dsync "+synced, "0 ok", "write dsync kept", "4 ok",
		"open room room "+create, "0 ok", "fallocate room 0 100", "0 ok",
		"open mapped mapped "+create, "0 ok", "write mapped 0123456789", "10 ok", "mapped mapped kept", "0 ok")
	k.killed()
	want := []Loss{{"copied", 10, 10, 5}, {"empty", 3, 10, 10}, {"hole", 10, 10, 10}, {"new", 6, 0, 0}, {"out", 10, 0, 0}, {"over", 24, 10, 3}, {"path", 4, 10, 6},
		{"renamed", 14, 10, 0}, {"room", 100, 0, 0}, {"short", 5, 10, 8}, {"twice", 22, 14, 0}}
	if got := cut(t, &u); !cmp.Equal(got, want) {
		t.Errorf("lost:\n%+v\nwant\n%+v", got, want)
	}
	for f, want := range map[string]string{"over": "0123456789", "short": "0123456789", "empty": "0123456789", "hole": "0123456789", "copied": "0123456789", "out": "", "new": "",
		"renamed": "0123456789", "twice": "0123456789more", "path": "0123456789", "dsync": "kept", "room": "", "mapped": "kept456789"} {
		if got := content(t, filepath.Join(dir, f)); got != want {
			t.Errorf("%s holds %q, want %q", f, got, want)
		}
	}
	if got := cut(t, &u); got != nil {
		t.Errorf("a second cut took %+v", got)
	}
	k = start(t, g, nil)
	k.do("open f "+dir+"/f "+create, "0 ok", "write f abc", "3 ok", "sh sync", `"" <nil>`)
	k.killed()
	if got := cut(t, &u); got != nil {
		t.Errorf("after sync(2): %+v", got)
	}
	closed(t, g)
}

// TestAPowerCutNamesFilesAsWeDo, though the program had mounts of its own, which are gone.
func TestAPowerCutNamesFilesAsWeDo(t *testing.T) {
	dir := t.TempDir()
	var u Unsynced
	g := remembering(t, &u, func(model.FileOperation) Answer { return Pass() }, dir)
	k := start(t, g, func(argv []string) []string {
		return append([]string{"unshare", "-m", "sh", "-c", `mount --bind "$0" "$0" && exec "$@"`, dir}, argv...)
	})
	k.do("open f "+dir+"/f "+fmt.Sprint(os.O_CREATE|os.O_WRONLY), "0 ok", "write f abc", "3 ok")
	k.killed()
	losses, err := u.PowerCut()
	if want := []Loss{{dir + "/f", 3, 0, 0}}; err != nil || !cmp.Equal(losses, want) {
		t.Errorf("%+v, %v, want %+v", losses, err, want)
	}
	closed(t, g)
}

// TestAPowerCutAfterAnything compares with a copy made at each sync.
func TestAPowerCutAfterAnything(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	dir := t.TempDir()
	var u Unsynced
	g := remembering(t, &u, func(model.FileOperation) Answer { return Pass() }, dir)
	path := dir + "/f"
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	copied := ""
	for round := range 12 {
		k := start(t, g, nil)
		k.do("open f "+path+" "+fmt.Sprint(os.O_RDWR), "0 ok", "open a "+path+" "+fmt.Sprint(os.O_WRONLY|os.O_APPEND), "0 ok")
		for range 1 + random.IntN(25) {
			text := strings.Repeat(string(rune('a'+random.IntN(26))), 1+random.IntN(9000))
			switch random.IntN(9) {
			case 0, 1:
				k.do("write f "+text, "")
			case 2, 3:
				k.do(fmt.Sprintf("pwrite f %s %d", text, random.IntN(30000)), "")
			case 4:
				k.do("write a "+text, "")
			case 5:
				k.do(fmt.Sprintf("ftruncate f %d", random.IntN(30000)), "0 ok")
			case 6:
				k.do(fmt.Sprintf("fallocate f 3 %d", 1+random.IntN(9000)), "0 ok") // a hole at the beginning
			case 7:
				k.do("sync a", "0 ok")
				copied = content(t, path)
			case 8:
				k.do(fmt.Sprintf("fallocate f 0 %d", 1+random.IntN(30000)), "0 ok")
			}
		}
		k.killed()
		cut(t, &u)
		if got := content(t, path); got != copied {
			t.Fatalf("round %d: %d bytes are left, %d were synced, or they differ", round, len(got), len(copied))
		}
	}
	closed(t, g)
}

// TestWhatDiesBeforeItIsReadIsNoTrouble: nothing of its operation happens. What cannot be
// read of one that waits leaves a power cut without what it should take.
func TestWhatDiesBeforeItIsReadIsNoTrouble(t *testing.T) {
	dead := caller{tid: 1 << 30}
	o := &operation{op: model.FileWrite, path: "/data/log", bytes: 3}
	for _, waits := range []bool{false, true} {
		var u Unsynced
		err := u.before(dead, o, func() bool { return waits })
		losses, lost := u.PowerCut()
		if (err != nil) != waits || (lost != nil) != waits || len(losses) > 0 {
			t.Errorf("it waits: %v: %v; then %v, %v", waits, err, losses, lost)
		}
	}
}

package software

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/e2e/need"
)

// TestRealGet fetches the smallest release with the real mvn into a cache of
// its own. Maven's repository is the user's, so that it needs the network only
// once.
func TestRealGet(t *testing.T) {
	need.Program(t, "mvn", "maven")
	users, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	if err := os.MkdirAll(filepath.Join(users, "m2"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(users, "m2"), filepath.Join(cache, "m2")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NETSPLIT_CACHE", cache)
	r, err := Load("zookeeper", "3.4.14", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Find(r); !errors.Is(err, ErrAbsent) {
		t.Fatalf("in an empty cache: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	s, err := Get(ctx, r, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if s.Count != 9 || s.Bytes < 1e6 {
		t.Errorf("%+v", s)
	}
	c := exec.Command("sha256sum", "--strict", "-c", "-")
	c.Dir, c.Stdin = s.Lib, strings.NewReader(string(r.lock))
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("sha256sum -c in %s: %v\n%s", s.Lib, err, out)
	}
	if found, err := Find(r); err != nil || found != s {
		t.Errorf("Find: %+v, %v, want %+v", found, err, s)
	}
	out, err := exec.Command(s.Java, "-cp", s.Lib+"/*", "org.apache.zookeeper.Version", "--full").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "3.4.14") {
		t.Errorf("its jars do not run: %v\n%s", err, out)
	}
}

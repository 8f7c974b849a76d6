package redis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/e2e/harness"
)

// TestTheTutorial runs the files of docs/add-a-system.md: the smallest target has the one problem
// that it says, and the finished one, in which sut compares every piece with the text, none. The
// search that follows takes minutes; nothing tests it.
func TestTheTutorial(t *testing.T) {
	harness.LeavesNothing(t)
	t.Setenv("TMPDIR", t.TempDir()) // check --run keeps its record there
	guide, err := os.ReadFile("../../deploy/targets/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, from, _ := strings.Cut(string(guide), "\n```yaml\n")
	smallest, _, ok := strings.Cut(from, "\n```\n")
	if !ok {
		t.Fatal("the guide shows no file")
	}
	target := filepath.Join(t.TempDir(), "my-redis")
	if err := os.Mkdir(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(target, "target.yaml"), []byte(smallest), 0o644); err != nil {
		t.Fatal(err)
	}
	res := harness.Run(t, "target", "check", "--run", target)
	if res.Code != 3 || strings.Count(res.Stdout, "PROBLEM: ") != 1 || !strings.Contains(res.Stdout, "PROBLEM: workload client: no operation succeeded") {
		t.Errorf("the smallest target: %s", res)
	}
	res = harness.Run(t, "target", "check", "--run", "../targets/my-redis")
	for _, want := range []string{"variable master: ", "3 values: n1 n2 n3", "read: tcp port 6379: 100.0 %", "my-redis runs as its file says"} {
		if res.Code != 0 || !strings.Contains(res.Stdout, want) {
			t.Errorf("the finished target: no %q: %s", want, res)
		}
	}
}

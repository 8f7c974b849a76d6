package labtest

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// failVar makes TestFailsWhenAsked fail.
const failVar = "NETSPLIT_LABTEST_FAIL"

func TestMain(m *testing.M) { os.Exit(Main(m.Run)) }

// leaves makes a link and leaves it: there is no second of that name in a sandbox.
func leaves(t *testing.T) {
	if out, err := exec.Command("ip", "link", "add", "labtest0", "type", "veth").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestHasASandbox(t *testing.T)       { leaves(t) }
func TestHasAnotherSandbox(t *testing.T) { leaves(t) }

func TestFailsWhenAsked(t *testing.T) {
	if os.Getenv(failVar) != "" {
		t.Fatal("as asked")
	}
}

// TestAFailureIsTold: by the exit status and by what that test said, of all tests at
// once and of those that -run names.
func TestAFailureIsTold(t *testing.T) {
	if os.Getenv(failVar) != "" {
		return
	}
	for _, args := range [][]string{nil, {"-test.run=TestFails"}} {
		cmd := exec.Command("/proc/self/exe", args...)
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, stageVar+"=") }), failVar+"=1")
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 || strings.Count(string(out), "--- FAIL: TestFailsWhenAsked") != 1 || strings.Contains(string(out), "Sandbox") {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
}

package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"netsplit/internal/labtest"
)

// binVar holds the folder of the programs, for the processes of the sandbox, and for
// all packages where make test built them.
const binVar = "NETSPLIT_E2E_BIN"

// Main is the body of a TestMain: it builds the programs side by side into a
// folder of their own, fetches the releases that the tests take from the cache,
// runs the tests in a sandbox, and removes the folder.
func Main(m *testing.M, releases ...string) { os.Exit(run(m, releases)) }

func run(m *testing.M, releases []string) int {
	if os.Getenv(binVar) == "" && os.Geteuid() == 0 {
		dir, err := os.MkdirTemp("", "netsplit-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, "harness:", err)
			return 1
		}
		defer os.RemoveAll(dir)
		// Others than root start it too, in the tests of who may do what.
		if err := os.Chmod(dir, 0o755); err != nil {
			fmt.Fprintln(os.Stderr, "harness:", err)
			return 1
		}
		if out, err := exec.Command("../../scripts/test-programs.sh", dir).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "harness: build the programs: %v\n%s", err, out)
			return 1
		}
		os.Setenv(binVar, dir)
	}
	return labtest.Main(m.Run, func() error {
		for _, r := range releases {
			if out, err := exec.Command(Bin("netsplit"), "target", "get", r).CombinedOutput(); err != nil {
				return fmt.Errorf("get %s: %w\n%s", r, err, out)
			}
		}
		return nil
	})
}

// Bin is the path of a built program.
func Bin(name string) string { return filepath.Join(os.Getenv(binVar), name) }

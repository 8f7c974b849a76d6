package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/internal/labtest"
)

// binVar holds the folder of the programs, for the processes of the sandbox.
const binVar = "NETSPLIT_E2E_BIN"

// Main is the body of a TestMain: it builds the programs side by side into a
// folder of their own, runs the tests in a sandbox, and removes the folder.
func Main(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
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
		for out, pkg := range map[string]string{"netsplit": "netsplit/cmd/netsplit", "gossip": "netsplit/e2e/targets/gossip", "lines": "netsplit/e2e/targets/lines",
			"redis-sentinel-client": "netsplit/deploy/clients/redis-sentinel",
			"zookeeper-client":      "netsplit/deploy/clients/zookeeper"} {
			cmd := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, out), pkg)
			if strings.HasPrefix(pkg, "netsplit/deploy/clients/") { // a module of its own
				cmd.Dir = "../../deploy/clients"
			}
			if b, err := cmd.CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "harness: build %s: %v\n%s", pkg, err, b)
				return 1
			}
		}
		os.Setenv(binVar, dir)
	}
	return labtest.Main(m.Run)
}

// Bin is the path of a built program.
func Bin(name string) string { return filepath.Join(os.Getenv(binVar), name) }

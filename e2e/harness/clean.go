package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// LeavesNothing checks at the end of a test, after what it cleaned up itself,
// that the sandbox is as it was when the test began. Call it first.
func LeavesNothing(tb testing.TB) {
	tb.Helper()
	before := things(tb)
	tb.Cleanup(func() {
		// What was killed is gone a moment later.
		var left []string
		for end := time.Now().Add(3 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			left = slices.DeleteFunc(things(tb), func(s string) bool { return slices.Contains(before, s) })
			if len(left) == 0 || time.Now().After(end) {
				break
			}
		}
		for _, l := range left {
			tb.Errorf("left behind: %s", l)
		}
		if len(left) > 0 {
			out, err := exec.Command("find", "/run/netsplit", "-ls").CombinedOutput()
			tb.Logf("%s%v", out, err)
		}
	})
}

// things lists what is there: processes, links, namespaces, the files of labs.
func things(tb testing.TB) []string {
	tb.Helper()
	var out []string
	links, err := netlink.LinkList()
	if err != nil {
		tb.Fatal(err)
	}
	for _, l := range links {
		out = append(out, "link "+l.Attrs().Name)
	}
	for _, pattern := range []string{"/run/netns/*", "/run/netsplit/*", "/run/netsplit/labs/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			tb.Fatal(err)
		}
		for _, f := range files {
			out = append(out, "file "+f)
		}
	}
	procs, err := os.ReadDir("/proc")
	if err != nil {
		tb.Fatal(err)
	}
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() || pid == 1 {
			continue
		}
		cmd, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || len(cmd) == 0 {
			continue // gone, or dead and not collected yet
		}
		out = append(out, fmt.Sprintf("process %d: %s", pid, strings.TrimSpace(strings.ReplaceAll(string(cmd), "\x00", " "))))
	}
	return out
}

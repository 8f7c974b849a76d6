// Tests of the lab in the namespaces of the machine itself, where labs run for
// users. Everything else about the lab is tested in namespaces of its own; the
// receive buffers cannot be, as only the first network namespace may set them.
package machine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"netsplit/e2e/need"
	"netsplit/model"
	"netsplit/testbed/lab"
)

const rmemPath = "/proc/sys/net/core/rmem_default"

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func TestSwitchPortsHaveLargeReceiveBuffers(t *testing.T) {
	need.Root(t, "make labs")
	old := read(t, rmemPath)
	if err := os.WriteFile(rmemPath, []byte(old), 0o644); err != nil {
		t.Fatalf("this must run in the machine's first network namespace: %v", err)
	}
	name := fmt.Sprintf("t%d", os.Getpid())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := lab.Up(ctx, lab.Spec{Name: name, Hosts: []model.NodeID{"n1", "n2"}, Owner: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := lab.Down(context.Background(), name); err != nil {
			t.Error(err)
		}
	}()
	if w := l.Warnings(); len(w) > 0 {
		t.Error(w)
	}
	if now := read(t, rmemPath); now != old {
		t.Errorf("rmem_default was %s and is %s", old, now)
	}
	// Packet sockets with their memory: "p_raw … *:nsl123456p1 … skmem:(r0,rb16777216,…)".
	out, err := exec.Command("ss", "-0", "-m", "-a", "-O").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, ":"+strings.TrimSuffix(l.Bridge(), "br")) {
			continue
		}
		_, after, ok := strings.Cut(line, ",rb")
		digits, _, _ := strings.Cut(after, ",")
		rb, err := strconv.Atoi(digits)
		if !ok || err != nil || rb < 16<<20 {
			t.Errorf("receive buffer too small: %s", line)
		}
		found++
	}
	if found < 4 { // two hosts, the mirror port and the gate port
		t.Errorf("%d packet sockets of the lab's ports found in: %s", found, out)
	}
}

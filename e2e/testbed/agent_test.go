package testbed

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// TestAnAgentThatEndsIsStartedAgain: a host whose agent is killed is told of, what
// is cut stays cut, nothing is said to be in force meanwhile, and once the host can
// be reached again cuts are proved and healed as before.
func TestAnAgentThatEndsIsStartedAgain(t *testing.T) {
	harness.LeavesNothing(t)
	r := newRack(t, []string{"a", "b", "c"})
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	away := r.Path("away") // while it is there, nobody gets to b
	b.exec = fmt.Sprintf(`[sh, -c, 'test ! -e %s && exec nsenter --net=/run/netns/%s "$@"', sh]`, away, b.netns())
	r.write("")
	d := serve(t, "--testbed", r.file, "--runs-dir", t.TempDir(), "--openflow", "127.0.0.1:6653")
	r.connect(d.OpenFlow)
	d.Healthy()
	cut := func(name, x, y string) {
		t.Helper()
		d.Call("POST", "/v1/partitions", wire.PartitionSpec{Name: name, Partition: wire.Partition{Shape: "partial", Groups: [][]string{{x}, {y}}}}, nil)
	}
	cut("before", "a", "b")
	d.State("before", "in_force")

	if err := os.WriteFile(away, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for pid := range strings.FieldsSeq(harness.Output(t, "ip", "netns", "pids", b.netns())) {
		harness.Output(t, "kill", "-9", pid)
	}
	harness.Until(t, time.Minute, "the host without an agent is told", func() error {
		if status, body := d.try("GET", "/healthz", nil); status == http.StatusOK || !strings.Contains(string(body), "host b: the agent has ended") {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	if r.ping(a, b) || !r.ping(b, c) {
		t.Errorf("ping a > b: %v, b > c: %v", r.ping(a, b), r.ping(b, c))
	}
	cut("meanwhile", "b", "c")
	harness.Until(t, time.Minute, "it is said why nothing is proved", func() error {
		if p := d.State("meanwhile", "requested"); !strings.Contains(p.Reason, "host b: the agent has ended") {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})

	if err := os.Remove(away); err != nil {
		t.Fatal(err)
	}
	d.State("meanwhile", "in_force")
	d.Healthy()
	for _, name := range []string{"meanwhile", "before"} {
		d.Heal(name)
	}
	if p := d.State("before", "healed"); p.LeakKnown || p.Dropped == 0 {
		t.Errorf("one that nobody counted for a while: %+v", p)
	}
	if p := d.State("meanwhile", "healed"); !p.LeakKnown || p.Leaked != 0 {
		t.Errorf("one that was in force later: %+v", p)
	}
	r.expect("healed", func(string, string) bool { return true })
}

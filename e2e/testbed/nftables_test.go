package testbed

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
	"netsplit/e2e/need"
)

// TestHostsOverSSHCutThemselves: hosts that are reached by ssh alone, behind a
// switch that knows no controller, drop packets themselves. Where ssh hangs, what
// it cut is not renewed: packets pass, and the partition is told as failed.
func TestHostsOverSSHCutThemselves(t *testing.T) {
	need.Program(t, "nft", "nftables")
	harness.LeavesNothing(t)
	r := newRack(t, []string{"a", "b", "c"})
	r.VSCtl("set", "bridge", "rk1", "fail-mode=standalone")
	r.sshd()
	a, b := r.hosts[0], r.hosts[1]
	y := "name: cloud\nbackend: nftables\nhosts:\n"
	for _, h := range r.hosts {
		y += fmt.Sprintf("  - {name: %s, mac: %q, ip: %s, exec: %s}\n", h.name, h.mac, h.ip, h.exec)
	}
	if err := os.WriteFile(r.file, []byte(y), 0o600); err != nil {
		t.Fatal(err)
	}
	d := serve(t, "--testbed", r.file, "--runs-dir", t.TempDir())
	r.passing(30 * time.Second)

	cut := harness.Run(t, "partition", "cut", "isolate", "a", "--name", "one", "--api", d.API)
	if cut.Code != 0 {
		t.Fatalf("partition cut: %s", cut)
	}
	d.State("one", "in_force")
	r.expect("a alone", func(x, y string) bool { return x != "a" && y != "a" })
	if n := r.observed(a, b); n != 0 {
		t.Errorf("%d pings of b arrived at a, which is isolated", n)
	}
	d.Heal("one")
	if p := d.State("one", "healed"); p.Dropped == 0 || p.Wanted != p.Dropped || p.Leaked != 0 || !p.LeakKnown {
		t.Errorf("healed: %+v", p)
	}
	r.expect("healed", func(string, string) bool { return true })

	d.Call("POST", "/v1/partitions", wire.PartitionSpec{Name: "two", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}}, nil)
	d.State("two", "in_force")
	leased := func(h *host) bool {
		return regexp.MustCompile(`elements = .*expires`).MatchString(r.in(h, "nft", "list", "ruleset"))
	}
	if !leased(a) || !leased(b) {
		t.Error("a cut is in force without a lease at both ends")
	}
	harness.Output(t, "ip", "link", "set", "rkm1", "down")
	if p := d.State("two", "failed"); !strings.Contains(p.Reason, "host a") {
		t.Errorf("ssh to a hangs: %+v", p)
	}
	r.passing(30 * time.Second)
	for _, h := range r.hosts {
		harness.Until(t, time.Minute, "nothing is cut on "+h.name, func() error {
			if leased(h) {
				return errors.New("a lease runs")
			}
			return nil
		})
	}
	harness.Output(t, "ip", "link", "set", "rkm1", "up")
}

package testbed

import (
	"slices"
	"strings"
	"testing"

	"netsplit/e2e/harness"
)

// TestAScriptOnSomebodysRack: a script is played on a testbed that has a host more
// than its target uses, which reaches all the while whom it likes, by TLS and beside
// another controller; what does not go together is refused before anything is touched.
func TestAScriptOnSomebodysRack(t *testing.T) {
	harness.LeavesNothing(t)
	r, site := newRack(t, []string{"n1", "n2", "n3", "x1", "c1", "c2"}), harness.NewPKI(t)
	r.VSCtl("set-ssl", site.File("sc-privkey.pem"), site.File("sc-cert.pem"), site.CA("controller"))
	r.VSCtl("set-controller", "rk1", "ssl:127.0.0.1:6653", "--", "set", "controller", "rk1", "connection_mode=out-of-band", "max_backoff=1000")
	dir := t.TempDir()
	play := []string{"script", "run", "redis-sentinel/split-brain", "--runs-dir", dir}
	on := slices.Concat(play, []string{"--testbed", r.file, "--openflow", "127.0.0.1:6653"})
	var res harness.Result
	for range 3 {
		res = harness.Run(t, slices.Concat(on, []string{"--tls-cert", site.File("ctl-cert.pem"), "--tls-key", site.File("ctl-privkey.pem"), "--tls-ca", site.CA("switch"), "--role", "equal"})...)
		if !strings.Contains(res.Stderr, "no play could be judged") { // else an operation took too long on a busy machine
			break
		}
	}
	if res.Code != 0 || !strings.Contains(res.Stdout, "split-brain: 1 of 1 plays failed (1 fail)") {
		t.Fatal(res)
	}
	sum := harness.Records(t, dir, harness.CampaignID(t, res))[0]
	if p := sum.Proof; p == nil || len(p.Links) != 12 || p.Wanted == 0 || p.Dropped != p.Wanted || p.Leaked != 0 || !p.LeakKnown {
		t.Errorf("proof %+v", p)
	}
	if sum.Version == "" || sum.Version == "script" {
		t.Errorf("the record's version is %q", sum.Version)
	}
	for want, args := range map[string][]string{
		"--openflow needs --testbed":          slices.Concat(play, []string{"--openflow", "127.0.0.1:6653"}),
		"--allowed-datapath need --testbed":   slices.Concat(play, []string{"--allowed-datapath", "1"}),
		"which --allowed-datapath leaves out": slices.Concat(on, []string{"--allowed-datapath", "1"}),
		"go together":                         slices.Concat(on, []string{"--tls-cert", site.File("ctl-cert.pem")}),
		"--role":                              slices.Concat(on, []string{"--role", "slave"}),
	} {
		if res := harness.Run(t, args...); res.Code != 2 || !strings.Contains(res.Stderr, want) {
			t.Errorf("%v: want %q: %v", args, want, res)
		}
	}
}

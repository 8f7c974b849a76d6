package testbed

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
	"netsplit/model"
)

// diagnose runs netsplit doctor on the rack's testbed file.
func (r *rack) diagnose(code int) (model.Diagnosis, harness.Result) {
	r.t.Helper()
	res := harness.Run(r.t, "doctor", "--testbed", r.file, "--openflow", "127.0.0.1:6654", "--wait", "30s", "-o", "json")
	var d model.Diagnosis
	if err := json.Unmarshal([]byte(res.Stdout), &d); err != nil || res.Code != code {
		r.t.Fatalf("%v; want exit status %d: %s", err, code, res)
	}
	return d, res
}

func ability(t *testing.T, d model.Diagnosis, a model.Ability) model.AbilityStatus {
	t.Helper()
	for _, s := range d.Abilities {
		if s.Ability == a {
			return s
		}
	}
	t.Fatalf("no %s in %+v", a, d.Abilities)
	return model.AbilityStatus{}
}

// TestDoctor: a rack with a gate and a mirror port is fit for everything, one
// that somebody bent is not, and says why; nothing of the doctor's is left.
func TestDoctor(t *testing.T) {
	harness.LeavesNothing(t)
	r := newRack(t, []string{"a", "b"})
	r.cable("rkg", 40, "rk1")
	r.cable("rkm", 41, "rk1")
	taps := "gates: [{datapath: " + dpid("rk1") + ", port: 40, interface: rkgr}]\nmirrors: [{datapath: " + dpid("rk1") + ", port: 41, interface: rkmr}]\n"
	r.write(taps)
	r.connect("127.0.0.1:6654")
	r.OFCtl("rk1", "add-flow", "table=0,priority=5,in_port=77,actions=drop")
	r.OFCtl("rk1", "add-flow", "table=7,priority=65000,actions=NORMAL")
	before := r.foreign("rk1")
	d, res := r.diagnose(0)
	for _, a := range []model.Ability{model.AbilityCut, model.AbilityProof, model.AbilityPacketIn, model.AbilityPort, model.AbilityMirror, model.AbilityOnly, model.AbilityOpening} {
		if s := ability(t, d, a); s.Level == model.CheckFail || s.Absent {
			t.Errorf("%+v", s)
		}
	}
	sw := "switch " + dpid("rk1")
	for _, want := range []struct{ about, name, found string }{
		{sw, "session", `OpenFlow 1\.3 `}, {sw, "make", `Open vSwitch \d`}, {sw, "features", `\d+ tables`}, {sw, "ports", `all 4 ports`},
		{sw, "round trip of echo", `p50 .*s, p99 .*s of 100`}, {sw, "round trip of barrier", `p50 .*s, p99 .*s of 100`},
		{sw, "rules of others", `2 of them somebody else's`}, {sw, "meters", `\d+, which can drop`}, {sw, "packet-in", `p50 .*, p99 .*; \d+ packets a second`},
		{sw, "room for rules", `\d+ at least, .*; \d+ a second`}, {sw, "gate port", `rkgr and came back in .*s`}, {sw, "mirror port", `came to rkmr`},
		{sw, "offloads", `rkgr merges no frames`}, {sw, "offloads", `rkmr merges no frames`},
		{"host a", "agent", `answers`}, {"host a", "clock", `this machine's`}, {"host a", "counting", `captured`}, {"host b", "interface", `eth0, MTU \d+, .*\d/24`},
	} {
		if !slices.ContainsFunc(d.Checks, func(c model.DiagnosisCheck) bool {
			slow := c.Level == model.CheckWarn && strings.HasPrefix(want.found, "p50") // other tests run beside
			return c.About == want.about && c.Name == want.name && (c.Level == model.CheckOK || slow) && regexp.MustCompile(want.found).MatchString(c.Found)
		}) {
			t.Errorf("not found well: %+v in %s", want, res)
		}
	}
	if after := r.foreign("rk1"); after != before || r.ours("rk1") != 0 {
		t.Errorf("%d rules of ours left; rules of others before:\n%s\nafter:\n%s", r.ours("rk1"), before, after)
	}
	if strings.Contains(res.Stdout, "no port") || strings.Contains(res.Stdout, "other ports") {
		t.Error(res)
	}

	// Bent: a rule that takes all packets, a host elsewhere than told, a gate
	// port whose cable ends nowhere, and the one it ends at is nobody's.
	r.OFCtl("rk1", "add-flow", "table=0,priority=500,ip,actions=NORMAL")
	r.hosts[1].mac = "02:79:00:00:00:99"
	r.write(strings.Replace(taps, "port: 40", "port: 42", 1))
	harness.Output(t, "ethtool", "-K", "rkmr", "gro", "on")
	d, res = r.diagnose(1)
	for _, want := range []struct{ about, name, found string }{
		{"switch " + dpid("rk1"), "rules of others", "priority=500"},
		{"switch " + dpid("rk1"), "ports", "gate: no port 42"},
		{"host b", "interface", "none has mac 02:79:00:00:00:99"},
	} {
		ok := false
		for _, c := range d.Checks {
			ok = ok || c.About == want.about && c.Name == want.name && c.Level == model.CheckFail && strings.Contains(c.Found, want.found) && c.Means != ""
		}
		if !ok {
			t.Errorf("not said: %+v in %s", want, res)
		}
	}
	if s := fmt.Sprint(ability(t, d, model.AbilityMirror)); !strings.Contains(s, "rkmr merges frames that it receives (rx-gro)") || !strings.Contains(res.Stdout, "ethtool -K rkmr rx-gro off") {
		t.Errorf("%s in %s", s, res)
	}
	harness.Output(t, "ethtool", "-K", "rkmr", "rx-gro", "off") // as it says
	if s := ability(t, d, model.AbilityPort); s.Level != model.CheckFail {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(res.Stdout, "up, and not in the testbed file: 40 (rkg)\"") {
		t.Errorf("nothing is said of port 40: %s", res)
	}
}

// TestDoctorAsksTheDaemon: a daemon that drives a rack examines it without being
// stopped, leaves out what would disturb a cut while there is one, and the cut
// holds all the while; with no daemon, and with one that has no testbed, it is
// said what to do.
func TestDoctorAsksTheDaemon(t *testing.T) {
	harness.LeavesNothing(t)
	r := newRack(t, []string{"a", "b"})
	d := serve(t, "--testbed", r.file, "--runs-dir", t.TempDir(), "--openflow", "127.0.0.1:6653")
	r.connect(d.OpenFlow)
	d.Healthy()
	ask := func() (model.Diagnosis, harness.Result) {
		t.Helper()
		res := harness.Run(t, "doctor", "--api", d.API, "-o", "json")
		var got model.Diagnosis
		if err := json.Unmarshal([]byte(res.Stdout), &got); err != nil || res.Code != 0 {
			t.Fatalf("%v: %s", err, res)
		}
		return got, res
	}
	got, res := ask()
	for _, a := range []model.Ability{model.AbilityCut, model.AbilityProof, model.AbilityPacketIn, model.AbilityOnly, model.AbilityOpening} {
		if s := ability(t, got, a); s.Level == model.CheckFail || s.Absent {
			t.Errorf("%+v", s)
		}
	}
	if !strings.Contains(res.Stdout, "as master") || strings.Contains(res.Stdout, "not tried") {
		t.Error(res)
	}
	d.Healthy()
	if !r.ping(r.hosts[0], r.hosts[1]) {
		t.Error("a does not reach b after the examination")
	}

	d.Call("POST", "/v1/partitions", wire.PartitionSpec{Name: "one", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}}, nil)
	d.State("one", "in_force")
	got, res = ask()
	if s := ability(t, got, model.AbilityCut); s.Level != model.CheckWarn || !strings.Contains(res.Stdout, `not tried: partition \"one\" is in_force`) {
		t.Errorf("%+v: %s", s, res)
	}
	if p := d.State("one", "in_force"); p.Leaked != 0 || r.ping(r.hosts[0], r.hosts[1]) {
		t.Errorf("the cut did not hold: %+v", p)
	}
	d.Heal("one")

	// In its place there is no room, which is said with the way out.
	if res := harness.Run(t, "doctor", "--testbed", r.file, "--openflow", d.OpenFlow); res.Code != 1 || !strings.Contains(res.Stderr, "leave out --testbed") {
		t.Error(res)
	}
	if res := harness.Run(t, "doctor", "--api", "127.0.0.1:1"); res.Code != 1 || !strings.Contains(res.Stderr, "--testbed") {
		t.Error(res)
	}
	labs := serve(t, "--runs-dir", t.TempDir(), "--openflow", "127.0.0.1:0")
	if res := harness.Run(t, "doctor", "--api", labs.API); res.Code != 1 || !strings.Contains(res.Stderr, "has no testbed, because") {
		t.Error(res)
	}
}

// TestByTLS: learning and examining by TLS, with certificates as serve takes
// them; a switch by TCP is refused, and both say so.
func TestByTLS(t *testing.T) {
	harness.LeavesNothing(t)
	r, site := newRack(t, []string{"a", "b"}), harness.NewPKI(t)
	r.VSCtl("set-ssl", site.File("sc-privkey.pem"), site.File("sc-cert.pem"), site.CA("controller"))
	tls := []string{"--openflow", "127.0.0.1:6653", "--tls-cert", site.File("ctl-cert.pem"), "--tls-key", site.File("ctl-privkey.pem"), "--tls-ca", site.CA("switch")}
	r.connect("127.0.0.1:6653")
	for _, c := range [][]string{{"testbed", "learn", "--for", "10s"}, {"doctor", "--testbed", r.file, "--wait", "10s"}} {
		res := harness.Run(t, append(c, tls...)...)
		if said := res.Stdout + res.Stderr; res.Code != 1 || !strings.Contains(said, "it speaks plain TCP and this port TLS") || !strings.Contains(said, "set-controller BR") || !strings.Contains(said, "ssl:127.0.0.1:6653") {
			t.Error(res)
		}
	}
	r.VSCtl("set-controller", "rk1", "ssl:127.0.0.1:6653", "--", "set", "controller", "rk1", "connection_mode=out-of-band", "max_backoff=1000")
	l := harness.Start(t, append([]string{"testbed", "learn", "--for", "10m"}, tls...)...)
	harness.Until(t, 2*time.Minute, "both were heard", func() error {
		r.speak()
		for _, h := range r.hosts {
			if !strings.Contains(l.Stderr(), h.ip) {
				return fmt.Errorf("%s", l.Stderr())
			}
		}
		return nil
	})
	l.Signal(t, syscall.SIGINT)
	if res := l.Wait(t, time.Minute); res.Code != 0 || !strings.Contains(res.Stdout, "- name: rack-a") || !strings.Contains(res.Stdout, "- name: rack-b") {
		t.Error(res)
	}
	if res := harness.Run(t, append([]string{"doctor", "--testbed", r.file, "--wait", "30s"}, tls...)...); res.Code != 0 || !strings.Contains(res.Stdout, "OpenFlow 1.3 with") {
		t.Error(res)
	}
}

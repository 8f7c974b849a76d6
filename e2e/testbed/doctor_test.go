package testbed

import (
	"encoding/json"
	"strings"
	"testing"

	"netsplit/e2e/harness"
	"netsplit/model"
)

// diagnose runs netsplit doctor on the rack's testbed file.
func (r *rack) diagnose(code int) (model.Diagnosis, harness.Result) {
	r.t.Helper()
	res := harness.Run(r.t, "doctor", "--testbed", r.file, "--openflow", "127.0.0.1:6654", "--wait", "30s", "--json")
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
	for i, link := range []string{"rkg", "rkm"} {
		r.veth(link, 40+i, "rk1", "peer", "name", link+"r")
		for _, end := range []string{link, link + "r"} {
			harness.Output(t, "ip", "link", "set", end, "mtu", "1600", "up")
			harness.Output(t, "ethtool", "-K", end, "tx", "off", "gso", "off", "gro", "off")
		}
	}
	taps := "gates: [{datapath: " + dpid("rk1") + ", port: 40, interface: rkgr}]\nmirrors: [{datapath: " + dpid("rk1") + ", port: 41, interface: rkmr}]\n"
	r.write(taps)
	r.connect("127.0.0.1:6654")
	r.ofctl("rk1", "add-flow", "table=0,priority=5,in_port=77,actions=drop")
	r.ofctl("rk1", "add-flow", "table=7,priority=65000,actions=NORMAL")
	before := r.foreign("rk1")
	d, res := r.diagnose(0)
	for _, a := range []model.Ability{model.AbilityCut, model.AbilityProof, model.AbilityPacketIn, model.AbilityPort, model.AbilityMirror, model.AbilityOnly, model.AbilityOpening} {
		if s := ability(t, d, a); s.Level == model.CheckFail || s.Absent {
			t.Errorf("%+v", s)
		}
	}
	for _, c := range d.Checks {
		t.Logf("%s %s: %s: %s", c.Level, c.About, c.Name, c.Found)
	}
	if after := r.foreign("rk1"); after != before || r.ours("rk1") != 0 {
		t.Errorf("%d rules of ours left; rules of others before:\n%s\nafter:\n%s", r.ours("rk1"), before, after)
	}
	if strings.Contains(res.Stdout, "no port") {
		t.Error(res)
	}

	// Bent: a rule that takes all packets, a host elsewhere than told, a gate
	// port whose cable ends nowhere.
	r.ofctl("rk1", "add-flow", "table=0,priority=500,ip,actions=NORMAL")
	r.hosts[1].mac = "02:79:00:00:00:99"
	r.write(strings.Replace(taps, "port: 40", "port: 42", 1))
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
	if s := ability(t, d, model.AbilityPort); s.Level != model.CheckFail {
		t.Errorf("%+v", s)
	}
}

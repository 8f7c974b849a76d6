package doctor

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/controller/switchtest"
	"netsplit/model"
)

// examined is what is said of a model switch with two hosts of a testbed on it.
func examined(t *testing.T, m switchtest.Config, limit time.Duration, ports ...model.Port) (model.Diagnosis, *switchtest.Switch) {
	t.Helper()
	m.Datapath, m.PartSize = 7, 100
	if m.Ports == nil {
		m.Ports = []uint32{1, 2}
	}
	ctrl := controller.New(controller.Config{Role: of13.RoleEqual})
	t.Cleanup(func() { ctrl.Close() })
	sw := switchtest.New(m)
	ours, theirs := net.Pipe()
	t.Cleanup(func() { theirs.Close() })
	go func() { _ = sw.Serve(theirs) }()
	go func() { _ = ctrl.Serve(ours) }()
	tb := model.Testbed{Name: "lacking"}
	for i := range 2 {
		tb.Hosts = append(tb.Hosts, model.TestbedHost{Name: model.NodeID(rune('a' + i)), Datapath: 7, Port: model.Port{Number: uint32(i + 1)},
			MAC: "02:00:00:00:00:0" + string(rune('1'+i)), IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})})
	}
	for i, p := range ports {
		tb.Hosts[i].Port = p
	}
	x := newExam(Config{Testbed: tb, Controller: ctrl, Wait: 30 * time.Second, Limit: limit})
	x.switches(context.Background())
	x.conclude()
	return x.d, sw
}

// TestPortsByName: names are found, and what is wrong with them is said; what can
// be tried without them is.
func TestPortsByName(t *testing.T) {
	for _, c := range []struct {
		a, b model.Port
		ok   bool
		says []string
	}{
		{model.Port{Name: "e1"}, model.Port{Name: "e2"}, true, []string{"ok ports: all 2 ports of the testbed file are there and up", "ok rules of cuts"}},
		{model.Port{Name: "e9"}, model.Port{Name: "e2"}, false, []string{`fail ports: host a: the switch has no port called "e9": it has "e1" (1), "e2" (2), "two" (3), "two" (4)`, "ok rules of cuts"}},
		{model.Port{Name: "two"}, model.Port{Name: "e2"}, false, []string{`fail ports: host a: the switch has 2 ports called "two", numbers 3 4`}},
		{model.Port{Name: "e2"}, model.Port{Number: 2}, false, []string{"fail ports: host a: host a and host b are both on port 2 of the switch"}},
	} {
		d, _ := examined(t, switchtest.Config{Ports: []uint32{1, 2, 3, 4}, Names: map[uint32]string{1: "e1", 2: "e2", 3: "two", 4: "two"}, Meters: 100}, 0, c.a, c.b)
		var lines []string
		for _, k := range d.Checks {
			lines = append(lines, string(k.Level)+" "+k.Name+": "+k.Found+" → "+k.Means)
		}
		text := strings.Join(lines, "\n")
		for _, w := range c.says {
			if !strings.Contains(text, w) {
				t.Errorf("%v and %v: it does not say %q: %s", c.a, c.b, w, text)
			}
		}
		if d.OK != c.ok {
			t.Errorf("%v and %v: fit for the main job: %v", c.a, c.b, d.OK)
		}
	}
}

// TestSwitchesThatLackSomething: what will work, what will not, and what to do.
func TestSwitchesThatLackSomething(t *testing.T) {
	refuse := func(e of13.Error, is func(of13.Message) bool) func(of13.Message) *of13.Error {
		return func(m of13.Message) *of13.Error {
			if !is(m) {
				return nil
			}
			return &e
		}
	}
	unsupported := of13.Error{Type: of13.ErrTypeBadMatch, Code: of13.BadMatchBadField}
	for name, c := range map[string]struct {
		m     switchtest.Config
		limit time.Duration
		ok    bool
		fails []model.Ability // that will not work; the others at least somehow
		says  []string        // parts of "LEVEL NAME: FOUND → MEANS"
	}{
		"all":       {m: switchtest.Config{Meters: 100}, ok: true, says: []string{"ok features: 254 tables", "ok meters: 100", "ok rules of forwarding", "ok room for rules"}},
		"no meters": {ok: true, says: []string{"warn meters: none that drop → a cut by hand bites by its drop rules alone"}},
		"one table": {m: switchtest.Config{Tables: 1}, fails: everything,
			says: []string{"fail features: 1 tables", "put the hosts on another", "fail rules: not tried, because of: features", "fail packet-in: not tried"}},
		"a table for nothing": {m: switchtest.Config{Limit: 5}, fails: []model.Ability{model.AbilityCut, model.AbilityPacketIn, model.AbilityOnly, model.AbilityOpening},
			says: []string{"fail rules of cuts: refused", "the switch answered OFPET_FLOW_MOD_FAILED/OFPFMFC_TABLE_FULL", "its tables are too small for that", "fail room for rules: its table takes 5 rules more and is full then", "give the switch larger tables"}},
		"a table for few": {m: switchtest.Config{Limit: 30}, ok: true, fails: []model.Ability{model.AbilityOnly, model.AbilityOpening},
			says: []string{"fail rules of cuts of some traffic: refused", "warn room for rules: its table takes 30 rules more and is full then", "one cut fits"}},
		"no barrier": {m: switchtest.Config{Ignore: func(m of13.Message) bool { return m.MsgType() == of13.TypeBarrierRequest }}, limit: time.Second, fails: everything,
			says: []string{"fail round trip of barrier: no answer", "nothing can be confirmed by this switch", "fail rules: not tried, because of: round trip of barrier"}},
		"no tcp flags": {m: switchtest.Config{Refuse: refuse(unsupported, func(m of13.Message) bool {
			f, is := m.(*of13.FlowMod)
			return is && strings.Contains(f.Match.String(), "tcp_flags")
		})}, ok: true, fails: []model.Ability{model.AbilityOpening}, says: []string{"OFPBMC_BAD_FIELD", "--only tcp-opening is refused there, as it needs TCP flags"}},
		"no packet-out to the table": {m: switchtest.Config{Refuse: refuse(of13.Error{Type: of13.ErrTypeBadAction, Code: of13.BadActionBadOutPort}, func(m of13.Message) bool {
			o, is := m.(*of13.PacketOut)
			return is && strings.Contains(o.String(), "TABLE")
		})}, fails: []model.Ability{model.AbilityPacketIn}, says: []string{"fail packet-in: a packet sent into the table", "only a gate port can gate; give the switch one"}},
		"no flow statistics": {m: switchtest.Config{Ignore: func(m of13.Message) bool {
			q, is := m.(*of13.MultipartRequest)
			return is && q.Type == of13.MultipartFlow
		}}, limit: time.Second, fails: everything, says: []string{"fail rules of others: the flow tables cannot be read", "fail rules: not tried, because of: rules of others"}},
		"no port 2": {m: switchtest.Config{Ports: []uint32{1, 3}}, fails: everything, says: []string{"fail ports: host b: no port 2 → the switch has ports 1 (), 3 (): mend the testbed file or the cable",
			"warn other ports: up, and not in the testbed file: 3 () → while netsplit drives the switch, hosts of the file do not reach what is there"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, sw := examined(t, c.m, c.limit)
			var lines []string
			for _, k := range d.Checks {
				lines = append(lines, string(k.Level)+" "+k.Name+": "+k.Found+" → "+k.Means)
				if k.Level != model.CheckOK && (k.Means == "" || len(k.Affects) == 0 && k.Name != "other ports") {
					t.Errorf("it does not say what follows: %+v", k)
				}
			}
			text := strings.Join(lines, "\n")
			for _, w := range c.says {
				if !strings.Contains(text, w) {
					t.Errorf("it does not say %q", w)
				}
			}
			// A gate port and a mirror are none of this testbed's.
			for _, a := range d.Abilities {
				if want := slices.Contains(c.fails, a.Ability) && !a.Absent; (a.Level == model.CheckFail) != want {
					t.Errorf("%s is %s", a.Ability, a.Level)
				}
			}
			if d.OK != c.ok {
				t.Errorf("fit for the main job: %v", d.OK)
			}
			if n := len(sw.Flows()); n > 0 {
				t.Errorf("%d rules left", n)
			}
			if t.Failed() {
				t.Logf("%s", text)
			}
		})
	}
}

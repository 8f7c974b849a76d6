package doctor

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/internal/switchtest"
	"netsplit/model"
)

// examined is what is said of a model switch with two hosts of a testbed on it.
func examined(t *testing.T, m switchtest.Config, limit time.Duration, ports ...model.Port) (model.Diagnosis, *switchtest.Switch) {
	t.Helper()
	if m.Ports == nil {
		m.Ports = []uint32{1, 2}
	}
	tb := testbedOf(2)
	for i, p := range ports {
		tb.Hosts[i].Port = p
	}
	x, sw := newTestbed(t, m, limit, tb)
	x.switches(context.Background())
	x.conclude()
	return x.d, sw
}

// testbedOf is a testbed with that many hosts on the switch 7, on the ports from 1 on.
func testbedOf(hosts int) model.Testbed {
	tb := model.Testbed{Name: "lacking"}
	for i := range hosts {
		tb.Hosts = append(tb.Hosts, model.TestbedHost{Name: model.NodeID(fmt.Sprintf("h%d", i+1)), Datapath: 7, Port: model.Port{Number: uint32(i + 1)},
			MAC: fmt.Sprintf("02:00:00:00:00:%02x", i+1), IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})})
	}
	if hosts == 2 {
		tb.Hosts[0].Name, tb.Hosts[1].Name = "a", "b"
	}
	return tb
}

// newTestbed is an examination of a testbed whose switch 7 is a model, which was told that
// before.
func newTestbed(t *testing.T, m switchtest.Config, limit time.Duration, tb model.Testbed, before ...of13.Message) (*exam, *switchtest.Switch) {
	t.Helper()
	m.Datapath, m.PartSize = 7, 100
	ctrl := controller.New(controller.Config{Role: of13.RoleEqual})
	t.Cleanup(func() { ctrl.Close() })
	sw := switchtest.New(m)
	for _, b := range before {
		sw.Do(b)
	}
	ours, theirs := net.Pipe()
	t.Cleanup(func() { theirs.Close() })
	go func() { _ = sw.Serve(theirs) }()
	go func() { _ = ctrl.Serve(ours) }()
	return newExam(Config{Testbed: tb, Controller: ctrl, Wait: 30 * time.Second, Limit: limit}), sw
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
		t.Run(c.a.String()+" "+c.b.String(), func(t *testing.T) {
			t.Parallel()
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
		})
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
		"no meters": {ok: true, says: []string{"warn meters: not used: the switch has no meters → a cut by hand uses drop rules alone"}},
		"one table": {m: switchtest.Config{Tables: 1}, fails: everything,
			says: []string{"fail features: 1 tables", "put the hosts on another", "fail rules: not tried, because of: features", "fail packet-in: not tried"}},
		"a table for nothing": {m: switchtest.Config{Limit: 5}, fails: []model.Ability{model.AbilityCut, model.AbilityPacketIn, model.AbilityOnly, model.AbilityOpening},
			says: []string{"fail rules of cuts: refused", "the switch answered OFPET_FLOW_MOD_FAILED/OFPFMFC_TABLE_FULL", "its tables are too small for that", "fail room for rules: its table takes 5 rules more and is full then", "give the switch larger tables"}},
		"a table for few": {m: switchtest.Config{Limit: 30}, ok: true, fails: []model.Ability{model.AbilityOnly, model.AbilityOpening},
			says: []string{"fail rules of cuts of some traffic: refused", "warn room for rules: its table takes 30 rules more and is full then", "one cut fits"}},
		"no barrier": {m: switchtest.Config{Ignore: func(m of13.Message) bool { return m.MsgType() == of13.TypeBarrierRequest }}, limit: time.Second, fails: everything,
			says: []string{"fail round trip of barrier: no answer", "this switch confirms nothing", "fail rules: not tried, because of: round trip of barrier"}},
		"no tcp flags": {m: switchtest.Config{Refuse: refuse(unsupported, func(m of13.Message) bool {
			f, is := m.(*of13.FlowMod)
			return is && strings.Contains(f.Match.String(), "tcp_flags")
		})}, ok: true, fails: []model.Ability{model.AbilityOpening}, says: []string{"OFPBMC_BAD_FIELD", "--only tcp-opening is refused there, because the switch cannot match TCP flags"}},
		"no packet-out to the table": {m: switchtest.Config{Refuse: refuse(of13.Error{Type: of13.ErrTypeBadAction, Code: of13.BadActionBadOutPort}, func(m of13.Message) bool {
			o, is := m.(*of13.PacketOut)
			return is && strings.Contains(o.String(), "TABLE")
		})}, fails: []model.Ability{model.AbilityPacketIn}, says: []string{"fail packet-in: a packet sent into the table", "packets cannot be held by packet-in: give the switch a gate port"}},
		"no flow statistics": {m: switchtest.Config{Ignore: func(m of13.Message) bool {
			q, is := m.(*of13.MultipartRequest)
			return is && q.Type == of13.MultipartFlow
		}}, limit: time.Second, fails: everything, says: []string{"fail rules of others: the flow tables cannot be read", "fail rules: not tried, because of: rules of others"}},
		"no port 2": {m: switchtest.Config{Ports: []uint32{1, 3}}, fails: everything, says: []string{"fail ports: host b: no port 2 → the switch has ports 1 (), 3 (): correct the testbed file or the cable",
			"warn other ports: up, and not in the testbed file: 3 () → while netsplit drives the switch, hosts of the file do not reach these ports"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they mostly wait
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

// TestWhatServeRefusesOrGoesWithout: doctor says of rules of others and of meters what
// netsplit serve makes of them.
func TestWhatServeRefusesOrGoesWithout(t *testing.T) {
	linked := testbedOf(2)
	linked.Hosts = append(linked.Hosts, model.TestbedHost{Name: "c", Datapath: 8, Port: model.Port{Number: 1}, MAC: "02:00:00:00:00:03", IP: netip.MustParseAddr("10.0.0.3")})
	linked.Links = []model.SwitchLink{{A: model.SwitchPort{Datapath: 7, Port: model.Port{Name: "trunk"}}, B: model.SwitchPort{Datapath: 8, Port: model.Port{Number: 50}}}}
	byRules := testbedOf(2)
	byRules.Cuts = model.CutByRules
	past := of13.NewFlowMod(of13.FlowAdd)
	past.Cookie, past.Priority, past.Match, past.Instructions = 7, 500, of13.Match{of13.InPort(50)}, []of13.Instruction{of13.Apply(of13.Output{Port: 2})}
	taken := &of13.MeterMod{Command: of13.MeterAdd, Flags: of13.MeterPktps, Meter: 999, Bands: []of13.MeterBand{{Type: of13.BandDrop, Rate: 50}}}
	unused := &of13.MeterMod{Command: of13.MeterAdd, Flags: of13.MeterPktps, Meter: 1, Bands: taken.Bands}
	for _, k := range []struct {
		name   string
		tb     model.Testbed
		meters uint32
		before []of13.Message
		says   string
	}{
		{"a way round by a trunk", linked, 1000, []of13.Message{past}, "fail rules of others: 1 rules, 1 of them somebody else's: rule of somebody else"},
		{"the same where nothing hangs on it", testbedOf(2), 1000, []of13.Message{past}, "ok rules of others"},
		{"meters of others in the way", testbedOf(2), 1000, []of13.Message{taken}, "warn meters: not used: meter 999 of the switch is somebody else's"},
		{"meters of others", testbedOf(2), 1000, []of13.Message{unused}, "ok meters: 1000, which can drop"},
		{"few meters", testbedOf(4), 10, nil, "warn meters: not used: the switch has 10 meters, 4 hosts need 12"},
		{"few meters for hosts over links", linked, 3, nil, "warn meters: not used: the switch has 3 meters, 2 hosts with 1 on other switches need 4"},
		{"many hosts", testbedOf(33), 100_000, nil, "warn meters: not used: 33 hosts need 1056 meters, more than the 992"},
		{"cuts by rules", byRules, 1000, nil, "ok meters: not used, as the testbed file says"},
	} {
		m := switchtest.Config{Names: map[uint32]string{50: "trunk"}, Meters: k.meters}
		for n := range uint32(50) {
			m.Ports = append(m.Ports, n+1)
		}
		x, _ := newTestbed(t, m, 0, k.tb, k.before...)
		up := x.connected(t.Context(), []model.DatapathID{7})
		p := &patient{exam: x, Testbed: x.Testbed, sw: up[7]}
		for _, look := range []func(context.Context){p.portsThere, p.foreign, p.meters} {
			look(t.Context())
		}
		var lines []string
		for _, c := range x.d.Checks {
			lines = append(lines, string(c.Level)+" "+c.Name+": "+c.Found)
		}
		if text := strings.Join(lines, "\n"); !strings.Contains(text, k.says) {
			t.Errorf("%s: it does not say %q:\n%s", k.name, k.says, text)
		}
	}
}

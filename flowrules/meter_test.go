package flowrules_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/internal/switchtest"
	"netsplit/model"
)

// TestDeathAtAnyMomentHeals: after whichever message the daemon dies, from one
// random input to the next, to partitions half healed, to none: once what
// expires has expired, everything passes. Meters do not expire.
func TestDeathAtAnyMomentHeals(t *testing.T) {
	downs := 0
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 9))
		hosts := randomHosts(r)
		hosts = hosts[:min(len(hosts), 3)]
		before, cut := randomWorld(r, hosts), randomWorld(r, hosts)
		before.in.TopMeter, cut.in.TopMeter = topMeter, topMeter
		lifted, healed := cut, cut
		lifted.in.Partitions = slices.Clone(cut.in.Partitions)
		for i := range lifted.in.Partitions {
			lifted.in.Partitions[i].Lifted = true
		}
		healed.in.Partitions = nil

		var ms []of13.Message
		sw := newSwitch(hosts)
		first := 0
		for i, w := range []world{before, cut, lifted, healed} {
			for _, s := range turn(t, sw, w.plan(t), 1, nil).Steps {
				ms = append(ms, s.Mods...)
			}
			if i == 0 {
				first = len(ms)
			}
		}
		ports := []uint32{mirrorPort, gatePort}
		for _, h := range hosts {
			ports = append(ports, h.Port)
		}
		for n := first; n <= len(ms); n++ {
			if f, ok := ms[n-1].(*of13.FlowMod); ok && !slices.Contains(telling, flowrules.Cookie(f.Cookie).Kind()) {
				continue
			}
			now := time.Unix(0, 0)
			sw := switchtest.New(switchtest.Config{Ports: ports, Meters: topMeter, Now: func() time.Time { return now }})
			for _, m := range ms[:n] {
				do(t, sw, m)
				if mod, ok := m.(*of13.MeterMod); ok && len(mod.Bands) == 2 {
					downs++
				}
			}
			now = now.Add(cut.in.HardTimeout)
			for a, src := range hosts {
				for b, dst := range hosts {
					for _, k := range []string{"tcp", "arp request", "multicast"} {
						if a != b && !slices.ContainsFunc(sw.Inject(src.Port, frame(k, src, dst)), func(o switchtest.Output) bool { return o.Port == dst.Port }) {
							t.Fatalf("seed %d: dead after message %d of %d, %v: %s %s>%s does not pass", seed, n, len(ms), ms[n-1], k, src.Name, dst.Name)
						}
					}
				}
			}
		}
	}
	if downs == 0 {
		t.Error("no meter was turned down")
	}
}

// telling are the kinds of rules after which the daemon dies, beside meters.
var telling = []flowrules.Kind{flowrules.KindMeter, flowrules.KindHold, flowrules.KindDrop, flowrules.KindGate}

// cutOf is a partition of the first two hosts.
func cutOf(hosts []flowrules.Host, only ...model.Traffic) model.Partition {
	return model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{hosts[0].Name}, {hosts[1].Name}}, Only: only}
}

// metered is an input of hosts whose switch has meters.
func metered(seed uint64, ps ...flowrules.Desired) flowrules.Input {
	hosts := randomHosts(rand.New(rand.NewPCG(seed, 10)))
	for i := range ps {
		ps[i].Partition.Groups = [][]model.NodeID{{hosts[0].Name}, {hosts[1].Name}}
	}
	return flowrules.Input{Lab: 7, Hosts: hosts, TopMeter: topMeter, HardTimeout: 5 * time.Second, Partitions: ps}
}

func compile(t *testing.T, in flowrules.Input) flowrules.Plan {
	t.Helper()
	p, err := flowrules.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// steps are the names of a delta's stages, those about meters with how many.
func steps(d flowrules.Delta) string {
	var out []string
	for _, s := range d.Steps {
		n := 0
		for _, m := range s.Mods {
			if m.MsgType() == of13.TypeMeterMod {
				n++
			}
		}
		if n > 0 {
			out = append(out, fmt.Sprintf("%s %d", s.Name, n))
			continue
		}
		out = append(out, s.Name)
	}
	return strings.Join(out, ", ")
}

// TestMetersBiteFirst: a cut gives the rules that name a meter a timeout, turns
// the meters down and adds its drop rules, in this order; a heal goes back the
// same way. Partitions that overlap hold a meter down until the last is healed.
func TestMetersBiteFirst(t *testing.T) {
	in := metered(1)
	p := cutOf(in.Hosts)
	sw := newSwitch(in.Hosts)
	n := flowrules.MetersFor(len(in.Hosts), 0)
	for _, c := range []struct {
		what string
		ps   []flowrules.Desired
		want string
	}{
		{"nothing", nil, fmt.Sprintf("put meters %d, forward, admit, meter, look anew", n)},
		{"cut", []flowrules.Desired{{ID: 1, Partition: p}}, "hold, turn down 2, cut"},
		{"another cut of the same", []flowrules.Desired{{ID: 1, Partition: p}, {ID: 2, Partition: p}}, ""},
		{"the first healed", []flowrules.Desired{{ID: 2, Partition: p}}, "cut"},
		{"the other lifted", []flowrules.Desired{{ID: 2, Partition: p, Lifted: true}}, "hold, heal, meter"},
		{"healed", nil, "turn up 2, meter"},
		{"some traffic", []flowrules.Desired{{ID: 3, Partition: cutOf(in.Hosts, model.Traffic{Proto: "tcp"})}}, "cut"},
	} {
		in.Partitions = c.ps
		d := turn(t, sw, compile(t, in), 1, nil)
		if got := steps(d); got != c.want {
			t.Errorf("%s: %s; want %s", c.what, got, c.want)
		}
	}
	in.Partitions, in.TopMeter = nil, 0
	if got := steps(turn(t, sw, compile(t, in), 1, nil)); got != fmt.Sprintf("heal, unmeter, take meters %d", n) {
		t.Errorf("no meters any more: %s", got)
	}
	if left := sw.Meters(); len(left) > 0 {
		t.Errorf("meters are left: %v", left)
	}
}

// TestMetersOfOthers: a meter that somebody changed or deleted is put right; one
// of somebody else is left alone, and is named where the plan wants its number.
func TestMetersOfOthers(t *testing.T) {
	in := metered(2, flowrules.Desired{ID: 1, Partition: cutOf(metered(2).Hosts)})
	plan := compile(t, in)
	sw := newSwitch(in.Hosts)
	theirs := &of13.MeterMod{Command: of13.MeterAdd, Flags: of13.MeterPktps, Meter: 1, Bands: []of13.MeterBand{{Type: of13.BandDrop, Rate: 50}}}
	do(t, sw, theirs)
	turn(t, sw, plan, 1, nil)
	if err := flowrules.Taken(sw.Meters(), plan); err != nil {
		t.Errorf("taken for somebody else's: %v", err)
	}
	for _, m := range plan.Meters {
		if m.Down { // up, by somebody
			do(t, sw, &of13.MeterMod{Command: of13.MeterModify, Flags: of13.MeterPktps, Meter: of13.MeterID(m.ID), Bands: theirs.Bands})
		}
	}
	err := flowrules.Taken(sw.Meters(), plan)
	if err == nil || !slices.ContainsFunc(plan.Meters, func(m flowrules.Meter) bool {
		return m.Down && strings.HasPrefix(err.Error(), fmt.Sprintf("meter %d of the switch", m.ID))
	}) {
		t.Errorf("taken: %v; want one that was changed", err)
	}
	if d := turn(t, sw, plan, 1, nil); d.Changed != 2 || steps(d) != "turn down 2" {
		t.Errorf("after a change: %d changed, %s", d.Changed, steps(d))
	}
	do(t, sw, &of13.MeterMod{Command: of13.MeterDelete, Meter: of13.MeterID(plan.Meters[0].ID)})
	if d := turn(t, sw, plan, 1, nil); d.Missing != 3 || d.Stale != 0 {
		t.Errorf("after a deletion: %d missing, %d stale; want the meter and its two rules", d.Missing, d.Stale)
	}
	in.TopMeter, in.Partitions = 0, nil
	turn(t, sw, compile(t, in), 1, nil)
	if left := sw.Meters(); len(left) != 1 || left[0].Meter != 1 {
		t.Errorf("left of the meters: %v; want somebody else's", left)
	}
}

// TestAlike: having packets looked at anew changes nothing that is done to them; a
// cut does.
func TestAlike(t *testing.T) {
	in := metered(1)
	plain := compile(t, in)
	in.Changes = map[model.NodeID]int{in.Hosts[0].Name: 1}
	if anew := compile(t, in); !flowrules.Alike(plain, anew) || len(flowrules.Diff(plain.State(), anew).Steps) == 0 {
		t.Error("a second look is taken for another plan, or for none")
	}
	other := compile(t, metered(1, flowrules.Desired{ID: 1, Partition: cutOf(in.Hosts)}))
	if flowrules.Alike(plain, other) || flowrules.Alike(other, plain) || flowrules.Alike(flowrules.Plan{}, plain) {
		t.Error("a cut, or nothing at all, is like plain forwarding")
	}
}

// TestWithoutMeters: what a switch has to have for cuts by meters.
func TestWithoutMeters(t *testing.T) {
	const flags = uint32(of13.MeterKbps | of13.MeterBurst)
	good := of13.MeterFeatures{MaxMeter: 100_000, BandTypes: 1 << of13.BandDrop, Capabilities: flags, MaxBands: 2}
	with := func(change func(*of13.MeterFeatures)) of13.MeterFeatures {
		f := good
		change(&f)
		return f
	}
	for _, k := range []struct {
		name       string
		cuts       model.CutBy
		f          of13.MeterFeatures
		refused    error
		hosts, far int
		want       string // in the error; "": none
	}{
		{"all", model.CutByMeters, good, nil, 32, 0, ""},
		{"the file", model.CutByRules, good, nil, 2, 0, "the testbed says so"},
		{"no answer", "", good, errors.New("unknown request"), 2, 0, "unknown request"},
		{"none", "", with(func(f *of13.MeterFeatures) { f.MaxMeter = 0 }), nil, 2, 0, "has no meters"},
		{"too few", "", with(func(f *of13.MeterFeatures) { f.MaxMeter = 10 }), nil, 2, 5, "has 10 meters, 2 hosts with 5 on other switches need 12"},
		{"enough", "", with(func(f *of13.MeterFeatures) { f.MaxMeter = 10 }), nil, 2, 4, ""},
		{"no kbit/s", "", with(func(f *of13.MeterFeatures) { f.Capabilities = uint32(of13.MeterPktps | of13.MeterBurst) }), nil, 2, 0, "do not drop by rate and burst"},
		{"no burst", "", with(func(f *of13.MeterFeatures) { f.Capabilities = uint32(of13.MeterKbps) }), nil, 2, 0, "do not drop by rate and burst"},
		{"no drops", "", with(func(f *of13.MeterFeatures) { f.BandTypes = 0 }), nil, 2, 0, "do not drop by rate and burst"},
		{"one band", "", with(func(f *of13.MeterFeatures) { f.MaxBands = 1 }), nil, 2, 0, "one band only"},
		{"too many hosts", "", good, nil, 33, 0, "33 hosts need 1056 meters, more than the 992"},
	} {
		err := flowrules.WithoutMeters(k.cuts, k.f, k.refused, k.hosts, k.far)
		if (err == nil) != (k.want == "") || err != nil && !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v, want %q", k.name, err, k.want)
		}
	}
}

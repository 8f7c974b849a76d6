package service

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// hardTimeout is how long rules of a dead daemon stay at most.
const hardTimeout = 5 * time.Second

// partition cuts by REST and waits until it is in force.
func (d *daemon) partition(spec wire.PartitionSpec) wire.PartitionStatus {
	d.t.Helper()
	d.Call("POST", "/v1/partitions", spec, nil)
	return d.State(spec.Name, "in_force")
}

// times looks at the times of a partition in force: it was installed between the
// request and the proof, and is renewed.
func (d *daemon) times(p wire.PartitionStatus) {
	d.t.Helper()
	if p.Installed == nil || p.Installed.Before(p.Created) || p.InForce.Before(*p.Installed) {
		d.t.Errorf("%s: requested %v, installed %v, in force %v", p.Name, p.Created, p.Installed, p.InForce)
	}
	if p.RenewedUntil == nil || p.RenewedUntil.Before(*p.Installed) || time.Until(*p.RenewedUntil) > hardTimeout {
		d.t.Errorf("%s: installed %v, renewed until %v", p.Name, p.Installed, p.RenewedUntil)
		return
	}
	harness.Until(d.t, time.Minute, p.Name+" is renewed", func() error {
		var now wire.PartitionStatus
		if d.Call("GET", "/v1/partitions/"+p.Name, nil, &now); now.RenewedUntil == nil || !now.RenewedUntil.After(*p.RenewedUntil) {
			return fmt.Errorf("until %v, then until %v", p.RenewedUntil, now.RenewedUntil)
		}
		return nil
	})
}

// TestBridgeMadeByHand drives an Open vSwitch that netsplit did not set up.
func TestBridgeMadeByHand(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "a", "b", "c")
	dir := t.TempDir()
	d := serve(t, "--testbed", b.file, "--runs-dir", dir)
	b.connect(d.OpenFlow)
	d.Healthy()
	b.expect("plain forwarding", everything)

	for _, c := range []struct {
		spec wire.PartitionSpec
		pass func(from, to string) bool
	}{
		{wire.PartitionSpec{Name: "complete", Partition: wire.Partition{Shape: "complete", Groups: [][]string{{"a"}, {"b", "c"}}}},
			func(from, to string) bool { return from != "a" && to != "a" }},
		{wire.PartitionSpec{Name: "partial", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}},
			func(from, to string) bool { return from == "c" || to == "c" }},
		{wire.PartitionSpec{Name: "simplex", Partition: wire.Partition{Shape: "simplex", Groups: [][]string{{"a"}, {"b"}}}},
			func(from, to string) bool { return from != "b" || to != "a" }},
	} {
		in := d.partition(c.spec)
		d.times(in)
		b.expect(c.spec.Name, c.pass)
		p := d.Heal(c.spec.Name)
		if p.Installed == nil || !p.Installed.Equal(*in.Installed) || p.RenewedUntil != nil {
			t.Errorf("%s, healed: installed %v, renewed until %v", c.spec.Name, p.Installed, p.RenewedUntil)
		}
		if p.InForce == nil || p.Healed == nil || p.Dropped == 0 || p.Wanted < p.Dropped || p.Leaked != 0 || !p.LeakKnown || p.Reason != "" {
			t.Errorf("%s: %+v", c.spec.Name, p)
		}
		b.expect("after "+c.spec.Name, everything)
	}

	// Two at once, and one reset for both.
	d.partition(wire.PartitionSpec{Name: "one", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}})
	d.partition(wire.PartitionSpec{Name: "two", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"b"}, {"c"}}}})
	b.expect("two partitions", func(from, to string) bool { return from != "b" && to != "b" })
	var r wire.Reset
	d.Call("POST", "/v1/reset", nil, &r)
	if fmt.Sprint(r.Healed) != "[one two]" {
		t.Errorf("reset healed %v", r.Healed)
	}
	b.expect("after reset", everything)
	overlap(t, b, d)
	refusals(t, d)

	t.Run("kill -9 while cut", func(t *testing.T) {
		d.partition(wire.PartitionSpec{Name: "left", Partition: wire.Partition{Shape: "complete", Groups: [][]string{{"a"}, {"b", "c"}}}})
		b.expect("before the kill", func(from, to string) bool { return from != "a" && to != "a" })
		d.Kill()
		t.Logf("pings pass %v after the kill", b.passing(hardTimeout+2*time.Second).Round(10*time.Millisecond))

		d = serve(t, "--testbed", b.file, "--runs-dir", dir)
		d.Healthy()
		b.expect("with the next daemon", everything)
		if p := d.State("left", "healed"); p.Reason == "" || p.LeakKnown {
			t.Errorf("the partition of the dead daemon: %+v", p)
		}
	})

	t.Run("kill -9 while cut, and the switch is away", func(t *testing.T) {
		d := serve(t, "--testbed", b.file, "--runs-dir", dir)
		d.Healthy()
		d.partition(wire.PartitionSpec{Name: "left-again", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}})
		// As a switch whose way to the daemon broke: it keeps its rules until they expire.
		b.VSCtl("set-controller", bridge, "tcp:127.0.0.1:1", "--", "set", "controller", bridge, "connection_mode=out-of-band")
		d.Kill()
		d = serve(t, "--testbed", b.file, "--runs-dir", dir)
		var p wire.PartitionStatus
		d.Call("GET", "/v1/partitions/left-again", nil, &p)
		if back, _ := b.pings("a", "b"); back == 0 && (p.State != "healing" || p.Healed != nil || p.Reason == "") {
			t.Errorf("while its rules stand: %+v", p)
		} else if back > 0 {
			t.Error("the rules were gone already: nothing was tested")
		}
		if p = d.State("left-again", "healed"); p.Healed == nil || p.Reason == "" || p.LeakKnown {
			t.Errorf("when its rules had expired: %+v", p)
		}
		b.expect("without a daemon that is connected", everything)
		b.VSCtl("set-controller", bridge, "tcp:"+d.OpenFlow, "--", "set", "controller", bridge, "connection_mode=out-of-band", "max_backoff=1000")
		d.Healthy()
		d.partition(wire.PartitionSpec{Name: "left-again", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}})
		d.Heal("left-again")
	})
}

func (d *daemon) dropped() (all float64) {
	d.t.Helper()
	for _, n := range d.metrics(`netsplit_link_packets_total\{[^}]*fate="dropped"[^}]*\}`) {
		all += n
	}
	return all
}

// overlap cuts a pair by two partitions: healing one says that the other still
// cuts it, and the metrics count each packet once, by the older.
func overlap(t *testing.T, b *bench, d *daemon) {
	t.Helper()
	var ps wire.Partitions
	d.Call("GET", "/v1/partitions", nil, &ps)
	var reported float64
	for _, p := range ps.Items {
		reported += float64(p.Dropped)
	}
	before := d.dropped()
	if before != reported || before == 0 {
		t.Errorf("the metrics have %v dropped packets, the partitions %v", before, reported)
	}
	d.partition(wire.PartitionSpec{Name: "whole", Partition: wire.Partition{Shape: "isolate", Groups: [][]string{{"a"}}}})
	d.partition(wire.PartitionSpec{Name: "part", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}})
	b.expect("two that overlap", func(from, to string) bool { return from != "a" && to != "a" })
	harness.Until(t, time.Minute, "the metrics follow a partition that stands", func() error {
		if now := d.dropped(); now <= before {
			return fmt.Errorf("still %v dropped packets", now)
		}
		return nil
	})
	if p := d.Heal("part"); p.Dropped == 0 || p.Reason != "some of its links are still cut, by whole" {
		t.Errorf("part: %+v", p)
	}
	b.expect("one of them healed", func(from, to string) bool { return from != "a" && to != "a" })
	p := d.Heal("whole")
	if got := d.dropped() - before; p.Reason != "" || p.Probes == 0 || p.Probes > p.Wanted || got != float64(p.Dropped) {
		t.Errorf("whole: %+v; the metrics have %v more dropped packets", p, got)
	}
	b.expect("both healed", everything)
}

// refusals are requests that make no sense; nothing of the network may change.
func refusals(t *testing.T, d *daemon) {
	for _, c := range []struct {
		name   string
		in     any
		status int
		says   string
	}{
		{"unknown host", wire.PartitionSpec{Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"z"}}}}, 400, "z"},
		{"host left out", wire.PartitionSpec{Partition: wire.Partition{Shape: "complete", Groups: [][]string{{"a"}, {"b"}}}}, 400, "c"},
		{"unknown shape", map[string]any{"shape": "circle", "groups": [][]string{{"a"}, {"b"}}}, 422, "shape"},
		{"unknown key", map[string]any{"shape": "partial", "groups": [][]string{{"a"}, {"b"}}, "gruops": 1}, 422, "gruops"},
		{"wrong type", map[string]any{"shape": "partial", "groups": "a"}, 422, "groups"},
		{"unknown effect", map[string]any{"shape": "partial", "effect": "burn", "groups": [][]string{{"a"}, {"b"}}}, 422, "effect"},
	} {
		status, b, err := d.Try("POST", "/v1/partitions", c.in)
		if err != nil || status < 400 || status >= 500 || !strings.Contains(string(b), c.says) {
			t.Errorf("%s: %d %s %v; want a refusal (%d) that names %q", c.name, status, b, err, c.status, c.says)
		}
	}
	var ps wire.Partitions
	d.Call("GET", "/v1/partitions", nil, &ps)
	for _, p := range ps.Items {
		if p.State != "healed" {
			t.Errorf("after refusals: %+v", p)
		}
	}
}

// TestSwitchDiesInARun kills ovs-vswitchd in the middle of a run of a
// campaign on a bridge made by hand: that run cannot be judged.
func TestSwitchDiesInARun(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "n1", "n2", "n3", "c1")
	d := serve(t, "--testbed", b.file, "--runs-dir", t.TempDir())
	b.connect(d.OpenFlow)
	d.Healthy()
	var made wire.Campaign
	d.Call("POST", "/v1/campaigns", wire.CampaignSpec{Target: d.Upload(gossip(t)), Strategy: "random", Seed: 5, Clean: 1, Runs: 1}, &made)
	c := d.until(made.ID, time.Minute, "a run is under way", func(c wire.Campaign) bool { return len(c.Running) == 1 })
	run := c.Running[0]
	// It is in its workload once the target said something to somebody.
	harness.Until(t, time.Minute, "messages cross", func() error {
		status, body, err := d.Try("GET", "/metrics", nil)
		if err != nil || status != 200 || !strings.Contains(string(body), "text GOSSIP") {
			return fmt.Errorf("%d %v", status, err)
		}
		return nil
	})
	b.Switch.Kill()
	d.until(made.ID, time.Minute, "the run ends", func(c wire.Campaign) bool { return c.Done > 0 })
	var r wire.Run
	d.Call("GET", "/v1/runs/"+run, nil, &r)
	if r.Verdict.Value != "unknown" || !strings.Contains(r.Verdict.Reason, datapath) {
		t.Errorf("verdict %q: %s; want unknown, naming the switch", r.Verdict.Value, r.Verdict.Reason)
	}
	b.StartSwitch()
	d.Healthy()
	end := d.until(made.ID, 3*time.Minute, "the campaign ends", ended) // its last run cuts
	if end.State != "done" {
		t.Errorf("%s: %s", end.State, end.Reason)
	}
	b.expect("with the switch back", everything)
}

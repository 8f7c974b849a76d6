package service

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
	"netsplit/model"
)

// TestPartitionsByHandInHardHours: a switch that has no room, a host's port
// that goes, a heal that is asked for twice, and many cuts.
func TestPartitionsByHandInHardHours(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "a", "b", "c")
	d := serve(t, "--testbed", b.file, "--runs-dir", t.TempDir())
	b.connect(d.OpenFlow)
	d.Healthy()
	cut := wire.Partition{Shape: "complete", Groups: [][]string{{"a"}, {"b", "c"}}}

	t.Run("the switch has no room", func(t *testing.T) {
		b.VSCtl("--", "--id=@t", "create", "Flow_Table", "name=small", "flow_limit=1", "overflow_policy=refuse", "--", "set", "bridge", bridge, "flow_tables:1=@t")
		status, body, err := d.Try("POST", "/v1/partitions", wire.PartitionSpec{Name: "crowded", Partition: cut})
		if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(string(body), `crowded`) || !strings.Contains(strings.ToUpper(string(body)), "FULL") {
			t.Errorf("%d %s %v: want 503, the name of the partition and that the table is full", status, body, err)
		}
		var p wire.PartitionStatus
		d.Call("GET", "/v1/partitions/crowded", nil, &p)
		if p.State != "failed" || p.Reason == "" {
			t.Errorf("the refused partition: %+v", p)
		}
		b.expect("after the refusal", everything)
		b.VSCtl("clear", "bridge", bridge, "flow_tables")
	})

	t.Run("the switch has no room and evicts", func(t *testing.T) {
		one := wire.Partition{Shape: "simplex", Groups: [][]string{{"a"}, {"b"}}}
		first := d.partition(wire.PartitionSpec{Name: "first", Partition: one})
		rules := strings.Count(harness.Output(t, "ovs-ofctl", "-O", "OpenFlow13", "dump-flows", "unix:"+b.Path(bridge+".mgmt"), "table=1"), "cookie=")
		b.VSCtl("--", "--id=@t", "create", "Flow_Table", "name=small", fmt.Sprintf("flow_limit=%d", rules+2), "overflow_policy=evict", "--", "set", "bridge", bridge, "flow_tables:1=@t")
		d.Call("POST", "/v1/partitions", wire.PartitionSpec{Name: "evicted", Partition: cut}, nil)
		p := d.State("evicted", "failed")
		for _, want := range []string{"again and again", "raise its flow_limit", "overflow_policy=refuse", "table 1"} {
			if !strings.Contains(p.Reason, want) {
				t.Errorf("reason %q: want %q", p.Reason, want)
			}
		}
		if p.InForce != nil {
			t.Errorf("%+v: it never was in force", p)
		}
		if text := d.reported("partition", "evicted", "failed"); !strings.Contains(text, "partition evicted is failed: switch "+datapath) {
			t.Errorf("told %q", text)
		}
		if p := d.State("first", "in_force"); !p.InForce.Equal(*first.InForce) || p.Reason != "" {
			t.Errorf("the one before it, for which there is room: %+v", p)
		}
		b.expect("only the first", func(from, to string) bool { return from != "b" || to != "a" })
		b.VSCtl("clear", "bridge", bridge, "flow_tables")
		d.partition(wire.PartitionSpec{Name: "roomy", Partition: cut})
		b.expect("with room", func(from, to string) bool { return from != "a" && to != "a" })
		d.Heal("roomy")
		d.Heal("first")
		b.expect("healed", everything)
	})

	t.Run("heal twice", func(t *testing.T) {
		d.partition(wire.PartitionSpec{Name: "twice", Partition: cut})
		first := d.Heal("twice")
		var second wire.PartitionStatus
		d.Call("DELETE", "/v1/partitions/twice", nil, &second)
		if second.State != "healed" || first.Healed == nil || second.Healed == nil || !second.Healed.Equal(*first.Healed) {
			t.Errorf("healed %+v, then %+v", first, second)
		}
		if status, body, err := d.Try("DELETE", "/v1/partitions/never", nil); err != nil || status != http.StatusNotFound {
			t.Errorf("healing what never was: %d %s %v", status, body, err)
		}
	})

	t.Run("a port goes while cut", func(t *testing.T) {
		d.partition(wire.PartitionSpec{Name: "unplugged", Partition: cut})
		b.VSCtl("del-port", bridge, "hp1")
		if text := d.reported("host", "a", "no-port"); !strings.Contains(text, "removed from the switch") {
			t.Errorf("told %q", text)
		}
		b.VSCtl("add-port", bridge, "hp1", "--", "set", "interface", "hp1", "ofport_request=11")
		d.reported("host", "a", "port")
		b.expect("with the port back", func(from, to string) bool { return from != "a" && to != "a" })
		if p := d.Heal("unplugged"); p.Leaked != 0 || p.Reason != "" {
			t.Errorf("%+v", p)
		}
		b.expect("healed", everything)
	})

	t.Run("the switch dies and comes back", func(t *testing.T) {
		d.partition(wire.PartitionSpec{Name: "reborn", Partition: cut})
		b.Switch.Kill()
		if p := d.State("reborn", "requested"); !strings.Contains(p.Reason, "not connected") {
			t.Errorf("while it is away: %+v", p)
		}
		b.StartSwitch()
		d.State("reborn", "in_force")
		b.expect("with the switch back", func(from, to string) bool { return from != "a" && to != "a" })
		p := d.Heal("reborn")
		if p.Lapsed == 0 || len(p.Lapses) != p.Lapsed || p.Lapses[0].To == nil || !strings.Contains(p.Lapses[0].Why, "not connected") || !p.LeakKnown || p.Leaked != 0 {
			t.Errorf("healed: %+v", p)
		}
		b.expect("healed", everything)
	})

	t.Run("its time ends while the switch is away", func(t *testing.T) {
		d.partition(wire.PartitionSpec{Name: "late", Partition: cut, For: wire.Span(2 * time.Second)})
		b.VSCtl("set-controller", bridge, "tcp:127.0.0.1:9", "--", "set", "controller", bridge, "connection_mode=out-of-band")
		harness.Until(t, time.Minute, "its heal says that the switch is away", func() error {
			if p := d.State("late", "healing"); !strings.Contains(p.Reason, "switch is not connected") {
				return fmt.Errorf("%+v", p)
			}
			return nil
		})
		b.connect(d.OpenFlow)
		if p := d.State("late", "healed"); p.Reason != "" {
			t.Errorf("%+v", p)
		}
		b.expect("healed", everything)
	})

	t.Run("one that stands is listed however many are newer", func(t *testing.T) {
		d.partition(wire.PartitionSpec{Name: "stands", Partition: cut})
		d.partition(wire.PartitionSpec{Name: "newer", Partition: cut})
		d.Heal("newer")
		var got wire.Partitions
		d.Call("GET", "/v1/partitions?limit=1", nil, &got)
		if len(got.Items) != 2 || got.Items[0].Name != "newer" || got.Items[1].Name != "stands" {
			t.Errorf("the first page of one has %+v", got.Items)
		}
		d.Call("GET", "/v1/partitions?cursor="+got.Next, nil, &got)
		for _, p := range got.Items {
			if p.Name == "stands" {
				t.Error("it is on the second page, too")
			}
		}
		d.Heal("stands")
	})

	t.Run("many cuts", func(t *testing.T) {
		cycles := 25
		if os.Getenv("NETSPLIT_E2E_LONG") != "" {
			cycles = 1000
		}
		cycle := func(i int) {
			name := fmt.Sprintf("many%d", i)
			d.partition(wire.PartitionSpec{Name: name, Partition: cut})
			d.Heal(name)
		}
		for i := range 10 {
			cycle(i)
		}
		before := d.taken()
		for i := range cycles {
			cycle(10 + i)
		}
		after := d.taken()
		t.Logf("%d cycles: before %v, after %v", cycles, before, after)
		if after["go_goroutines"] > before["go_goroutines"]+5 || after["process_open_fds"] > before["process_open_fds"]+3 {
			t.Errorf("%d cycles: before %v, after %v", cycles, before, after)
		}
		// The log of changes keeps the last 10,000, of which a cut makes four.
		if grown, most := after[liveHeap]-before[liveHeap], float64(1<<20+cycles*2<<10); grown > most {
			t.Errorf("the daemon's heap grew by %.0f bytes in %d cycles, want %.0f at most", grown, cycles, most)
		}
	})
}

// reported waits for the first event of that kind, id and state.
func (d *daemon) reported(kind, id, state string) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.API+"/v1/events", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	res, err := d.HTTP.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	for sc := bufio.NewScanner(res.Body); sc.Scan(); {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok {
			continue
		}
		var e model.ServiceEvent
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			d.t.Fatalf("%q: %v", data, err)
		}
		if e.Kind == kind && e.ID == id && e.State == state {
			return e.Text
		}
	}
	d.t.Fatalf("no event %s %s %s within 15 s", kind, id, state)
	return ""
}

// liveHeap is the series of what a collection of garbage found in use.
const liveHeap = "go_gc_heap_live_bytes"

// taken is what the daemon has taken of the machine, by its metrics, when what is
// garbage now has been collected.
func (d *daemon) taken() map[string]float64 {
	d.t.Helper()
	const gcs = "go_gc_duration_seconds_count"
	began := d.metrics(gcs)[gcs]
	var out map[string]float64
	harness.Until(d.t, 5*time.Minute, "the daemon collects its garbage twice", func() error {
		if out = d.metrics(gcs + `|go_goroutines|process_open_fds|` + liveHeap); out[gcs] < began+2 {
			return fmt.Errorf("%v times, then %v", began, out[gcs])
		}
		return nil
	})
	if len(out) != 4 {
		d.t.Fatalf("metrics of the process: %v", out)
	}
	return out
}

// metrics are the values of the daemon's series that match the expression.
func (d *daemon) metrics(series string) map[string]float64 {
	d.t.Helper()
	status, body, err := d.Try("GET", "/metrics", nil)
	if err != nil || status != 200 {
		d.t.Fatalf("metrics: %d %v", status, err)
	}
	out := map[string]float64{}
	for _, m := range regexp.MustCompile(`(?m)^(`+series+`) (\S+)$`).FindAllStringSubmatch(string(body), -1) {
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			d.t.Fatal(err)
		}
		out[m[1]] = v
	}
	return out
}

package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// inHost are the processes of a host, by signal.
func (b *bench) inHost(host, signal string) {
	b.t.Helper()
	harness.Output(b.t, "sh", "-c", "kill -"+signal+" $(ip netns pids hand-"+host+")")
}

// TestAPartitionHealsWhateverHangs: its proof, its counting or the daemon's own
// end, and what is said of it meanwhile.
func TestAPartitionHealsWhateverHangs(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "a", "b", "c")
	d := serve(t, "--testbed", b.file, "--runs-dir", t.TempDir())
	b.connect(d.OpenFlow)
	d.Healthy()
	alone := wire.Partition{Shape: "isolate", Groups: [][]string{{"a"}}}
	cutOff := func(from, to string) bool { return from != "a" && to != "a" }

	t.Run("an agent that hangs", func(t *testing.T) {
		d.partition(wire.PartitionSpec{Name: "hung", Partition: alone})
		b.inHost("b", "STOP")
		time.Sleep(6 * time.Second) // the daemon counts meanwhile, and waits
		status, body, err := d.Try("DELETE", "/v1/partitions/hung", nil)
		if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(string(body), "it is not proved yet that packets pass again") {
			t.Errorf("healed with an agent that hangs: %d %s %v", status, body, err)
		}
		b.expect("healed with an agent that hangs", everything)
		if p := d.State("hung", "healing"); p.Healed != nil || p.Leaked != 0 {
			t.Errorf("%+v: nothing showed that it is healed", p)
		}
		b.inHost("b", "CONT")
		if p := d.Heal("hung"); p.Healed == nil || p.Leaked != 0 || p.Reason != "" {
			t.Errorf("healed again: %+v", p)
		}
	})

	t.Run("a time that begins though nothing is proved", func(t *testing.T) {
		b.inHost("c", "STOP")
		d.Call("POST", "/v1/partitions", wire.PartitionSpec{Name: "timed", Partition: alone, For: wire.Span(2 * time.Second)}, nil)
		if text := d.reported("partition", "timed", "requested"); !strings.Contains(text, "host c: agent") || strings.Contains(text, "MultipartRequest") {
			t.Errorf("an agent hangs, and what is told is %q", text)
		}
		p := d.State("timed", "healing")
		if p.InForce != nil {
			t.Errorf("%+v: in force was never proved", p)
		}
		// Its drop rules go first, then its meters, which let the first packet by.
		harness.Until(t, time.Minute, "all pings pass", func() error {
			if back, arrived := b.pings("a", "b"); back < 3 {
				return fmt.Errorf("%d of 3 arrived, %d came back", arrived, back)
			}
			return nil
		})
		b.expect("when its time was over", everything)
		b.inHost("c", "CONT")
		d.Heal("timed")
	})

	t.Run("asked for again", func(t *testing.T) {
		put := func(spec wire.PartitionSpec, want int) (p wire.PartitionStatus) {
			t.Helper()
			status, body, err := d.Try("PUT", "/v1/partitions/wanted", spec)
			if err != nil || status != want {
				t.Fatalf("status %d, %s, %v; want %d", status, body, err, want)
			}
			if status < 300 {
				if err := json.Unmarshal(body, &p); err != nil {
					t.Fatal(err)
				}
			}
			return p
		}
		spec := wire.PartitionSpec{Partition: alone}
		first := put(spec, http.StatusAccepted)
		d.State("wanted", "in_force")
		if again := put(spec, http.StatusOK); !again.Created.Equal(first.Created) || again.InForce == nil {
			t.Errorf("another cut: %+v", again)
		}
		b.expect("asked for twice", cutOff)
		spec.For = wire.Span(time.Hour)
		put(spec, http.StatusConflict)
		d.Heal("wanted")
		b.expect("healed once", everything)
		if next := put(spec, http.StatusAccepted); next.Created.Equal(first.Created) {
			t.Error("what was healed is not cut anew")
		}
		d.State("wanted", "in_force")
		d.Heal("wanted")
	})

	t.Run("somebody takes the rules away", func(t *testing.T) {
		before := d.partition(wire.PartitionSpec{Name: "robbed", Partition: alone})
		harness.Output(t, "ovs-ofctl", "-O", "OpenFlow13", "del-flows", "unix:"+b.Path(bridge+".mgmt"))
		if text := d.reported("switch", datapath, "tampered"); !strings.Contains(text, "somebody changed the rules") {
			t.Errorf("told %q", text)
		}
		if text := d.reported("partition", "robbed", "requested"); !strings.Contains(text, "proved again") {
			t.Errorf("told %q", text)
		}
		p := d.State("robbed", "in_force")
		if before.InForce == nil || p.InForce == nil || !p.InForce.Equal(*before.InForce) || p.Reason != "" {
			t.Errorf("in force at %v, and after it was proved again at %v: %s", before.InForce, p.InForce, p.Reason)
		}
		b.expect("proved again", cutOff)
		d.Heal("robbed")
	})

	t.Run("rules of others come in the way", func(t *testing.T) {
		d.partition(wire.PartitionSpec{Name: "pushed", Partition: alone})
		theirs := "table=0,priority=300,in_port=11"
		harness.Output(t, "ovs-ofctl", "-O", "OpenFlow13", "add-flow", "unix:"+b.Path(bridge+".mgmt"), theirs+",actions=output:12")
		harness.Until(t, time.Minute, "it is not called in force any more", func() error {
			if p := d.State("pushed", "requested"); !strings.Contains(p.Reason, "priority=300 in_port=11") {
				return fmt.Errorf("%s", p.Reason)
			}
			return nil
		})
		if status, body, err := d.Try("GET", "/healthz", nil); err != nil || status == http.StatusOK || !strings.Contains(string(body), "priority=300 in_port=11") {
			t.Errorf("healthy with a rule that goes round what is cut: %d %s %v", status, body, err)
		}
		if _, arrived := b.pings("a", "b"); arrived == 0 {
			t.Error("the rule lets nothing pass, so nothing leaks")
		}
		harness.Output(t, "ovs-ofctl", "-O", "OpenFlow13", "--strict", "del-flows", "unix:"+b.Path(bridge+".mgmt"), theirs)
		d.State("pushed", "in_force")
		b.expect("when they are gone", cutOff)
		if p := d.Heal("pushed"); p.Leaked == 0 || !p.LeakKnown {
			t.Errorf("%+v: what the rule let pass has leaked", p)
		}
	})

	t.Run("the daemon is told to end", func(t *testing.T) {
		d.partition(wire.PartitionSpec{Name: "last", Partition: alone})
		b.expect("before", cutOff)
		d.Signal(t, syscall.SIGTERM)
		if r := d.Wait(t, time.Minute); r.Code != 0 {
			t.Errorf("the daemon: %s", r)
		}
		b.expect("when it has ended", everything)
		if out, err := exec.Command("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", "unix:"+b.Path(bridge+".mgmt")).CombinedOutput(); err != nil || strings.Contains(string(out), "drop") {
			t.Errorf("rules left: %s %v", out, err)
		}
	})
}

package gossip

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"netsplit/e2e/harness"
	"netsplit/model"
)

// TestEitherTransportOfTheGateIsExactAndTold runs the same scenarios by each.
func TestEitherTransportOfTheGateIsExactAndTold(t *testing.T) {
	for _, c := range []struct {
		args []string
		gate model.Gate
		says string
	}{
		{nil, model.GateByPort, "by a port of the switch"},
		{[]string{"--gate", "packet-in"}, model.GateByPacketIn, "by packet-in and packet-out"},
	} {
		t.Run(string(c.gate), func(t *testing.T) {
			harness.LeavesNothing(t)
			dir := t.TempDir()
			args := append([]string{"campaign", target, "--strategy", "random", "--seed", "4", "--clean", "1", "--faults", "6", "--labs", "3",
				"--runs-dir", dir, "--progress", "plain"}, c.args...)
			res := harness.Run(t, args...)
			runs := harness.Records(t, dir, harness.CampaignID(t, res))
			if cut := harness.CheckProofs(t, runs); cut == 0 {
				t.Errorf("no run cut: %s", harness.Verdicts(runs))
			}
			for _, r := range runs {
				page, err := os.ReadFile(filepath.Join(r.Dir, "report.html"))
				if err != nil {
					t.Fatal(err)
				}
				want, says := string(c.gate), true
				if r.Clean() { // read by the mirror
					want, says = "", false
				}
				if r.Gate != want || strings.Contains(string(page), c.says) != says {
					t.Errorf("%s: tap %s, gate %q, want %q; the report says so: %v", r.Run, r.Tap, r.Gate, want, !says)
				}
				if r.Verdict.Value == model.VerdictUnknown && strings.Contains(r.Verdict.Reason, "gate") {
					t.Errorf("%s: %s", r.Run, r.Verdict.Reason)
				}
			}
		})
	}
}

// TestARunWhoseGatePortGoesDownIsUnknown takes the gate port down while packets
// wait there, and up again: that run is unknown and says why, later ones are not.
func TestARunWhoseGatePortGoesDownIsUnknown(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	p := harness.Start(t, "campaign", target, "--strategy", "random", "--seed", "4", "--clean", "1", "--faults", "3", "--runs-dir", dir, "--progress", "plain")
	harness.Until(t, time.Minute, "a fault run is under way", func() error {
		if runs, _ := filepath.Glob(filepath.Join(dir, "c-*", "*-r0002", "packets.pcapng")); len(runs) == 0 {
			return fmt.Errorf("said so far: %s", p.Stderr())
		}
		return nil
	})
	time.Sleep(time.Second)
	labs, err := filepath.Glob("/run/netsplit/labs/*.json")
	if err != nil || len(labs) != 1 {
		t.Fatalf("labs %v, %v", labs, err)
	}
	data, err := os.ReadFile(labs[0])
	if err != nil {
		t.Fatal(err)
	}
	var lab struct {
		GateReader string `json:"gate_reader"`
	}
	if err := json.Unmarshal(data, &lab); err != nil {
		t.Fatal(err)
	}
	link, err := netlink.LinkByName(lab.GateReader)
	if err == nil {
		err = netlink.LinkSetDown(link)
	}
	if err != nil {
		t.Fatalf("gate port %q: %v", lab.GateReader, err)
	}
	time.Sleep(500 * time.Millisecond)
	if err := netlink.LinkSetUp(link); err != nil {
		t.Fatal(err)
	}
	res := p.Wait(t, 2*time.Minute)
	told := 0
	for _, r := range harness.Records(t, dir, harness.CampaignID(t, res)) {
		gate := strings.Contains(r.Verdict.Reason, "gate port")
		if gate {
			told++
		}
		if gate && (r.Verdict.Value != model.VerdictUnknown || !strings.Contains(r.Verdict.Reason, "what was on its way")) {
			t.Errorf("%s is %s: %s", r.Run, r.Verdict.Value, r.Verdict.Reason)
		}
	}
	if told != 1 {
		t.Errorf("%d runs of 4 are unknown for the gate port, want one: %s", told, res)
	}
}

package gossip

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
		{[]string{"--faults", "3"}, model.GateByPort, "by a port of the switch"}, // other tests cut there, too
		{[]string{"--faults", "6", "--gate", "packet-in"}, model.GateByPacketIn, "by packet-in and packet-out"},
	} {
		t.Run(string(c.gate), func(t *testing.T) {
			harness.LeavesNothing(t)
			dir := t.TempDir()
			args := append([]string{"campaign", target, "--strategy", "random", "--seed", "4", "--clean", "1", "--labs", "3",
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
	p := harness.Start(t, "campaign", target, "--strategy", "random", "--seed", "4", "--clean", "1", "--faults", "2", "--runs-dir", dir, "--progress", "plain")
	harness.Until(t, time.Minute, "a fault run is under way", func() error {
		if runs, _ := filepath.Glob(filepath.Join(dir, "c-*", "*-r0002", "packets.pcapng")); len(runs) == 0 {
			return fmt.Errorf("said so far: %s", p.Stderr())
		}
		return nil
	})
	time.Sleep(time.Second)
	lab := theLab(t)
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
	reported := 0
	for _, r := range harness.Records(t, dir, harness.CampaignID(t, res)) {
		gate := strings.Contains(r.Verdict.Reason, "gate port")
		if gate {
			reported++
		}
		if gate && (r.Verdict.Value != model.VerdictUnknown || !strings.Contains(r.Verdict.Reason, "what was on its way")) {
			t.Errorf("%s is %s: %s", r.Run, r.Verdict.Value, r.Verdict.Reason)
		}
	}
	if reported != 1 {
		t.Errorf("%d runs are unknown for the gate port, want one: %s", reported, res)
	}
}

// lab is what the state file of a lab tells.
type lab struct {
	Bridge     string `json:"bridge"`
	OVSRunDir  string `json:"ovs_run_dir"`
	GateReader string `json:"gate_reader"`
	Hosts      []struct {
		Netns string `json:"netns"`
		IP    string `json:"ip"`
	} `json:"hosts"`
}

// theLab reads the state of the only lab there is.
func theLab(t *testing.T) (l lab) {
	t.Helper()
	labs, err := filepath.Glob("/run/netsplit/labs/*.json")
	if err != nil || len(labs) != 1 {
		t.Fatalf("labs %v, %v", labs, err)
	}
	data, err := os.ReadFile(labs[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &l); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l lab) vsctl(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(harness.Output(t, "ovs-vsctl", append([]string{"--db=unix:" + filepath.Join(l.OVSRunDir, "db.sock"), "--timeout=20"}, args...)...))
}

// cuts says whether the switch holds a rule of a cut: see the table of flowrules.
func (l lab) cuts() bool {
	out, err := exec.Command("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", "unix:"+filepath.Join(l.OVSRunDir, l.Bridge+".mgmt")).Output()
	return err == nil && cutRule.Match(out)
}

var cutRule = regexp.MustCompile(`table=[12],.* priority=[34]00,.*actions=drop`)

// whole is nil if pings pass between all hosts.
func (l lab) whole() error {
	for i, a := range l.Hosts {
		for _, b := range l.Hosts[i+1:] {
			if out, err := exec.Command("ip", "netns", "exec", a.Netns, "ping", "-n", "-q", "-c", "1", "-W", "1", b.IP).CombinedOutput(); err != nil {
				return fmt.Errorf("%s to %s: %v: %s", a.Netns, b.IP, err, out)
			}
		}
	}
	return nil
}

// TestARunWhoseSwitchLosesItsControllerIsUnknown takes the controller away from
// the switch in the middle of a cut, while packets pass the gate: that run is
// unknown and says why, nothing that it cut or held back stays so, and later
// runs are judged. Open vSwitch empties its tables when it has no controller left;
// one whose controller does not answer keeps them, and there rules of cut
// and gate expire with nobody to take them away.
func TestARunWhoseSwitchLosesItsControllerIsUnknown(t *testing.T) {
	for _, c := range []struct {
		name string
		gate model.Gate
		to   string // where the switch then looks for its controller; "": it has none
	}{
		{"none, gate port", model.GateByPort, ""},
		{"none, packet-in", model.GateByPacketIn, ""},
		{"elsewhere, gate port", model.GateByPort, "tcp:127.0.0.1:1"},
		{"elsewhere, packet-in", model.GateByPacketIn, "tcp:127.0.0.1:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.LeavesNothing(t)
			dir := t.TempDir()
			p := harness.Start(t, "campaign", target, "--strategy", "random", "--seed", "4", "--clean", "1", "--faults", "2", "--gate", string(c.gate),
				"--runs-dir", dir, "--progress", "plain")
			var lab lab
			harness.Until(t, 3*time.Minute, "a run cuts", func() error {
				if labs, _ := filepath.Glob("/run/netsplit/labs/*.json"); len(labs) == 1 {
					if lab = theLab(t); lab.cuts() {
						return nil
					}
				}
				return fmt.Errorf("said so far: %s", p.Stderr())
			})
			controller := lab.vsctl(t, "get-controller", lab.Bridge)
			if c.to == "" {
				lab.vsctl(t, "del-controller", lab.Bridge)
			} else {
				lab.vsctl(t, "set-controller", lab.Bridge, c.to)
			}
			dirs, err := filepath.Glob(filepath.Join(dir, "c-*", "*-r*"))
			if err != nil || len(dirs) == 0 {
				t.Fatalf("no run: %v", err)
			}
			hitIn := slices.Max(dirs)
			back := func() {
				lab.vsctl(t, "set-controller", lab.Bridge, controller, "--", "set", "controller", lab.Bridge, "connection_mode=out-of-band", "max_backoff=1000")
			}
			if c.to == "" {
				back()
			}
			harness.Until(t, time.Minute, "nothing is cut or held any more", lab.whole)
			if c.to != "" {
				back()
			}
			res := p.Wait(t, 5*time.Minute)
			runs := harness.Records(t, dir, harness.CampaignID(t, res))
			harness.CheckProofs(t, runs)
			reported, judged := false, 0
			for _, r := range runs {
				gone := strings.Contains(r.Verdict.Reason, "went away, with what it held")
				switch {
				case r.Dir < hitIn && gone:
					t.Errorf("%s, before it: %s", r.Run, r.Verdict.Reason)
				case r.Dir == hitIn:
					reported = gone && r.Verdict.Value == model.VerdictUnknown
				case r.Dir > hitIn && r.Verdict.Value != model.VerdictUnknown:
					judged++
				}
			}
			if !reported || judged == 0 {
				t.Errorf("%s is unknown for the switch: %v; runs after it that could be judged: %d: %s", filepath.Base(hitIn), reported, judged, harness.Verdicts(runs))
			}
		})
	}
}

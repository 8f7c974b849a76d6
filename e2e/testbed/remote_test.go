package testbed

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// operate is what a workload does to servers on hosts that are reached by ssh. It
// looks at the servers themselves: the hosts of the rack share its processes.
const operate = `#!/bin/sh
# operate NETSPLIT WHAT
of() { for p in $(pgrep -x gossip); do tr '\0' ' ' <"/proc/$p/cmdline" | grep -q " -id $1 " || continue; echo "$p"; done; }
is() { # is HOST STATES: of its one server, after at most 5 s
	for i in $(seq 50); do
		pid=$(of "$1"); state=
		[ -z "$pid" ] || read -r _ _ state _ <"/proc/$pid/stat"
		case $2 in *"${state:-none}"*) return;; esac
		sleep 0.1
	done
	echo "$1 is ${state:-none}, want $2" >&2; exit 1
}
case $2 in
act)
	"$1" node pause gossip n2; is n2 T
	"$1" node resume gossip n2; is n2 SR
	for verb in stop kill; do
		for host in n1 n2; do
			old=$(of $host)
			"$1" node $verb gossip $host; is $host none
			! "$1" node $verb gossip $host || exit 1
			"$1" node start gossip $host; is $host SR
			[ "$(of $host)" != "$old" ] || { echo "it was never gone" >&2; exit 1; }
		done
	done
	sleep 1; is n1 SR; is n2 SR;;
break)
	pid=$(of n2)
	while [ "$(cat /proc/$pid/comm)" != sshd ]; do
		pid=$(sed 's/.*) . \([0-9]*\).*/\1/' /proc/$pid/stat)
	done
	kill -9 "$pid"; is n2 none;;
esac
`

var operator = regexp.MustCompile(`(?s)    command: \[sh, -ec, '.*?'\]`)

// TestServersOverSSH: without hooks, servers on hosts that are reached by ssh alone
// are stopped, killed and paused over there. One whose connection breaks is stopped
// and makes the run unknown; and no run leaves one.
func TestServersOverSSH(t *testing.T) {
	harness.LeavesNothing(t)
	r := newRack(t, []string{"n1", "n2", "c1"})
	r.sshd()
	// The workload calls netsplit on the machine of the daemon: it stays local.
	r.hosts[2].exec = "[nsenter, --net=/run/netns/" + r.hosts[2].netns() + "]"
	r.write("")
	if err := os.WriteFile(r.Path("operate"), []byte(operate), 0o755); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	d := serve(t, "--testbed", r.file, "--runs-dir", dir, "--openflow", "127.0.0.1:6653")
	r.connect(d.OpenFlow)
	d.Healthy()
	run := func(what string) (harness.Record, string) {
		t.Helper()
		text := "user: root\n" + operator.ReplaceAllString(target, `    command: [sh, -e, `+r.Path("operate")+`, "{{.Netsplit}}", `+what+`]`)
		if what == "break" { // and does not recover
			text = strings.Replace(text, "recover: 40s", "recover: 3s", 1)
		}
		if err := os.WriteFile(r.Path("target.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var c wire.Campaign
		d.Call("POST", "/v1/campaigns", wire.CampaignSpec{Target: d.Upload(r.Path("target.yaml")), Strategy: "clean", Clean: 1}, &c)
		d.ended(c.ID)
		if left, err := exec.Command("pgrep", "-x", "gossip").Output(); err == nil {
			t.Errorf("%s: servers are left: %s", what, left)
		}
		rec := last(t, dir, c.ID)
		return rec, filepath.Join(dir, c.ID, rec.Run)
	}

	rec, at := run("act")
	if rec.Verdict.Value != "pass" {
		said, _ := os.ReadFile(filepath.Join(at, "logs", "c1-operator.log"))
		t.Fatalf("%+v; the workload said %q", rec, said)
	}
	events, err := os.ReadFile(filepath.Join(at, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(events), `"k":"node"`); n != 10 {
		t.Errorf("%d node actions in the record, want 10", n)
	}

	if rec, _ = run("break"); rec.Verdict.Value != "unknown" || !strings.Contains(rec.Verdict.Reason, "the connection to host n2 broke") {
		t.Errorf("%+v", rec.Verdict)
	}
}

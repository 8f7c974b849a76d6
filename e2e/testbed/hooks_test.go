package testbed

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
	"netsplit/e2e/need"
)

// sshd gives every host a second interface, an address on it, and a real sshd,
// and has the testbed file reach the hosts by ssh alone. The home directory of
// whoever logs in is empty.
func (r *rack) sshd() (ssh string) {
	r.t.Helper()
	need.Program(r.t, "/usr/sbin/sshd", "openssh-server")
	if err := unix.Mount("tmpfs", "/root", "tmpfs", 0, "mode=0700"); err != nil { // in the sandbox's mount namespace
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = unix.Unmount("/root", unix.MNT_DETACH) })
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		r.t.Fatal(err)
	}
	for _, key := range []string{"host", "user"} {
		harness.Output(r.t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", r.Path(key))
	}
	config := fmt.Sprintf("Port 2222\nHostKey %s\nAuthorizedKeysFile %s.pub\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nPidFile none\nMaxStartups 100\n",
		r.Path("host"), r.Path("user"))
	if err := os.WriteFile(r.Path("sshd_config"), []byte(config), 0o600); err != nil {
		r.t.Fatal(err)
	}
	ssh = fmt.Sprintf("ssh -F none -p 2222 -i %s -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR", r.Path("user"))
	for _, h := range r.hosts {
		out, in := fmt.Sprintf("rkm%d", h.number), "mgmt"
		harness.Output(r.t, "ip", "link", "add", out, "type", "veth", "peer", "name", in, "netns", h.netns())
		r.t.Cleanup(func() { _ = exec.Command("ip", "link", "del", out).Run() })
		harness.Output(r.t, "ip", "addr", "add", fmt.Sprintf("10.80.%d.1/24", h.number), "dev", out)
		harness.Output(r.t, "ip", "link", "set", out, "up")
		r.in(h, "ip", "addr", "add", h.mgmt()+"/24", "dev", in)
		r.in(h, "ip", "link", "set", in, "up")
		harness.StartCommand(r.t, exec.Command("ip", "netns", "exec", h.netns(), "/usr/sbin/sshd", "-D", "-e", "-f", r.Path("sshd_config")))
		h.exec = "[" + strings.ReplaceAll(ssh, " ", ", ") + ", root@" + h.mgmt() + "]"
		harness.Until(r.t, time.Minute, "sshd listens on "+h.name, func() error {
			c, err := net.DialTimeout("tcp", h.mgmt()+":2222", time.Second)
			if err == nil {
				c.Close()
			}
			return err
		})
	}
	return ssh
}

func (h *host) mgmt() string { return fmt.Sprintf("10.80.%d.2", h.number) }

// control is what an operator of the rack has on every host: it runs a server
// in a session of its own.
const control = `#!/bin/sh
# control VERB NAME [COMMAND...]
verb=$1; name=$2; [ $# -lt 2 ] || shift 2
pid=/run/rack-$(ip -o link show eth0 | sed 's/.*ether \([0-9a-f:]*\).*/\1/')-$name.pid
case $verb in
start) setsid "$@" >/dev/null 2>&1 </dev/null & echo $! >$pid; echo "started $name";;
stop) kill "$(cat $pid)" && while kill -0 "$(cat $pid)" 2>/dev/null; do sleep 0.05; done; rm $pid;;
crash) kill -9 "$(cat $pid)"; rm $pid;;
pause) kill -STOP "$(cat $pid)";;
resume) kill -CONT "$(cat $pid)";;
reset) echo "fresh $name";;
esac
`

const target = `name: remote
nodes: [n1, n2]
clients: [c1]
protocols:
  - {port: 7000, transport: udp, dissector: text}
processes:
  - name: gossip
    hosts: [n1, n2]
    command: ["{{.Bin}}/gossip", -id, "{{.Host}}", -addr, "0.0.0.0:7000", -admin, "0.0.0.0:7001",
      -peers, "n1={{.IPs.n1}}:7000,n2={{.IPs.n2}}:7000", -seed, "{{.Seed}}"]
stable:
  - name: up
    hosts: [n1, n2]
    probe: {tcp: "127.0.0.1:7001", send: "STATUS\n", until: '(?m)^\.$'}
    match: '(?m)^met 1$'
variables:
  - name: status
    kind: node-status
    max_age: 1s
    sources:
      - {type: "text *", field: text, regexp: '(?P<about>n[0-9]+)=(?P<value>[A-Z]+)'}
workloads:
  - name: operator
    host: c1
    command: [sh, -ec, '
      {{.Netsplit}} node pause gossip n2; {{.Netsplit}} node resume gossip n2;
      {{.Netsplit}} node stop gossip n1; ! {{.Netsplit}} node stop gossip n1 || exit 1; {{.Netsplit}} node start gossip n1;
      {{.Netsplit}} node kill gossip n2; {{.Netsplit}} node start gossip n2; sleep 1']
checks:
  - {name: workload-hang, class: broken}
timing: {settle: 60s, workload: 40s, max_cut: 1s, recover: 40s}
`

// TestHooksOverSSH: a campaign on hosts that are reached by ssh alone: agents are
// copied there, servers started, stopped, paused and crashed by hooks; what hooks
// say is in the record, and one that fails is told with what it said.
func TestHooksOverSSH(t *testing.T) {
	harness.LeavesNothing(t)
	r := newRack(t, []string{"n1", "n2", "c1"})
	ssh := r.sshd()
	// The workload calls netsplit on the machine of the daemon: it stays local.
	r.hosts[2].exec = "[nsenter, --net=/run/netns/" + r.hosts[2].netns() + "]"
	if err := os.WriteFile(r.Path("control"), []byte(control), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.Path("target.yaml"), []byte(target), 0o644); err != nil {
		t.Fatal(err)
	}
	// Addresses of the management network follow from the host's own.
	line := func(verb, args string) string {
		return fmt.Sprintf("  %s: \"m=$(echo {{.Address}} | sed 's/.*\\\\.//'); %s root@10.80.$m.2 {{quote (printf \\\"%s %s %%s%s\\\" .Process%s)}}\"\n",
			verb, ssh, r.Path("control"), verb, map[bool]string{true: " %s"}[args != ""], args)
	}
	hooks := "hooks:\n" + line("start", " .Command") + line("stop", "") + line("crash", "") + line("pause", "") + line("resume", "") + line("reset", "") + "  timeout: 40s\n"
	r.write(hooks)
	dir := t.TempDir()
	d := serve(t, "--testbed", r.file, "--runs-dir", dir, "--openflow", "127.0.0.1:6653")
	r.connect(d.OpenFlow)
	d.Healthy()
	// The agents over there are copies, and they count: a cut is proved.
	d.Call("POST", "/v1/partitions", wire.PartitionSpec{Name: "one", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"n1"}, {"n2"}}}}, nil)
	d.State("one", "in_force")
	d.Heal("one")
	if copies, _ := filepath.Glob("/root/.cache/netsplit/*"); len(copies) != 1 {
		t.Errorf("copies of the agent: %v", copies)
	}

	var c wire.Campaign
	d.Call("POST", "/v1/campaigns", wire.CampaignSpec{Target: d.Upload(r.Path("target.yaml")), Strategy: "clean", Clean: 1}, &c)
	d.ended(c.ID)
	rec := last(t, dir, c.ID)
	if rec.Verdict.Value != "pass" {
		t.Fatalf("%+v", rec)
	}
	run := filepath.Join(dir, c.ID, rec.Run)
	events, err := os.ReadFile(filepath.Join(run, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(events), `"k":"node"`); n != 6 || !strings.Contains(string(events), `"output":"started gossip"`) {
		t.Errorf("%d node actions in the record, want 6, with what hooks said", n)
	}
	for _, h := range []string{"n1", "n2"} {
		log, err := os.ReadFile(filepath.Join(run, "logs", h+"-hooks.log"))
		if err != nil || !strings.Contains(string(log), "fresh") || strings.Count(string(log), "started gossip") != 2 {
			t.Errorf("%s: %v", log, err)
		}
	}

	// A hook that fails: the run is unknown and says what the hook said.
	r.write(regexp.MustCompile(`(?m)^  start: .*$`).ReplaceAllString(hooks, `  start: "echo no such unit >&2; exit 5"`))
	d.Kill()
	d = serve(t, "--testbed", r.file, "--runs-dir", dir, "--openflow", "127.0.0.1:6653")
	d.Healthy()
	d.Call("POST", "/v1/campaigns", wire.CampaignSpec{Target: d.Upload(r.Path("target.yaml")), Strategy: "clean", Clean: 1}, &c)
	d.ended(c.ID)
	rec = last(t, dir, c.ID)
	if rec.Verdict.Value != "unknown" || !strings.Contains(rec.Verdict.Reason, "exit status 5") || !strings.Contains(rec.Verdict.Reason, "no such unit") {
		t.Errorf("%+v", rec.Verdict)
	}
}

// last is the last run of a campaign: one that is unknown, because a busy machine
// let rules expire, is made again.
func last(t *testing.T, dir, campaign string) harness.Record {
	t.Helper()
	recs := harness.Records(t, dir, campaign)
	if len(recs) == 0 {
		t.Fatalf("campaign %s has no runs", campaign)
	}
	return recs[len(recs)-1]
}

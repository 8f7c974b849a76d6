package service

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// TestPartitionCommand cuts and heals by name as a person does at a terminal.
func TestPartitionCommand(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "a", "b", "c", "d")
	moved := b.Path("moved") // names the address of the host that has a role
	text, err := os.ReadFile(b.file)
	if err != nil {
		t.Fatal(err)
	}
	labelled := strings.NewReplacer("name: a,", "name: a, labels: {rack: x},", "name: b,", "name: b, labels: {rack: y},").Replace(string(text)) + `
roles:
  leader: {hosts: [a, b, c], probe: {command: [ip, addr, show, eth0]}, match: 'inet ` + b.ip["b"] + `/'}
  mover: {hosts: [a, b, c], probe: {command: [sh, -c, "ip -4 -o addr show eth0 | grep -F \" $(cat ` + moved + `)/\"; true"]}, match: inet}
  king: {hosts: [a, b], probe: {command: ["false"]}, match: x}
`
	if labelled == string(text) || os.WriteFile(b.file, []byte(labelled), 0o644) != nil {
		t.Fatalf("no labels in %s", text)
	}
	d := serve(t, "--testbed", b.file, "--runs-dir", t.TempDir())
	b.connect(d.OpenFlow)
	d.Healthy()
	netsplit := func(args ...string) harness.Result {
		return harness.Run(t, append([]string{"partition", "--api", d.API}, args...)...)
	}
	for _, c := range []struct {
		args []string
		says string
		pass func(from, to string) bool
	}{
		{[]string{"isolate", "a"}, "isolate a | b,c,d", func(x, y string) bool { return x != "a" && y != "a" }},
		{[]string{"ring"}, "ring a,b,c,d", func(x, y string) bool { return x+y != "ac" && x+y != "ca" && x+y != "bd" && x+y != "db" }},
		{[]string{"bridge", "d"}, "bridge d | a,b | c", func(x, y string) bool { return x == "d" || y == "d" || (x == "c") == (y == "c") }},
		{[]string{"split", "--label", "rack"}, "split label=rack a | b", func(x, y string) bool { return x+y != "ab" && x+y != "ba" }},
		{[]string{"leader-in"}, "leader-in role=leader b | a,c,d", func(x, y string) bool { return x != "b" && y != "b" }},
		{[]string{"leader-out", "a,b"}, "leader-out role=leader a | b,c,d", func(x, y string) bool { return x != "a" && y != "a" }},
		{[]string{"isolate", "c", "--only", "icmp"}, "isolate c | a,b,d only icmp", func(x, y string) bool { return x != "c" && y != "c" }},
		{[]string{"isolate", "c", "--only", "tcp/80", "--only", "udp"}, "only tcp/80, udp", everything},
	} {
		r := netsplit(append([]string{"cut", "--name", "it"}, append(c.args, "--effect", "drop")...)...)
		if r.Code != 0 || !strings.Contains(r.Stdout, "it is in force: ") || !strings.Contains(r.Stdout, c.says) {
			t.Errorf("cut %v: %s", c.args, r)
		}
		b.expect(strings.Join(c.args, " "), c.pass)
		if r := netsplit("show", "it"); r.Code != 0 || !strings.Contains(r.Stdout, "in force") || !strings.Contains(r.Stdout, "\n  installed ") || !strings.Contains(r.Stdout, "\n  renewed until ") || !strings.Contains(r.Stdout, "\n  wanted to cross ") {
			t.Errorf("show: %s", r)
		}
		if r := netsplit("heal", "it"); r.Code != 0 || !strings.Contains(r.Stdout, "it is healed") || !strings.Contains(r.Stdout, "leaked 0") {
			t.Errorf("heal: %s", r)
		}
	}
	// What the API answers can be cut again.
	if r := netsplit("cut", "simplex", "a", "b", "--name", "told", "--only", "icmp", "-o", "json"); r.Code != 0 {
		t.Errorf("cut: %s", r)
	} else {
		var p wire.PartitionStatus
		if err := json.Unmarshal([]byte(r.Stdout), &p); err != nil || p.State != "in_force" || p.Name != "told" {
			t.Errorf("%v: %s", err, r)
		}
		p.Name = "again"
		spec, err := json.Marshal(p.PartitionSpec)
		if err != nil || os.WriteFile(moved, spec, 0o644) != nil {
			t.Fatal(err)
		}
		if r := netsplit("cut", "--file", moved); r.Code != 0 || !strings.Contains(r.Stdout, "again is in force: simplex a | b only icmp") {
			t.Errorf("cut again: %s", r)
		}
		b.expect("cut by a file", func(x, y string) bool { return x+y != "ba" })
		var list []wire.PartitionStatus
		if r := netsplit("list", "-o", "json"); json.Unmarshal([]byte(r.Stdout), &list) != nil || len(list) < 2 || list[0].Name != "again" {
			t.Errorf("list: %s", r)
		}
		if r := netsplit("heal", "--all", "-o", "json"); r.Code != 0 || !strings.Contains(r.Stdout, `"again"`) {
			t.Errorf("heal: %s", r)
		}
	}

	// A role that moves is asked for when the cut is made; what is cut stays cut.
	for _, c := range [][2]string{{"a", "c"}, {"c", "a"}} {
		has, next := c[0], c[1]
		if err := os.WriteFile(moved, []byte(b.ip[has]), 0o644); err != nil {
			t.Fatal(err)
		}
		if r := netsplit("cut", "leader-in", "--role", "mover", "--name", "moved"); r.Code != 0 || !strings.Contains(r.Stdout, "leader-in role=mover "+has+" | ") {
			t.Errorf("cut where %s has the role: %s", has, r)
		}
		if err := os.WriteFile(moved, []byte(b.ip[next]), 0o644); err != nil {
			t.Fatal(err)
		}
		b.expect("the role has gone to "+next, func(x, y string) bool { return x != has && y != has })
		if r := netsplit("heal", "moved"); r.Code != 0 {
			t.Errorf("heal: %s", r)
		}
	}
	b.expect("healed", everything)

	// Two at once, one of them for a while; the other is healed by --all.
	if r := netsplit("cut", "partial", "a", "b", "--name", "short", "--for", "500ms"); r.Code != 0 {
		t.Errorf("for a while: %s", r)
	}
	if r := netsplit("cut", "partial", "a", "b,c", "--name", "long"); r.Code != 0 {
		t.Errorf("over it: %s", r)
	}
	harness.Until(t, time.Minute, "the short one heals by itself", func() error {
		if r := netsplit("show", "short"); !strings.Contains(r.Stdout, "short is healed") {
			return os.ErrDeadlineExceeded
		}
		return nil
	})
	b.expect("the long one is left", func(x, y string) bool { return x+y != "ab" && x+y != "ba" && x+y != "ac" && x+y != "ca" })
	if r := netsplit("list"); r.Code != 0 || !strings.Contains(r.Stdout, "long") || !strings.Contains(r.Stdout, "partial a | b for 500ms") {
		t.Errorf("list: %s", r)
	}
	if r := netsplit("heal", "--all"); r.Code != 0 || r.Stdout != "long healed\n" {
		t.Errorf("heal --all: %s", r)
	}
	if r := netsplit("heal", "--all"); r.Code != 0 || r.Stdout != "nothing was cut\n" {
		t.Errorf("heal --all again: %s", r)
	}
	b.expect("all healed", everything)

	// What the daemon sees of the testbed, and what it did.
	for args, want := range map[string]string{
		"testbed hosts":            "\nd     " + b.ip["d"],
		"testbed switches":         "connected  master",
		"testbed switches --rules": "netsplit",
		"annotations":              "long",
		"health":                   "switch",
	} {
		if r := harness.Run(t, append(strings.Fields(args), "--api", d.API)...); r.Code != 0 || !strings.Contains(r.Stdout, want) {
			t.Errorf("%s: %s", args, r)
		}
	}

	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"cut"}, 2, "which shape? one of complete,"},
		{[]string{"cut", "star", "a"}, 2, "use one of complete,"},
		{[]string{"cut", "isolate", "z"}, 2, `no host "z"`},
		{[]string{"cut", "complete", "a", "b"}, 2, `"c" is in no group`},
		{[]string{"cut", "isolate", "a", "--only", "sctp"}, 2, "use tcp, udp, icmp or arp"},
		{[]string{"cut", "isolate", "a", "--only", "tcp/http"}, 2, "want a port"},
		{[]string{"cut", "isolate", "a", "--for", "-3s"}, 2, "write a time greater than 0"},
		{[]string{"cut", "split", "--label", "zone"}, 2, "their labels are rack"},
		{[]string{"cut", "leader-in", "--role", "queen"}, 2, "it has king, leader"},
		{[]string{"cut", "leader-in", "--role", "king"}, 1, "not all could be asked"},
		{[]string{"heal"}, 2, "or use --all"},
		{[]string{"heal", "nothing"}, 1, `no partition "nothing"`},
		{[]string{"show", "nothing"}, 1, `partition "nothing": not found`},
	} {
		if r := netsplit(c.args...); r.Code != c.code || !strings.Contains(r.Stderr, c.says) {
			t.Errorf("%v: exit %d, want %d and %q:\n%s", c.args, r.Code, c.code, c.says, r)
		}
	}
	b.expect("after refusals", everything)
	d.Kill()
	if r := netsplit("list"); r.Code != 1 || !strings.Contains(r.Stderr, "start one with netsplit serve") {
		t.Errorf("without a daemon: %s", r)
	}
}

package config

import (
	"strings"
	"testing"
)

// TestRoles: a role is read with its probe, and what is wrong with one is named.
func TestRoles(t *testing.T) {
	const leader = "roles:\n  leader: {hosts: [n1, n2], probe: {tcp: \"127.0.0.1:6379\", send: \"INFO\\r\\n\"}, match: 'role:master'}\n"
	tb, err := Parse([]byte(good + leader))
	if err != nil || len(tb.Roles["leader"].Hosts) != 2 || tb.Roles["leader"].Probe.TCP != "127.0.0.1:6379" || tb.Roles["leader"].Match != "role:master" {
		t.Fatalf("%+v, %v", tb, err)
	}
	for _, c := range []struct{ old, new, says string }{
		{"[n1, n2]", "[]", "line 25: role leader: hosts is missing"},
		{"[n1, n2]", "[n1, n9]", `role leader: no host "n9"`},
		{`tcp: "127.0.0.1:6379", send: "INFO\r\n"`, "", "this one has 0"},
		{`send:`, `http: "http://127.0.0.1/", send:`, "this one has 2"},
		{"'role:master'", "'('", "role leader: match"},
		{"'role:master'", "''", "role leader: match"},
		{`127.0.0.1:6379`, "6001", `line 25: role leader: probe.tcp: "6001": want an address and port on the host, such as 127.0.0.1:6379`},
		{`127.0.0.1:6379`, ":6001", `probe.tcp: ":6001"`},
		{`127.0.0.1:6379`, "127.0.0.1:0", `probe.tcp: "127.0.0.1:0"`},
		{`127.0.0.1:6379`, "127.0.0.1", `probe.tcp: "127.0.0.1"`},
		{`tcp: "127.0.0.1:6379", send: "INFO\r\n"`, `http: "127.0.0.1:8080/status"`, `probe.http: "127.0.0.1:8080/status": want a URL on the host`},
		{`tcp: "127.0.0.1:6379", send: "INFO\r\n"`, `http: "/status"`, `probe.http: "/status"`},
		{`tcp: "127.0.0.1:6379"`, `command: [""]`, "probe.command: its first word is empty"},
		{`tcp: "127.0.0.1:6379"`, `command: [x]`, "probe: send and until go with tcp only"},
		{`send:`, `until: "(", send:`, "probe.until: bad regular expression (missing closing )"},
		{`send:`, `limit: -1s, send:`, "probe.limit: limit -1s"},
		{"  leader:", "  sender:", "role sender: sender, receiver, file-host are names of netsplit's own; choose another name"},
		{"  leader:", "  ' ':", `role  : its name has 1 to 63`},
		{"match:", "matches:", "known here: hosts, probe, match"},
	} {
		text := strings.Replace(leader, c.old, c.new, 1)
		if text == leader {
			t.Fatalf("%q is not in the file", c.old)
		}
		if _, err := Parse([]byte(good + text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q for %q: %v; want an error with %q", c.new, c.old, err, c.says)
		}
	}
}

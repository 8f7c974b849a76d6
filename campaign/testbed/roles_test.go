package testbed

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

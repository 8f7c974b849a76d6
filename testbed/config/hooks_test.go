package config

import (
	"strings"
	"testing"
	"time"

	"netsplit/model"
)

// TestHooks: hooks are read and filled in, and what is wrong with one is named.
func TestHooks(t *testing.T) {
	const hooks = "hooks: {start: 'ssh root@{{.Address}} {{quote .Command}}', crash: 'kill {{.Host}} {{.Process}}', timeout: 5s}\n"
	tb, err := Parse([]byte(good + hooks))
	if err != nil || tb.Hooks.Timeout != 5*time.Second || tb.Hooks.Of(model.NodeKill) != "kill {{.Host}} {{.Process}}" {
		t.Fatalf("%+v, %v", tb, err)
	}
	line, err := ExpandHook(tb.Hooks.Start, HookVars{Address: "10.0.0.1", Command: "it's 'a b'"})
	if want := `ssh root@10.0.0.1 'it'\''s '\''a b'\'''`; err != nil || line != want {
		t.Errorf("%s, %v; want %s", line, err, want)
	}
	for _, c := range []struct{ old, new, says string }{
		{".Address", ".Adress", "hooks: start"},
		{"{{quote", "{{quoted", "hooks: start"},
		{"start:", "pause:", "start is missing"},
		{"crash:", "pause:", "neither stop nor crash"},
		{"crash:", "crush:", "known here: start, stop, crash"},
		{"5s", "-5s", "hooks: timeout"},
	} {
		text := strings.Replace(hooks, c.old, c.new, 1)
		if text == hooks {
			t.Fatalf("%q is not in the file", c.old)
		}
		if _, err := Parse([]byte(good + text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q for %q: %v; want an error with %q", c.new, c.old, err, c.says)
		}
	}
}

// TestLinks: links between switches are read, and a port is of one thing only.
func TestLinks(t *testing.T) {
	const links = "links:\n  - {a: {datapath: 00000a1b2c3d4e5f, port: 50}, b: {datapath: 0b, port: 50}}\n"
	tb, err := Parse([]byte(good + links))
	if err != nil || len(tb.Links) != 1 || tb.Links[0].B != (model.SwitchPort{Datapath: 0xb, Port: model.Port{Number: 50}}) || len(tb.Switches()) != 2 {
		t.Fatalf("%+v, %v", tb, err)
	}
	for _, c := range []struct{ old, new, says string }{
		{"port: 50}, b", "port: 2}, b", "link number 1 is on the port of host n2"},
		{"0b", "00000a1b2c3d4e5f", "a link joins two switches"},
		{", port: 50}}", "}}", "must each name datapath and port"},
		{"b: {", "c: {", "known here: a, b"},
	} {
		text := strings.Replace(links, c.old, c.new, 1)
		if _, err := Parse([]byte(good + text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q for %q: %v; want an error with %q", c.new, c.old, err, c.says)
		}
	}
}

// TestRemoteHostsGetQuotedWords: ssh hands its words to a shell.
func TestRemoteHostsGetQuotedWords(t *testing.T) {
	near := model.TestbedHost{Exec: []string{"nsenter", "--net=/run/netns/ssh"}}
	far := model.TestbedHost{Exec: []string{"/usr/bin/ssh", "n1"}}
	if got := strings.Join(near.Argv("sh", "-c", "a b"), "|"); got != "nsenter|--net=/run/netns/ssh|sh|-c|a b" {
		t.Error(got)
	}
	if got := strings.Join(far.Argv("sh", "-c", "it's"), "|"); got != `/usr/bin/ssh|n1|'sh'|'-c'|'it'\''s'` {
		t.Error(got)
	}
}

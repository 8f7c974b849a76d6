package model

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"
)

// Probe reads text from a host without using the switch. It has exactly one of
// `command`, `tcp` and `http`. Prefer `tcp`: a command line tool that uses CPU several times a
// second on every host changes the timing of the system.
//
// Sources that ask the same question equally often share one probe. A POST, or an answer
// with another status than 2xx, takes `tcp`; the answer then starts with the header:
//
//	{tcp: "127.0.0.1:2379", send: "POST /v3/maintenance/status HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}", until: '}$'}
//
// Write bytes from 0x80 on as templates: `"\0\0\x05{{\"\\xb3\"}}"` is 00 00 05 b3. In `until`,
// `match` and `regexp`, a dot stands for one such byte.
type Probe struct {
	// Run on the host; the answer is its output. Template.
	// Example: [redis-cli, ping]
	Command []string `yaml:"command,omitempty,flow"`
	// Address and port on the host to connect to. Template.
	// Example: 127.0.0.1:6379
	TCP string `yaml:"tcp,omitempty"`
	// Sent after connecting; `tcp` only. Template.
	// Example: "ROLE\r\n"
	Send string `yaml:"send,omitempty"`
	// The answer is complete when it matches this regular expression; `tcp` only. Without it, when the
	// peer closes or is silent for 20 ms.
	// Example: '(?m)^\.$'
	Until string `yaml:"until,omitempty"`
	// URL of a GET; the answer is the body. A status other than 2xx is no answer. Template.
	// Example: http://127.0.0.1:8222/healthz
	HTTP string `yaml:"http,omitempty"`
	// How long to wait for the answer.
	// Default: 1s. Example: 500ms
	Limit time.Duration `yaml:"limit,omitempty"`
}

// Check tells of everything that is wrong with a probe: bad gets the key that it is
// about, "" for the whole. What is still a template is left for when it is filled in.
func (p Probe) Check(bad func(key, format string, args ...any)) {
	n := 0
	for _, set := range []bool{len(p.Command) > 0, p.TCP != "", p.HTTP != ""} {
		if set {
			n++
		}
	}
	if n != 1 {
		bad("", "a probe has exactly one of command, tcp and http; this one has %d", n)
	}
	filled := func(s string) bool { return s != "" && !strings.Contains(s, "{{") }
	if len(p.Command) > 0 && p.Command[0] == "" {
		bad("command", "its first word is empty: name the program")
	}
	if p.TCP == "" && (p.Send != "" || p.Until != "") {
		bad("", "send and until go with tcp only")
	}
	if filled(p.TCP) {
		if a, err := netip.ParseAddrPort(p.TCP); err != nil || a.Port() == 0 {
			bad("tcp", "%q: want an address and port on the host, such as 127.0.0.1:6379", p.TCP)
		}
	}
	if filled(p.HTTP) {
		if u, err := url.Parse(p.HTTP); err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
			bad("http", "%q: want a URL on the host, such as http://127.0.0.1:8080/status", p.HTTP)
		}
	}
	if filled(p.Until) {
		if _, err := regexp.Compile(p.Until); err != nil {
			bad("until", "%v", WrongPattern(err))
		}
	}
	if p.Limit < 0 {
		bad("limit", "limit %v: write a time greater than 0, such as 1s", p.Limit)
	}
}

// WrongPattern tells the writer of a pattern what package regexp says against it.
func WrongPattern(err error) error {
	if e, ok := err.(*syntax.Error); ok {
		err = fmt.Errorf("%s: `%s`", e.Code, e.Expr)
	}
	return fmt.Errorf("bad regular expression (%w): see https://pkg.go.dev/regexp/syntax", err)
}

// Condition is a probe whose answer must match. All conditions must hold on all their
// hosts at once before a run starts and after it heals. Check what an operator would check:
// members see one another, replicas follow. An open port is not enough. No condition
// may name one node as leader, because it must hold again after a failover.
type Condition struct {
	// A unique name; reports use it.
	// Required. Example: replicated
	Name string `yaml:"name"`
	// Where it is probed.
	// Required. Example: [n1, n2, n3]
	Hosts []NodeID `yaml:"hosts,flow"`
	// What to ask.
	// Required.
	Probe Probe `yaml:"probe"`
	// The regular expression that the answer must match. Group `same` must have one value on
	// all hosts; a host that matches without the group is not compared. Template.
	// Required. Example: 'leader=(?P<same>\S+)'
	Match string `yaml:"match"`
}

// Variable is something that one node knows and another should agree with: who leads, who is
// a member, which version of a configuration. A value that is meant to differ between nodes
// (a role, an id) makes no good variable.
//
// An instance is `name[about]`: what a node thinks of that node or shard. Where each shard has a leader of
// its own, checks that name the variable judge each instance by itself.
type Variable struct {
	// A unique name.
	// Required. Example: status
	Name string `yaml:"name"`
	// Only variables of one kind are compared, and only between two nodes.
	// Required. Example: leader
	Kind string `yaml:"kind"`
	// `host`: an address becomes the name of its host. `ordinal`: ids that differ from run to
	// run become `#1`, `#2`, in the order in which they appear.
	// Example: host
	As string `yaml:"as,omitempty"`
	// Values that mean the same, replaced before `as`: this reads KILLED as FINISHED.
	// Example: {KILLED: FINISHED}
	Same map[string]string `yaml:"same,omitempty"`
	// Values by which a node says of itself (`status[n3]` on n3) that it is no member any more.
	// Recovery then does not wait for what it knows of others. Needs instances.
	// Example: [LEFT]
	Gone []string `yaml:"gone,flow,omitempty"`
	// How old an observation may be and still be evidence. Use two to five times the interval of
	// its source.
	// Required. Example: 1s
	MaxAge time.Duration `yaml:"max_age"`
	// Where the value shows. The first source that matches a message is used.
	// Required.
	Sources []VarSource `yaml:"sources"`
	// The settings under which a run shows it: see [when](#when).
	// Example: {acks: [all]}
	When When `yaml:"when,omitempty,flow"`
}

// VarSource reads a variable from a message (`type`) or from the answer of a probe (`probe`);
// exactly one of the two is set. [Fields](fields.md) lists the fields of each reader.
type VarSource struct {
	// Message: a pattern over message types; `*` matches any text.
	// Example: "resp PUBLISH __sentinel__:hello"
	Type string `yaml:"type,omitempty"`
	// Message: the field to read. Without it, `value` says what the message means.
	// Example: payload
	Field string `yaml:"field,omitempty"`
	// Message: further fields that it must have, each with a regular expression.
	// Example: {group: ^S-, error: ^0$}
	Where map[string]string `yaml:"where,omitempty,flow"`
	// Message: whose variable it is, `sender` or `receiver`.
	// Default: sender. Example: receiver
	Of string `yaml:"of,omitempty"`
	// Applied to the field or the answer. Group `value` is the value (default: the whole match).
	// Group `about` makes every match an instance. Group `epoch` beside it separates
	// instances of different starts of the system: `name[about#2]`. Group `of` names the host whose value it is,
	// by name or address: what the sender passes on for another host is not read.
	// Example: '(?P<about>n[0-9]+)=(?P<value>[A-Z]+)'
	Regexp string `yaml:"regexp,omitempty"`
	// Replaces the value: a text, or the host `$sender`, `$receiver` or `$self` (whose variable it is).
	// Example: $sender
	Value string `yaml:"value,omitempty"`
	// The instance, where no group `about` names it: a text, `$sender`, `$receiver` or `$self`.
	// Example: $self
	About string `yaml:"about,omitempty"`
	// Instances that are observed as absent when a text that was read does not name them: `nodes`,
	// names separated by commas, or `named` (all that a source of the variable named in the
	// run, until five times `max_age` later). Needs group `about`.
	// Example: nodes
	AbsentFor string `yaml:"absent_for,omitempty"`
	// Message: `changes` says that every change shows in such a message as it happens (a commit, an
	// election result), so the last value holds until the next or until the
	// server stops or starts, whatever `max_age` is. Without it, nothing is known between two
	// different values.
	// Example: changes
	Tells string `yaml:"tells,omitempty"`
	// It may show nothing in a run or on a host; `target check --run` does not report it.
	// Default: false. Example: true
	Optional bool `yaml:"optional,omitempty"`

	// Probe: what to ask.
	Probe *Probe `yaml:"probe,omitempty"`
	// Probe: where to ask.
	// Default: all nodes. Example: [n1]
	Hosts []NodeID `yaml:"hosts,omitempty,flow"`
	// Probe: the interval, 10ms or more. Required with `probe`.
	// Example: 200ms
	Every time.Duration `yaml:"every,omitempty"`
}

// TellsChanges is VarSource.Tells of a source that shows every change.
const TellsChanges = "changes"

package sut

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"netsplit/deploy/targets"
	"netsplit/explorer/check"
	"netsplit/inference/classify"
	"netsplit/model"
)

// small is the smallest target file that is valid, with every template value.
const small = `name: small
nodes: [n1, n2]
clients: [c1]
args:
  rate: {default: "5", help: per second}
needs: {sh: dash}
protocols:
  - {port: 7000, transport: tcp, dissector: text}
processes:
  - name: server
    hosts: [n1, n2]
    files: {a.conf: "me={{.IP}} {{if ne .Host \"n1\"}}first={{.IPs.n1}}{{end}}"}
    command: ["{{.Bin}}/server", "{{.Dir}}/a.conf", "{{.TargetDir}}/x"]
    env: {START: "{{.RunStart}}"}
    after: [up]
stable:
  - name: up
    hosts: [n1, n2]
    probe: {tcp: "127.0.0.1:7000", send: "ROLE {{.Host}}\r\n", until: "\n"}
    match: 'leader=(?P<same>{{.IPs.n1}})'
variables:
  - name: status
    kind: status
    max_age: 1.5s
    sources:
      - {type: "text *", field: line, regexp: '(?P<about>\w+)=(?P<value>\w+)', absent_for: nodes}
      - {probe: {command: [sh, -c, "echo {{.Host}}"]}, hosts: [n2], every: 200ms, regexp: '\w+'}
workloads:
  - {name: writer, host: c1, command: [w, --for, "{{.WorkloadFor}}", --seed, "{{.Seed}}", --rate, "{{.Args.rate}}"]}
final:
  - {name: reader, host: c1, command: [r]}
checks:
  - {name: process-died, class: broken}
  - {name: workload-hang, class: documented, quote: clients wait, with: {limit: "{{.Args.rate}}s"}}
timing: {settle: 10s, workload: 9s, max_cut: 6s, recover: 25s}
`

func TestLoadFindsBuiltinFileAndDirectory(t *testing.T) {
	t.Setenv("NETSPLIT_CACHE", t.TempDir())
	for _, name := range Builtin(targets.FS) {
		files, err := targetFiles(targets.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		if _, dir, err := Load(name); err != nil || (dir != "") != (len(files) > 1) {
			t.Errorf("built-in %s: %d files, directory %q, %v", name, len(files), dir, err)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, FileName)
	if err := os.WriteFile(file, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{file, dir} {
		tg, got, err := Load(p)
		if err != nil || got != dir || tg.Name != "small" {
			t.Errorf("Load(%s) = %v, %q, %v", p, tg, got, err)
		}
	}
	tg, _, _ := Load(file)
	if v := tg.Variables[0]; v.MaxAge != 1500*time.Millisecond || v.Sources[1].Every != 200*time.Millisecond {
		t.Errorf("durations are read wrong: %+v", v)
	}
}

// Every target file of the repository is valid.
func TestTargetsOfTheRepositoryLoad(t *testing.T) {
	for _, pattern := range []string{"../*/targets/*/" + FileName, "../e2e/research/fate/hdfs-*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) < 2 {
			t.Fatalf("%s: found %v, %v", pattern, files, err)
		}
		for _, f := range files {
			if _, _, err := Load(f); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestLoadSaysWhatThereIs(t *testing.T) {
	fs := fstest.MapFS{"alpha/target.yaml": {Data: []byte(small)}, "beta/target.yaml": {Data: []byte("name: [\n")}}
	big := filepath.Join(t.TempDir(), "big.yaml")
	if err := os.WriteFile(big, bytes.Repeat([]byte("#\n"), 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		big:           "big.yaml has more than 1048576 bytes: check its path",
		"/dev/null":   "/dev/null is no regular file: check its path", // as are those without an end
		"":            "no target named: give the name of a built-in target (alpha, beta) or the path of a target file",
		"alhpa":       `no target "alhpa": it is neither a built-in target (alpha, beta) nor a file that exists (did you mean "alpha"?)`,
		"./none.yaml": `no target "./none.yaml": it is neither a built-in target (alpha, beta) nor a file that exists`,
		"beta":        "beta/target.yaml:1: not YAML: did not find expected node content",
	} {
		_, _, err := LoadFrom(fs, name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("LoadFrom(%q): %v, want %s", name, err, want)
		}
	}
	if tg, _, err := LoadFrom(fs, "alpha"); err != nil || tg.Name != "small" {
		t.Errorf("alpha: %v", err)
	}
}

// What is absent may be named in any way at once.
func TestWhatIsAbsentIsNamedInAnyWay(t *testing.T) {
	for _, who := range []string{"nodes", "named", `"named, n1"`, `"nodes, n1"`, `"ks0,ks1"`} {
		fs := fstest.MapFS{"alpha/target.yaml": {Data: []byte(strings.Replace(small, "absent_for: nodes", "absent_for: "+who, 1))}}
		tg, _, err := LoadFrom(fs, "alpha")
		if err != nil {
			t.Errorf("absent_for: %s: %v", who, err)
		} else if got := tg.Variables[0].Sources[0].AbsentFor; got != strings.Trim(who, `"`) {
			t.Errorf("absent_for: %s is read as %q", who, got)
		}
	}
}

// TestFieldsOfFramesAreThoseOfTheFile, which names them itself.
func TestFieldsOfFramesAreThoseOfTheFile(t *testing.T) {
	framed := strings.Replace(small, "dissector: text", "dissector: frames, frames: {length: {at: 0}, fields: {term: {at: 4}, leader: {at: 5}}}", 1)
	for source, want := range map[string]string{
		`{type: "frame *", field: term, where: {leader: '^1$'}}`:              "",
		`{type: "frame *", field: tern}`:                                      `t.yaml:26: variables[0].sources[0].field: reader frames finds no field "tern" (did you mean "term"?): the protocols' frames have leader, term`,
		`{type: "frame 0x1", value: $sender, about: x, where: {lead: '^1$'}}`: `variables[0].sources[0].where.lead: reader frames finds no field "lead"`,
		`{type: "text *", field: line, where: {any: '^1$'}}`:                  "",
		`{type: "*", field: tern}`:                                            "",
	} {
		text := strings.Replace(framed, `{type: "text *", field: line, regexp: '(?P<about>\w+)=(?P<value>\w+)', absent_for: nodes}`, source, 1)
		_, err := Parse("t.yaml", []byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
}

// TestEveryMistakeIsNamed changes the small file by one replacement and wants
// one problem, with its line and what to do.
func TestEveryMistakeIsNamed(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"unknown key", "nodes: [n1, n2]", "nodez: [n1, n2]\nnodes: [n1, n2]", `t.yaml:2: unknown key "nodez" (did you mean "nodes"?); allowed here: name, title, version, nodes, clients, labels, args,`},
		{"unknown key deep", "{type: \"text *\"", "{typo: 1, type: \"text *\"", `t.yaml:26: variables[0].sources[0]: unknown key "typo" (did you mean "type"?); allowed here: type, field, where, of, regexp, value,`},
		{"key twice", "clients: [c1]", "clients: [c1]\nclients: [c1]", `t.yaml:4: clients: stands twice (first at line 3): keep one`},
		{"list for text", "name: small", "name: [small]", `t.yaml:1: name: want a text, found a list`},
		{"text for list", "nodes: [n1, n2]", "nodes: n1", `t.yaml:2: nodes: want a list, such as [a, b], found "n1"`},
		{"list for mapping", "needs: {sh: dash}", "needs: [sh]", `t.yaml:6: needs: want a mapping (name: value), found a list`},
		{"bad bool", "    after: [up]", "    after: [up]\n    may_exit: perhaps", `may_exit: want true or false, found "perhaps"`},
		{"bad port", "port: 7000", "port: 70000", `t.yaml:8: protocols[0].port: want a number from 0 to 65535, found "70000"`},
		{"no port", "port: 7000", "port: 0", `protocols[0].port: want a port from 1 to 65535`},
		{"duration without unit", "max_age: 1.5s", "max_age: 15", `max_age: want a duration with a unit, such as 1.5s or 200ms, found "15"`},
		{"a tick longer than a cut", "max_cut: 6s", "max_cut: 6s, tick: 5000s", "timing.tick: 1h23m20s is longer than max_cut (6s), and a cut ends at a tick: give 6s or less"},
		{"negative duration", "settle: 10s", "settle: -10s", `timing.settle: want a duration that is not negative, found "-10s"`},
		{"no name", "name: small\n", "", `t.yaml:1: name: the target has no name`},
		{"bad host name", "nodes: [n1, n2]", "nodes: [n1, n2, 'n 3']", `nodes[2]: host name "n 3": use letters, digits, - and _`},
		{"label of nobody", "clients: [c1]", "clients: [c1]\nlabels: {n9: {rack: a}}", `labels.n9: `},
		{"label that cannot be asked for", "clients: [c1]", "clients: [c1]\nlabels: {n1: {' rack': a}}", `labels.n1: label " rack": its name has`},
		{"host twice", "clients: [c1]", "clients: [c1, n1]", `clients[1]: host "n1" is declared already at nodes[0]`},
		{"host not declared", "    hosts: [n1, n2]\n    files", "    hosts: [n1, n3]\n    files", `t.yaml:11: processes[0].hosts[1]: host "n3" is not declared: add it to nodes or clients, which have n1, n2, c1`},
		{"workload host not declared", "writer, host: c1", "writer, host: c9", `workloads[0].host: host "c9" is not declared`},
		{"workload without host", "writer, host: c1", "writer", `workloads[0].host: workload "writer" has no host`},
		{"no workloads", "workloads:\n  - {name: writer, host: c1, command: [w, --for, \"{{.WorkloadFor}}\", --seed, \"{{.Seed}}\", --rate, \"{{.Args.rate}}\"]}\n", "", `workloads: no workloads: add a process`},
		{"name of two workloads", "name: reader", "name: writer", `final[0].name: workload "writer" stands in workloads too`},
		{"transport", "transport: tcp", "transport: sctp", `protocols[0].transport: unknown transport "sctp": use tcp or udp`},
		{"dissector", "dissector: text", "dissector: txt", `protocols[0].dissector: unknown dissector "txt" (did you mean "text"?): use ` + strings.Join(classify.Names(), ", ")},
		{"dissector of connections", "transport: tcp, dissector: text", "transport: udp, dissector: zookeeper", `protocols[0].dissector: protocol on port 7000: dissector zookeeper reads connections, not datagrams: use json, resp, text, frames or fallback`},
		{"frames of nothing", "dissector: text", "dissector: frames", `protocols[0].dissector: dissector frames needs to know where a message has its length and its type: write frames: {length: `},
		{"frames of two places that cannot be", "dissector: text", "dissector: frames, frames: {length: {at: 0, size: 9}, type: [{at: 4, order: net}]}", `frames.length: a number has 8 bytes at most, not 9; frames.type[0]: unknown order "net": use big or little`},
		{"lines that follow nothing", "dissector: text", "dissector: text, lines: [{match: '^PUT (?P<type>x)', plus: 2}, {match: '^PUT (\\d+)$'}]", `protocols[0].lines: lines[0]: plus and fields are of what follows the line: match needs a group named length; lines[1].match: want a group named length`},
		{"lines of another reader", "dissector: text", "dissector: resp, lines: [{match: '^PUT (?P<length>\\d+)$'}]", `protocols[0].lines: protocol on port 7000: lines goes with dissector text, not with resp`},
		{"frames' keys", "dissector: text", "dissector: frames, frames: {len: {at: 0}}", `protocols[0].frames: unknown key "len"`},
		{"quoted port", "port: 7000", "port: \"7000\"", `t.yaml:8: protocols[0].port: want a number without quotes, found "7000"`},
		{"port twice", "dissector: text}", "dissector: text}\n  - {port: 7000, transport: tcp, dissector: resp}", `protocols[1]: tcp port 7000 stands twice (first at protocols[0])`},
		{"no command", "host: c1, command: [r]", "host: c1", `final[0].command: no command: give a list`},
		{"file outside", "a.conf: ", "../a.conf: ", `file name "../a.conf" must stay inside the host's directory`},
		{"after unknown", "after: [up]", "after: [upp]", `processes[0].after[0]: no condition "upp" (did you mean "up"?): stable has up`},
		{"two probes", "probe: {tcp: ", "probe: {http: 'http://x/', tcp: ", `stable[0].probe: a probe has exactly one of command, tcp and http; this one has 2`},
		{"probe address", "127.0.0.1:7000", "localhost:7000", `stable[0].probe.tcp: "localhost:7000": want an address and port on the host, such as 127.0.0.1:6379`},
		{"bad until", `until: "\n"`, `until: "(\n"`, "stable[0].probe.until: bad regular expression (missing closing ): `(\n`)"},
		{"bad match", "leader=(?P<same>{{.IPs.n1}})", "leader=(", "stable[0].match: bad regular expression (missing closing ): `leader=(`)"},
		{"bad match once expanded", "leader=(?P<same>{{.IPs.n1}})", "leader=({{.IPs.n1}}", "stable[0].match: bad regular expression (missing closing ): `leader=(192.0.2.1`)"},
		{"unknown group", "(?P<same>", "(?P<sane>", `unknown group "sane" (did you mean "same"?): groups here are named same`},
		{"variable group", "(?P<about>", "(?P<abuot>", `variables[0].sources[0].regexp: unknown group "abuot" (did you mean "about"?): groups here are named value, about, epoch`},
		{"no kind", "    kind: status\n", "", `variables[0].kind: variable "status" has no kind`},
		{"as", "max_age: 1.5s", "max_age: 1.5s\n    as: ip", `variables[0].as: unknown form "ip": use host`},
		{"same of the same", "max_age: 1.5s", "max_age: 1.5s\n    same: {a: b, b: c}", `variables[0].same: a becomes b, and b becomes c: write c for both`},
		{"no max_age", "    max_age: 1.5s\n", "", `variables[0].max_age: variable "status" has no max_age`},
		{"type and probe", "{type: \"text *\"", "{probe: {http: 'http://x'}, type: \"text *\"", `variables[0].sources[0]: a source has either type (a message) or probe`},
		{"probe interval", ", every: 200ms", "", `variables[0].sources[1].every: a probed source needs an interval, such as every: 200ms`},
		{"probe too often", "every: 200ms", "every: 1ms", `every: 1ms is too often: use 10ms or more`},
		{"unknown word for a host", "field: line", "field: line, about: $from", `variables[0].sources[0]: unknown $from: use $sender, $receiver or $self`},
		{"of", "field: line", "field: line, of: me", `variables[0].sources[0].of: unknown end "me": use sender or receiver`},
		{"absent for a host and a typo", "absent_for: nodes}", `absent_for: "n1,m2"}`, `variables[0].sources[0].absent_for: host "m2" is not declared`},
		{"absent without about", `regexp: '\w+'}`, `regexp: '\w+', absent_for: nodes}`, `absent_for needs a regexp with a group named about`},
		{"epoch without about", `(?P<about>`, `(?P<epoch>`, `variables[0].sources[0].regexp: a group named epoch tells instances apart: it needs a group named about`},
		{"gone without about", "max_age: 1.5s\n    sources:\n      - {type: \"text *\", field: line, regexp: '(?P<about>\\w+)=(?P<value>\\w+)', absent_for: nodes}",
			"max_age: 1.5s\n    gone: [LEFT]\n    sources:\n      - {type: \"text *\", field: line}", `variables[0].gone: gone is said of an instance, and variable "status" has none`},
		{"where", "field: line", "field: line, where: {group: (}", `variables[0].sources[0].where.group: `},
		{"regexp without field", "field: line", "value: x", `variables[0].sources[0].regexp: regexp without field`},
		{"about twice", "absent_for: nodes}", "absent_for: nodes, about: $sender}", `variables[0].sources[0].about: about "$sender" and a group named about`},
		{"probe with a sender", `regexp: '\w+'}`, `regexp: '\w+', value: $sender}`, `variables[0].sources[1]: a probe has no $sender: use $self`},
		{"check", "name: process-died", "name: process-dead", `checks[0].name: unknown check "process-dead" (did you mean "process-died"?): there are ` + strings.Join(check.Names(), ", ")},
		{"check twice", "class: broken}\n", "class: broken}\n  - {name: process-died, class: broken}\n", `checks[1].name: check "process-died" stands twice (first at checks[0]): keep one, or give them different settings`},
		{"check twice with other settings", "class: broken}\n", "class: broken}\n  - {name: workload-hang, class: documented, quote: q, with: {limits: 7s}}\n", `checks[1].with.limits: check workload-hang has no setting "limits" (did you mean "limit"?): it has limit`},
		{"class", "class: broken", "class: bad", `checks[0].class: unknown class "bad": use broken or documented`},
		{"documented without quote", ", quote: clients wait", "", `checks[1].quote: a documented failure needs quote`},
		{"check setting", "with: {limit:", "with: {limits:", `checks[1].with.limits: check workload-hang has no setting "limits" (did you mean "limit"?): it has limit`},
		{"check value", `limit: "{{.Args.rate}}s"`, `limit: "{{.Args.rate}}"`, `checks[1].with.limit: want a duration such as 1.5s, found "5"`},
		{"timing", ", recover: 25s", "", `timing.recover: missing: say how long the target may take to be stable again after heal, such as 10s`},
		{"bad user", "timing:", "user: 'a b'\ntiming:", `user: "a b": name a user`},
		{"bad capability", "timing:", "capabilities: [net_bind_servise]\ntiming:", `capabilities[0]: no capability "net_bind_servise" (did you mean "net_bind_service"?)`},
		{"bad rights of a process", "    after: [up]", "    after: [up]\n    capabilities: [CAP_KILL]", `processes[0].capabilities[0]: no capability "CAP_KILL"`},
		{"template value", "{{.Args.rate}}\"]", "{{.Args.rat}}\"]", `workloads[0].command[6]: template: no setting "rat" (did you mean "rate"?): args has rate`},
		{"template in a block", `files: {a.conf: "me={{.IP}} {{if ne .Host \"n1\"}}first={{.IPs.n1}}{{end}}"}`, "files:\n      a.conf: |\n        me={{.IP}}\n        first={{.IPs.n9}}", `t.yaml:15: processes[0].files.a.conf: template: no host "n9": there are c1, n1, n2`},
		{"template syntax", "{{.Seed}}", "{{.Seed", `workloads[0].command[4]: template: unclosed action: see docs/target-reference.md#templates`},
		{"template field", "{{.Seed}}", "{{.Sead}}", `template: no value .Sead (did you mean ".Seed"?): there are .Host .IP .IPs .Dir .TargetDir .Bin .Args .Seed .RunStart .WorkloadFor`},
		{"not YAML", "nodes: [n1, n2]", "nodes: [n1, n2", "not YAML: did not find expected ',' or ']': close the bracket, and quote what starts with { or [, as in \"{{.Dir}}\""},
		{"empty", small, "", `t.yaml:1: the file is empty`},
		{"a list", small, "- a\n", `t.yaml:1: want a mapping with the keys name, title,`},
		{"two documents", "timing:", "---\ntiming:", `: a second YAML document begins here: keep one`},
		{"null process", small, "name: x\nprocesses:\n", `processes: no processes: a target runs at least one server process`},
		{"key of points", "timing:", "points: {keys: [side, type, nods]}\ntiming:", `points.keys[2]: a point has no key "nods" (did you mean "node"?)`},
		{"keys that tell nothing", "timing:", "points: {keys: [side, node]}\ntiming:", `points.keys: the keys lack side or type`},
		{"stage without a message", "timing:", "points: {stages: [{name: setup}]}\ntiming:", `points.stages[0].begins: stage "setup" begins with nothing`},
		{"stage twice", "timing:", "points: {stages: [{name: a, begins: x}, {name: a, begins: y}]}\ntiming:", `points.stages[1].name: stage "a" stands twice`},
		{"timer without a type", "timing:", "points: {periodic: ['']}\ntiming:", `points.periodic[0]: no type`},
		{"quiesce without conditions", "timing:", "quiesce: {limit: 3s}\ntiming:", `quiesce.until: no conditions`},
		{"quiesce without a limit", "timing:", "quiesce: {until: [{name: idle, hosts: [n1], probe: {tcp: '1.2.3.4:5'}, match: x}]}\ntiming:", `quiesce.limit: no limit`},
		{"quiesce asks nobody", "timing:", "quiesce: {ask: {tcp: '1.2.3.4:5'}, limit: 1s}\ntiming:", `quiesce.hosts: ask and hosts go together`},
		{"quiesce as stable", "timing:", "quiesce: {limit: 1s, until: [{name: up, hosts: [n1], probe: {tcp: '1.2.3.4:5'}, match: x}]}\ntiming:", `quiesce.until[0].name: condition "up" is in stable, too`},
		{"quiesce elsewhere", "timing:", "quiesce: {limit: 1s, until: [{name: idle, hosts: [n9], probe: {tcp: '{{.Hst}}:5'}, match: '('}]}\ntiming:", `quiesce.until[0].match: bad regular expression`},
		{"log pattern", "timing:", "logs: {fatal: ['(']}\ntiming:", "logs.fatal[0]: bad regular expression"},
		{"need without package", "{sh: dash}", "{sh: ''}", `needs.sh: name the Debian package that has sh`},
		{"arg name", "  rate: {default", "  rate-x: {default", `args.rate-x: setting name "rate-x": use letters, digits and _`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(small, c.from) {
				t.Fatalf("the small file has no %q", c.from)
			}
			_, err := Parse("t.yaml", []byte(strings.Replace(small, c.from, c.to, 1)))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v, want an *Error with %s", err, c.want)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error\n%v\nwant\n%s", err, c.want)
			}
		})
	}
	if _, err := Parse("t.yaml", []byte(small)); err != nil {
		t.Errorf("the small file itself: %v", err)
	}
}

// TestALineThatIsNoYAMLIsFound: the line of the mistake, not the one where the
// block around it begins.
func TestALineThatIsNoYAMLIsFound(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"indented too little": {"  - {name: workload-hang", " - {name: workload-hang", "did not find expected key: is the line indented like those that belong with it?"},
		"indented too far":    {"  - {name: workload-hang", "    - {name: workload-hang", "not YAML"},
		"a key too far":       {"nodes: [n1, n2]", "  nodes: [n1, n2]", "mapping values are not allowed in this context"},
		"a bracket missing":   {"nodes: [n1, n2]", "nodes: [n1, n2", "did not find expected ',' or ']'"},
		"a tab":               {"nodes: [n1, n2]", "\tnodes: [n1, n2]", "a tab begins the line: indent with blanks"},
	} {
		file := strings.Replace(small, c.from, c.to, 1)
		line := 1 + strings.Count(file[:strings.Index(file, c.to)], "\n")
		_, err := Parse("t.yaml", []byte(file))
		if want := fmt.Sprintf("t.yaml:%d: ", line); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s%s", name, err, want, c.want)
		}
	}
}

// TestALineIsLookedForInAFileThatIsShort: a long file is not read again for each of its
// lines, so its mistake is told where the parser tells it, and one that is YAML has no
// line that is none.
func TestALineIsLookedForInAFileThatIsShort(t *testing.T) {
	lines := strings.Repeat("  "+strings.Repeat("x", 400)+",\n", 1990)
	if got := brokenLine([]byte("nodes: [n1\n" + lines)); got != 0 {
		t.Errorf("line %d looked for in %d bytes", got, len(lines))
	}
	if _, err := Parse("t.yaml", []byte("nodes: [n1\n"+lines)); err == nil || !strings.HasPrefix(err.Error(), "t.yaml:1991: not YAML: ") {
		t.Error(err)
	}
	if _, err := Parse("t.yaml", []byte("name: !!binary x\ntitle: y\n")); err == nil || !strings.HasPrefix(err.Error(), "t.yaml:1: not YAML: ") {
		t.Error(err)
	}
}

// TestMergeKeys: "<<" stands for the keys of other mappings, as everywhere in YAML.
func TestMergeKeys(t *testing.T) {
	const check = `{name: workload-hang, class: documented, quote: clients wait, with: {limit: "{{.Args.rate}}s"}}`
	before, after, ok := strings.Cut(small, check)
	if !ok {
		t.Fatalf("the small file has no %q", check)
	}
	parse := func(second string) (*model.Target, error) {
		return Parse("t.yaml", []byte(before+"&hang "+check+"\n  - "+second+after))
	}
	for file, class := range map[string]model.FailureClass{
		"{<<: *hang, with: {limit: 7s}}":                            model.Documented,
		"{class: broken, <<: *hang, with: {limit: 7s}}":             model.Broken,
		"{<<: *hang, with: {limit: 7s}, class: broken}":             model.Broken,
		"{<<: [{class: broken}, *hang], with: {limit: 7s}}":         model.Broken,
		"{<<: {<<: *hang}, with: {limit: 7s}}":                      model.Documented,
		"{<<: [{<<: [*hang]}, {class: broken}], with: {limit: 7s}}": model.Documented,
		"{<<: *hang, <<: {with: {limit: 9s}}, with: {limit: 7s}}":   model.Documented,
		"{<<: *hang, with: {<<: [], limit: 7s}}":                    model.Documented,
	} {
		got, err := parse(file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		last := got.Checks[len(got.Checks)-1]
		want := model.CheckSpec{Name: "workload-hang", Class: class, Quote: "clients wait", With: map[string]string{"limit": "7s"}}
		if !reflect.DeepEqual(last, want) {
			t.Errorf("%s: %+v, want %+v", file, last, want)
		}
	}
	for file, want := range map[string]string{
		"{<<: 5}":                                 `want a mapping, or a list of mappings, found "5"`,
		"&it {<<: *it, class: broken}":            "want a mapping that does not merge itself",
		"{<<: {clas: broken}, with: {limit: 7s}}": `unknown key "clas" (did you mean "class"?)`,
		"{<<: *hang, name: a, name: b}":           "stands twice",
	} {
		if _, err := parse(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}

func TestAllMistakesAtOnceInOrder(t *testing.T) {
	bad := strings.NewReplacer("transport: tcp", "transport: x", "class: broken", "class: x", "after: [up]", "after: [x]").Replace(small)
	_, err := Parse("t.yaml", []byte(bad))
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) != 3 {
		t.Fatalf("%v, want three problems", err)
	}
	for i, p := range e.Problems {
		if i > 0 && p.Line < e.Problems[i-1].Line {
			t.Errorf("problems are not in the order of the file:\n%v", err)
		}
	}
}

func input(host model.NodeID) ExpandInput {
	return ExpandInput{Host: host, Dir: "/d", TargetDir: "/t", Bin: "/b", Seed: 42, RunStart: time.Unix(7, 5), Hosts: map[model.NodeID]netip.Addr{
		"n1": netip.MustParseAddr("10.0.0.1"), "n2": netip.MustParseAddr("10.0.0.2"), "c1": netip.MustParseAddr("10.0.0.3")}}
}

func TestExpandGivesEachHostItsOwn(t *testing.T) {
	base, err := Parse("t.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	in := input("n2")
	in.Args = map[string]string{"rate": "9"}
	n2, err := Expand(base, in)
	if err != nil {
		t.Fatal(err)
	}
	p := n2.Processes[0]
	if p.Files["a.conf"] != "me=10.0.0.2 first=10.0.0.1" || p.Env["START"] != "7000000005" || strings.Join(p.Command, " ") != "/b/server /d/a.conf /t/x" {
		t.Errorf("process of n2: %+v", p)
	}
	if c := n2.Stable[0]; c.Match != "leader=(?P<same>10.0.0.1)" || c.Probe.Send != "ROLE n2\r\n" {
		t.Errorf("condition: %+v", c)
	}
	if len(n2.Workloads) != 0 || len(n2.Final) != 0 || len(n2.Variables[0].Sources) != 2 || n2.Variables[0].Sources[1].Probe.Command[2] != "echo n2" {
		t.Errorf("n2 has what is not its own: %+v", n2)
	}
	if n2.Checks[1].With["limit"] != "9s" || n2.Args["rate"].Default != "9" {
		t.Errorf("settings: %+v %+v", n2.Checks, n2.Args)
	}
	c1, err := Expand(base, input("c1"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c1.Workloads[0].Command, " "); got != "w --for 9s --seed 42 --rate 5" || len(c1.Processes) != 0 || len(c1.Variables[0].Sources) != 1 {
		t.Errorf("c1: %q, %+v", got, c1)
	}
	whole, err := Expand(base, ExpandInput{Args: in.Args})
	if err != nil || len(whole.Processes) != 1 || whole.Checks[1].With["limit"] != "9s" {
		t.Errorf("whole: %+v, %v", whole, err)
	}
	if base.Checks[1].With["limit"] != "{{.Args.rate}}s" || base.Processes[0].Command[0] != "{{.Bin}}/server" || base.Variables[0].Sources[1].Probe.Command[2] != "echo {{.Host}}" {
		t.Errorf("Expand changed its input: %+v", base)
	}
}

// TestAProbeSendsTheBytesThatTheFileSays as the reference writes them.
func TestAProbeSendsTheBytesThatTheFileSays(t *testing.T) {
	const send = `"\0\0\x05{{\"\\xb3\"}}"`
	if !strings.Contains(page(t, "docs", "target-reference.md"), "`"+send+"`") {
		t.Fatalf("the page does not show %s", send)
	}
	base, err := Parse("t.yaml", []byte(strings.Replace(small, `send: "ROLE {{.Host}}\r\n"`, "send: "+send, 1)))
	if err != nil {
		t.Fatal(err)
	}
	n1, err := Expand(base, input("n1"))
	if err != nil {
		t.Fatal(err)
	}
	if got := n1.Stable[0].Probe.Send; got != "\x00\x00\x05\xb3" {
		t.Errorf("it sends %q", got)
	}
}

func TestExpandSaysWhatIsMissing(t *testing.T) {
	base, err := Parse("t.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	in := input("n3")
	if _, err := Expand(base, in); err == nil || !strings.Contains(err.Error(), `no address for host "n3": the testbed must have every node and client of the target`) {
		t.Errorf("host without address: %v", err)
	}
	in = input("n2")
	delete(in.Hosts, "n1")
	if _, err := Expand(base, in); err == nil || !strings.Contains(err.Error(), `template of processes[0].files.a.conf: no host "n1": there are c1, n2`) {
		t.Errorf("missing peer: %v", err)
	}
	in = input("n1")
	in.Args = map[string]string{"rat": "1"}
	if _, err := Expand(base, in); err == nil || err.Error() != `target small has no setting "rat" (did you mean "rate"?): it has rate` {
		t.Errorf("unknown setting: %v", err)
	}
}

func TestCheckNeedsNamesThePackages(t *testing.T) {
	tg := &model.Target{Name: "x", Needs: map[string]string{"a": "pkg-b", "b": "pkg-b", "c": "pkg-a", "here": "z"}}
	look := func(p string) (string, error) {
		if p == "here" {
			return "/bin/here", nil
		}
		return "", errors.New("not found")
	}
	want := "target x needs programs that are not installed: a, b, c; install them with: apt-get install pkg-a pkg-b"
	if err := checkNeeds(tg, look); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	tg.Needs = map[string]string{"here": "z"}
	if err := checkNeeds(tg, look); err != nil {
		t.Error(err)
	}
}

func TestCheckScriptsNamesWhatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"run.sh": 0o755, "plain.py": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
	}
	tg := &model.Target{Name: "x",
		Processes:  []model.Process{{Name: "server", Command: []string{"{{.TargetDir}}/run.sh", "{{.TargetDir}}/none.conf"}}},
		Workloads:  []model.Workload{{Name: "writer", Command: []string{"python3", "{{ .TargetDir }}/plain.py", "{{.TargetDir}}/{{.Args.file}}", "{{.Dir}}/a"}}},
		Final:      []model.Workload{{Name: "reader", Command: []string{"{{.TargetDir}}/plain.py"}}},
		Operations: []model.ClientOperation{{Name: "set", Command: []string{"python3", "{{.TargetDir}}/plian.py"}}},
	}
	want := "target x: process server: there is no file " + dir + "/none.conf; workload reader: " + dir + "/plain.py cannot be run: chmod +x it, or name its interpreter before it; operation set: there is no file " + dir + "/plian.py"
	if err := CheckScripts(tg, dir); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := CheckScripts(tg, ""); err != nil {
		t.Errorf("no folder: %v", err)
	}
	for _, name := range Builtin(targets.FS) {
		b, dir, err := Load(name)
		if err == nil {
			err = CheckScripts(b, dir)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Aliases make a small file stand for a large one: Parse gives up in time.
func TestAliasesAreBounded(t *testing.T) {
	bomb := "nodes: &h [" + strings.Repeat("n,", 400) + "]\nprocesses: [&p {name: p, hosts: *h}" + strings.Repeat(", *p", 400) + "]\n"
	_, err := Parse("t.yaml", []byte(bomb))
	if err == nil || !strings.Contains(err.Error(), "want a target file of at most 20000 values") {
		t.Errorf("error %.200v", err)
	}
}

// FuzzParse: whatever the bytes, Parse returns a target or problems, and a
// target that it returns expands for each of its hosts.
func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("name: &x {name: *x}\n"))
	f.Add([]byte("args: &a {x: *a, y: *a, z: *a}\n"))
	f.Add([]byte("needs: &a {x: *a, y: *a}\nprocesses: &b [*b, *b, *b]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		tg, err := Parse("f", b)
		if (tg == nil) == (err == nil) {
			t.Fatalf("target %v, error %v", tg, err)
		}
		if tg == nil {
			return
		}
		in := ExpandInput{Hosts: map[model.NodeID]netip.Addr{}}
		for _, h := range append(tg.Nodes, tg.Clients...) {
			in.Hosts[h] = netip.MustParseAddr("10.0.0.1")
		}
		for h := range in.Hosts {
			in.Host = h
			if _, err := Expand(tg, in); err != nil {
				t.Fatalf("a valid target does not expand for %s: %v", h, err)
			}
		}
	})
}

// TestJavaTargetsStateTheirMemory: without it several labs are started on a
// machine too small for them, and what the kernel kills has "died".
func TestJavaTargetsStateTheirMemory(t *testing.T) {
	t.Setenv("NETSPLIT_CACHE", t.TempDir())
	n := 0
	for _, name := range Builtin(targets.FS) {
		tg, _, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if tg.Software == nil {
			continue // from Debian packages; the catalogue has Java systems only
		}
		if n++; tg.Memory == 0 {
			t.Errorf("target %s states no memory: measure what its processes take together (Pss in /proc/PID/smaps_rollup)", name)
		}
	}
	if n < 7 {
		t.Errorf("%d targets with software", n)
	}
}

// TestDisturbedLinesHaveAnEnd: and a pattern that is not all there is.
func TestDisturbedLinesHaveAnEnd(t *testing.T) {
	with := func(entry string) error {
		_, err := Parse("small.yaml", []byte(small+"logs: {fatal: [ERROR], disturbed: [{"+entry+"}]}\n"))
		return err
	}
	if err := with("match: lost peer, within: 10s"); err != nil {
		t.Error(err)
	}
	for entry, want := range map[string]string{
		"match: lost peer":             "logs.disturbed[0].within: missing",
		"within: 10s":                  "logs.disturbed[0].match: no match",
		"match: '(', within: 10s":      "bad regular expression",
		"match: 'x*', within: 10s":     "matches every line",
		"match: x, within: 1s, til: 2": `unknown key "til"`,
	} {
		if err := with(entry); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", entry, err, want)
		}
	}
}

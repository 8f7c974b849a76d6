package sut

import (
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"netsplit/deploy/targets"
	"netsplit/model"
)

// large is a target file with every key that large systems need.
const large = `name: large
nodes: [n1, n2]
clients: [c1]
software: {product: hadoop, default: 3.3.0, versions: [2.10.0, 3.3.0]}
memory: 1500
hostnames: true
protocols:
  - {port: 8020, transport: tcp, dissector: hadoop-rpc}
processes:
  - name: format
    hosts: [n1]
    once: true
    command: ["{{.Java}}", -cp, "{{.Dir}}:{{.Lib}}/*", Format]
  - name: node
    hosts: [n1, n2]
    command: ["{{.JavaHome}}/bin/java", "-javaagent:{{.Files}}/agent.jar", '-XX:SharedArchiveFile={{.Cache}}/node.jsa', Node]
    env: {V: '{{if atLeast .Version "3.0"}}new{{else}}old{{end}} {{.Version}}', W: "{{.Work}}", B: "{{.Building}}"}
  - name: spare
    hosts: [n2]
    manual: true
    command: [spare]
stable:
  - name: up
    hosts: [n1]
    probe: {http: "http://{{.IP}}:9870/jmx"}
    match: 'Live'
variables: []
workloads:
  - {name: admin, host: c1, command: [sh, -c, "{{.Netsplit}} node stop node n2"]}
checks:
  - {name: fatal-log, class: broken}
logs: {fatal: ['FATAL'], files: ['logs/*.log'], context: 5}
known:
  - {id: HDFS-1, title: it dies, check: fatal-log, match: 'NullPointer', versions: [3.3.0]}
timing: {settle: 10s, workload: 9s, max_cut: 6s, recover: 25s}
template: {keep: [data, 'conf/*'], warm: true}
`

func TestTheKeysOfLargeSystems(t *testing.T) {
	tg, err := Parse("t.yaml", []byte(large))
	if err != nil {
		t.Fatal(err)
	}
	if !tg.Processes[0].Once || !tg.Processes[2].Manual || !tg.Hostnames || !tg.Template.Warm || tg.Logs.Context != 5 ||
		tg.Memory != 1500 || tg.Known[0].ID != "HDFS-1" || !slices.Equal(tg.Template.Keep, []string{"data", "conf/*"}) {
		t.Errorf("read wrong: %+v", tg)
	}
	tg.Release = "2.10.0"
	in := ExpandInput{Host: "n1", Dir: "/d", Hosts: map[model.NodeID]netip.Addr{"n1": netip.MustParseAddr("10.0.0.1"), "n2": netip.MustParseAddr("10.0.0.2"), "c1": netip.MustParseAddr("10.0.0.3")},
		Lib: "/l", Files: "/f", Java: "/j/bin/java", JavaHome: "/j", Cache: "/c", Netsplit: "/n", Work: "/w", Building: true}
	out, err := Expand(tg, in)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(out.Processes[0].Command, " "); !out.Processes[0].Once || got != "/j/bin/java -cp /d:/l/* Format" {
		t.Errorf("command %s", got)
	}
	p := out.Processes[1]
	if got := strings.Join(p.Command, " "); got != "/j/bin/java -javaagent:/f/agent.jar -XX:SharedArchiveFile=/c/node.jsa Node" {
		t.Errorf("command %s", got)
	}
	if p.Env["V"] != "old 2.10.0" || p.Env["W"] != "/w" || p.Env["B"] != "true" {
		t.Errorf("environment %v", p.Env)
	}
	in.Host, in.Version = "c1", "3.3.0"
	if out, err = Expand(tg, in); err != nil || out.Workloads[0].Command[2] != "/n node stop node n2" {
		t.Errorf("%v, %v", out, err)
	}
	in.Host = "n2"
	if out, err = Expand(tg, in); err != nil || out.Processes[0].Env["V"] != "new 3.3.0" {
		t.Errorf("a version of its own: %v, %v", out, err)
	}
}

func TestMistakesOfLargeSystemsAreNamed(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"product", "product: hadoop", "product: '../x'", `t.yaml:4: software.product: "../x": name a product of the catalogue`},
		{"no versions", ", versions: [2.10.0, 3.3.0]", "", `software.versions: no versions: list the releases`},
		{"version", "[2.10.0, 3.3.0]", "[2.10.0, 3.3.0, 'a b']", `software.versions[2]: release "a b": use letters`},
		{"version twice", "[2.10.0, 3.3.0]", "[3.3.0, 3.3.0]", `software.versions[1]: release "3.3.0" stands twice`},
		{"no default", "default: 3.3.0, ", "", `software.default: no default`},
		{"default unknown", "default: 3.3.0", "default: 3.3.1", `software.default: release "3.3.1" is not in versions (did you mean "3.3.0"?): they are 2.10.0, 3.3.0`},
		{"catalog", "default: 3.3.0", "default: 3.3.0, catalog: ../c.yaml", `software.catalog: "../c.yaml" must stand beside the target file`},
		{"memory", "memory: 1500", "memory: 1.5 GB", `t.yaml:5: memory: want a whole number that is not negative, found "1.5 GB"`},
		{"negative", "context: 5", "context: -5", `logs.context: want a whole number that is not negative, found "-5"`},
		{"once and manual", "once: true", "once: true\n    manual: true", `processes[0].manual: process "format" cannot be once (a command of the set-up) and manual`},
		{"once may exit", "once: true", "once: true\n    may_exit: true", `processes[0].may_exit: process "format" is once`},
		{"manual after", "manual: true", "manual: true\n    after: [up]", `processes[2].after: process "spare" is manual`},
		{"manual in turn", "manual: true", "manual: true\n    in_turn: [up]", `processes[2].in_turn: process "spare" is manual or once`},
		{"in turn of what", "    hosts: [n1, n2]\n    command: [\"{{.JavaHome", "    hosts: [n1, n2]\n    in_turn: [upp]\n    command: [\"{{.JavaHome", `processes[1].in_turn[0]: no condition "upp" (did you mean "up"?)`},
		{"keep outside", "keep: [data,", "keep: [../data,", `template.keep[0]: pattern "../data" must stay inside the host's directory`},
		{"keep pattern", "keep: [data,", "keep: ['[data',", `template.keep[0]: bad pattern "[data"`},
		{"log file", "['logs/*.log']", "[/var/log/x]", `logs.files[0]: pattern "/var/log/x" must stay inside the host's directory`},
		{"known id", "id: HDFS-1, ", "", `known[0].id: no id: give the number of its report`},
		{"known check", "check: fatal-log, m", "check: fatal-logs, m", `known[0].check: unknown check "fatal-logs" (did you mean "fatal-log"?)`},
		{"known by", "title: it dies", "by: simptom", `known[0].by: "simptom": write symptom if`},
		{"known match", "match: 'NullPointer', ", "", `known[0].match: no match`},
		{"known bad match", "match: 'NullPointer'", "match: '('", "known[0].match: bad regular expression (missing closing ): `(`)"},
		{"known matches all", "match: 'NullPointer'", "match: 'Null|'", `known[0].match: "Null|" matches every failure`},
		{"known key", "title: it dies", "titel: it dies", `unknown key "titel" (did you mean "title"?)`},
		{"release", "hostnames: true", "'-': 3.3.0", `unknown key "-"`},
		{"a branch of a release", "}}old{{", "}}{{.Lob}}{{", `processes[1].env.V: template: no value .Lob (did you mean ".Lib"?)`},
		{"a branch of the building", "{{.Building}}", "{{if .Building}}{{.Lob}}{{end}}", `processes[1].env.B: template: no value .Lob (did you mean ".Lib"?)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(large, c.from) {
				t.Fatalf("the file has no %q", c.from)
			}
			_, err := Parse("t.yaml", []byte(strings.Replace(large, c.from, c.to, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error\n%v\nwant\n%s", err, c.want)
			}
		})
	}
}

func TestLoadChoosesTheRelease(t *testing.T) {
	t.Setenv("NETSPLIT_CACHE", t.TempDir())
	older := strings.NewReplacer("name: large", "name: older", "default: 3.3.0", "default: 2.7.1", "2.10.0, 3.3.0]", "2.7.1]").Replace(large)
	fs := fstest.MapFS{"large/target.yaml": {Data: []byte(large)}, "small/target.yaml": {Data: []byte(small)}, "older/target.yaml": {Data: []byte(older)}}
	file := filepath.Join(t.TempDir(), "with@sign", FileName)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(large), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"large": "3.3.0", "large@2.10.0": "2.10.0", "large@": "3.3.0", "small": "",
		file: "3.3.0", file + "@2.10.0": "2.10.0", filepath.Dir(file): "3.3.0", filepath.Dir(file) + "@2.10.0": "2.10.0",
	} {
		if tg, _, err := LoadFrom(fs, name); err != nil || tg.Release != want {
			t.Errorf("LoadFrom(%q): %+v, %v, want release %q", name, tg, err, want)
		}
	}
	for name, want := range map[string]string{
		"large@3.3.1": `target large has no release "3.3.1" (did you mean "3.3.0"?): it has 2.10.0, 3.3.0`,
		"large@2.7.1": `target large has no release "2.7.1": it has 2.10.0, 3.3.0; target older runs hadoop 2.7.1`,
		"small@1":     `target small has no releases to choose from`,
		"lrge@3.3.0":  `no target "lrge": it is neither a built-in target (large, older, small) nor a file that exists (did you mean "large"?)`,
		"@3.3.0":      `no target ""`,
	} {
		if _, _, err := LoadFrom(fs, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("LoadFrom(%q): %v, want %s", name, err, want)
		}
	}
}

// A daemon, and the next one, have other working directories than who asks.
func TestAPathIsTheSameEverywhere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"mine", "hdfs"} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for in, want := range map[string]string{
		"mine": filepath.Join(dir, "mine"), "mine@1.0": filepath.Join(dir, "mine@1.0"), "./hdfs": filepath.Join(dir, "hdfs"),
		"hdfs": "hdfs", "hdfs@3.3.0": "hdfs@3.3.0", "hdsf": "hdsf", "none/x": "none/x",
	} {
		if got := Absolute(in); got != want {
			t.Errorf("Absolute(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestAtLeastComparesNumbers(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"3.11.5", "3.5", true}, {"3.5", "3.11.5", false}, {"2.10.0", "2.7.1", true}, {"4.0", "4.0.0", true}, {"4", "4.0.1", false},
		{"5.0-beta1", "5.0", true}, {"5.0-beta1", "5.1", false}, {"3.4.14", "3.4.14", true}, {"9.2.1.Final", "9.2", true}, {"debian", "3.8", false}, {"3.8", "debian", true},
	} {
		if got := AtLeast(c.a, c.b); got != c.want {
			t.Errorf("AtLeast(%s, %s) = %v", c.a, c.b, got)
		}
	}
}

func TestTimesMultipliesSettings(t *testing.T) {
	for _, c := range []struct{ length, want, err string }{
		{"{{times .Args.tick .Args.limit}}ms", "2s", ""}, {"{{times .Args.beat 10}}s2s", "7s", ""}, {"{{times 0.5 4}}s", "2s", ""},
		{"{{times .Args.unit 4}}s", "", `times: "ms" is no number`},
	} {
		target := &model.Target{Periods: map[string]model.Period{"p": {Length: c.length}}, Args: map[string]model.TargetArg{
			"tick": {Default: "500"}, "limit": {Default: "4"}, "beat": {Default: "0.5"}, "unit": {Default: "ms"}}}
		d, err := PeriodOf(target, ExpandInput{}, "p")
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || c.err == "" && (err != nil || d.String() != c.want) {
			t.Errorf("%s is %v, %v; want %s%s", c.length, d, err, c.want, c.err)
		}
	}
}

// Scripts of a built-in target have a path, are executable, and come back if
// somebody changed them.
func TestABuiltInTargetHasItsFiles(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("NETSPLIT_CACHE", cache)
	builtin := fstest.MapFS{"large/target.yaml": {Data: []byte(large)}, "large/say.sh": {Data: []byte("#!/bin/sh\necho said\n")},
		"large/client/main.go": {Data: []byte("package main\n")}, "large/client/conf/a.xml": {Data: []byte("<a/>")}}
	var dir string
	for range 2 {
		_, d, err := LoadFrom(builtin, "large")
		if err != nil || !strings.HasPrefix(d, filepath.Join(cache, "targets", "large-")) {
			t.Fatalf("directory %q, %v", d, err)
		}
		if dir != "" && d != dir {
			t.Errorf("directory %s, then %s", dir, d)
		}
		dir = d
		if out, err := exec.Command(filepath.Join(dir, "say.sh")).CombinedOutput(); err != nil || string(out) != "said\n" {
			t.Errorf("%q, %v", out, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "say.sh"), []byte("#!/bin/sh\necho changed\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "client", "conf", "a.xml")); err != nil || string(b) != "<a/>" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "client", "main.go")); err == nil {
		t.Error("sources are of no use there")
	}
	builtin["large/say.sh"] = &fstest.MapFile{Data: []byte("#!/bin/sh\necho other\n")}
	if _, d, err := LoadFrom(builtin, "large"); err != nil || d == dir {
		t.Errorf("other files in the same directory %s, %v", d, err)
	}
	t.Setenv("NETSPLIT_CACHE", "/dev/null/x")
	if _, _, err := LoadFrom(builtin, "large"); err == nil || !strings.Contains(err.Error(), "set NETSPLIT_CACHE to a directory of yours") {
		t.Errorf("error %v", err)
	}
}

// What stands beside a target file in the repository is embedded with it: a
// file that is missing in the binary is missing on other machines only.
func TestEveryFileOfATargetIsEmbedded(t *testing.T) {
	root := filepath.Join("..", "deploy", "targets")
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if goDir, _ := filepath.Glob(filepath.Join(p, "*.go")); len(goDir) > 0 && rel != "." {
				return filepath.SkipDir // a program, built into the helpers' directory
			}
			return nil
		}
		if !strings.Contains(rel, "/") || strings.HasSuffix(rel, ".md") {
			return nil
		}
		if _, err := fs.Stat(targets.FS, rel); err != nil {
			t.Errorf("%s is not embedded: extend the pattern in deploy/targets/doc.go", rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMemoryIsComparedWithWhatIsFree(t *testing.T) {
	info := []byte("MemTotal:       24000000 kB\nMemFree:          100000 kB\nMemAvailable:    2048000 kB\n")
	if note, err := checkMemory(&model.Target{Name: "x", Memory: 2000}, info); err != nil || note != "memory: 2000 MB needed, 2000 MB free" {
		t.Errorf("%q, %v", note, err)
	}
	if _, err := checkMemory(&model.Target{Name: "x", Memory: 2001}, info); err == nil || !strings.Contains(err.Error(), "target x takes 2001 MB of memory and this machine has 2000 MB free") {
		t.Errorf("error %v", err)
	}
	if _, err := checkMemory(&model.Target{Memory: 1}, nil); err == nil {
		t.Error("no error without MemAvailable")
	}
	if note, err := CheckMemory(&model.Target{}); note != "" || err != nil {
		t.Errorf("%q, %v", note, err)
	}
}

// TestAFileOfTheSetUpAloneIsRefused: a run that starts from the template would not have it.
func TestAFileOfTheSetUpAloneIsRefused(t *testing.T) {
	setUp := "processes:\n  - {name: format, hosts: [n1, c1], once: true, files: {tool.sh: x}, command: [sh, '{{.Dir}}/tool.sh']}\n"
	base := strings.Replace(small, "processes:\n", setUp, 1)
	base = strings.Replace(base, "host: c1, command: [r]", `host: c1, command: [sh, "{{.Dir}}/tool.sh"]`, 1)
	const want = `final[0].command: {{.Dir}}/tool.sh is written on c1 by process "format" alone, and runs that start from the template skip it, as it is once: have another process of c1 write it, or add it to template.keep`
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"no template":                {base, true},
		"nothing is kept":            {base + "template: {warm: true}\n", true},
		"from a template":            {base + "template: {keep: [data]}\n", false},
		"the file is kept":           {base + "template: {keep: [data, 'tool.*']}\n", true},
		"a server writes it as well": {strings.Replace(base, setUp, setUp+"  - {name: tools, hosts: [c1], may_exit: true, files: {tool.sh: x}, command: ['true']}\n", 1) + "template: {keep: [data]}\n", true},
		"of another host":            {strings.Replace(base, "name: reader, host: c1", "name: reader, host: n2", 1) + "template: {keep: [data]}\n", true},
	} {
		_, err := Parse("t.yaml", []byte(c.text))
		if c.ok && err != nil || !c.ok && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

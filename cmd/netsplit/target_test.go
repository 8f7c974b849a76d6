package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/deploy/targets"
	"netsplit/record/rundir"
	"netsplit/sut"
)

// cli runs the program with arguments.
func cli(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// own writes a target file with a catalogue of its own beside it, whose one
// jar a fake mvn brings.
func own(t *testing.T, extra string) (file string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		// mvn -B -U -f POM -Dmaven.repo.local=DIR validate
		"bin/mvn":         "#!/bin/sh\nout=$(sed -n 's|.*<outputDirectory>\\(.*\\)</outputDirectory>.*|\\1|p' \"$4\" | head -1)\nprintf 'PK\\005\\006%b' '\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0' > \"$out/server-1.jar\"\n",
		"mine.yaml":       "product: mine\nreleases: {'1.0': {maven: ['a:server:1']}, '2.0': {maven: ['a:server:2']}}\n",
		"mine-1.0.sha256": "8739c76e681f900923b900c9df0ef75cf421d39cabb54650c4b9ad19b6a76d85  server-1.jar\n",
		"mine-2.0.sha256": "0000000000000000000000000000000000000000000000000000000000000000  server-1.jar\n",
		sut.FileName: "name: mine\nnodes: [n1]\nclients: [c1]\nsoftware: {product: mine, default: '1.0', versions: ['1.0', '2.0'], catalog: mine.yaml}\n" + extra +
			"processes: [{name: s, hosts: [n1], command: [sleep, '9']}]\nstable: [{name: up, hosts: [n1], probe: {command: [echo, up]}, match: up}]\nvariables: []\n" +
			"workloads: [{name: w, host: c1, command: ['true']}]\nchecks: []\ntiming: {settle: 1s, workload: 1s, max_cut: 1s, recover: 1s}\n",
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("NETSPLIT_CACHE", filepath.Join(dir, "cache"))
	return filepath.Join(dir, sut.FileName)
}

func TestTargetListSaysWhatThereIs(t *testing.T) {
	t.Setenv("NETSPLIT_CACHE", t.TempDir())
	code, out, errs := cli(t, "target", "list")
	if code != exitPass || !strings.HasPrefix(out, "TARGET ") || !strings.Contains(out, "redis-sentinel  ") || strings.Contains(out, "cannot be used") {
		t.Errorf("status %d, %s%s", code, out, errs)
	}
	if n, want := strings.Count(out, "\n"), 1+len(sut.Builtin(targets.FS)); n != want {
		t.Errorf("%d lines, want %d:\n%s", n, want, out)
	}
}

func TestTargetCheckMissesAScript(t *testing.T) {
	file := own(t, "final: [{name: r, host: c1, command: [python3, '{{.TargetDir}}/none.py']}]\n")
	code, _, errs := cli(t, "target", "check", file)
	if want := "target mine: workload r: there is no file " + filepath.Join(filepath.Dir(file), "none.py"); code != exitFailed || !strings.Contains(errs, want) {
		t.Errorf("status %d, %s, want %s", code, errs, want)
	}
}

func TestTargetGetThenCheck(t *testing.T) {
	file := own(t, "memory: 1\n")
	code, _, errs := cli(t, "target", "check", file)
	if code != exitFailed || !strings.Contains(errs, "mine 1.0 is not in the cache") || !strings.Contains(errs, "fetch it with: netsplit target get "+file+"@1.0\n") {
		t.Errorf("check before: status %d, %s", code, errs)
	}
	code, out, errs := cli(t, "target", "get", file)
	if code != exitPass || !strings.HasPrefix(out, "mine 1.0: verified: 1 files, 0.0 MB, in ") || !strings.Contains(errs, "mine 1.0: asking Maven") {
		t.Errorf("get: status %d, %s%s", code, out, errs)
	}
	code, out, errs = cli(t, "target", "check", file)
	for _, want := range []string{"mine 1.0 has no mistakes: 1 node, 1 client, 1 process, 0 variables, 0 checks\n", "software: 1 files, 0.0 MB, in ", "memory: 1 MB needed, ", "release 2.0 is not in the cache; fetch it with: netsplit target get " + file + "@2.0\n"} {
		if code != exitPass || !strings.Contains(out, want) {
			t.Errorf("check: status %d, %s%s, want %s", code, out, errs, want)
		}
	}
	code, out, errs = cli(t, "target", "get", file+"@2.0")
	if code != exitFailed || out != "" || !strings.Contains(errs, "get mine 2.0: the fetched files are not the expected ones: wrong hash: server-1.jar; nothing is kept") {
		t.Errorf("a wrong hash: status %d, %s%s", code, out, errs)
	}
	if code, _, _ = cli(t, "target", "get", "--all-versions", file); code != exitFailed {
		t.Errorf("all versions: status %d", code)
	}
	code, out, _ = cli(t, "target", "get", "--write-lock", file+"@2.0")
	if want := "8739c76e681f900923b900c9df0ef75cf421d39cabb54650c4b9ad19b6a76d85  server-1.jar\n"; code != exitPass || out != want {
		t.Errorf("write lock: status %d, %s, want %s", code, out, want)
	}
	if code, _, errs = cli(t, "target", "check", file+"@3.0"); code == exitPass || !strings.Contains(errs, `target mine has no release "3.0"`) {
		t.Errorf("status %d, %s", code, errs)
	}
}

func TestTargetCheckTakesSettingsForARunOnly(t *testing.T) {
	if code, _, errs := cli(t, "target", "check", "redis-sentinel", "--set", "rate=1"); code != exitUsage || !strings.Contains(errs, "--set needs --run") {
		t.Errorf("status %d, %s", code, errs)
	}
}

// All that a machine lacks is said at once.
func TestTargetCheckNamesAllThatIsMissing(t *testing.T) {
	file := own(t, "memory: 100000000\nneeds: {no-such-program: no-such-package}\n")
	code, _, errs := cli(t, "target", "check", file)
	for _, want := range []string{"apt-get install no-such-package", "mine 1.0 is not in the cache", "takes 100000000 MB of memory"} {
		if code != exitFailed || !strings.Contains(errs, want) {
			t.Errorf("status %d, %s, want %s", code, errs, want)
		}
	}
}

func TestTargetGetTakesProductsToo(t *testing.T) {
	t.Setenv("NETSPLIT_CACHE", t.TempDir())
	for args, want := range map[string]string{
		"hadoop":         "name a release, as hadoop@2.10.0: there are 2.10.0, 2.7.1, 3.2.0, 3.3.0, 3.4.1",
		"hadoop@9":       `hadoop has no release "9"`,
		"hadop@9":        `no target "hadop"`,
		"redis-sentinel": "nothing to fetch for target redis-sentinel",
	} {
		code, _, errs := cli(t, "target", "get", args)
		if code == exitPass || !strings.Contains(errs, want) {
			// Where the programs of a Debian target are missing, that is said.
			if args == "redis-sentinel" && strings.Contains(errs, "apt-get install") {
				continue
			}
			t.Errorf("get %s: status %d, %s, want %s", args, code, errs, want)
		}
	}
}

// TestTheCheckExaminesTheLastAttempt: a run that nobody could judge is made again,
// and that one has something to say.
func TestTheCheckExaminesTheLastAttempt(t *testing.T) {
	dir := t.TempDir()
	if _, err := lastRecord(dir); err == nil {
		t.Error("a record of no run")
	}
	for _, r := range []string{"c-1-r0002", "c-1-r0001"} {
		if err := os.MkdirAll(filepath.Join(dir, r), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, r, rundir.EvidenceFile), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "c-1-r0003"), 0o755); err != nil { // left no evidence
		t.Fatal(err)
	}
	if got, err := lastRecord(dir); err != nil || filepath.Base(got) != "c-1-r0002" {
		t.Errorf("%s, %v", got, err)
	}
}

package service

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"netsplit/e2e/harness"
	"netsplit/e2e/need"
)

// buildDeb builds the package and returns its path.
func buildDeb(t *testing.T) string {
	t.Helper()
	need.Program(t, "strip", "binutils")
	out := t.TempDir()
	build := exec.Command("../../scripts/deb.sh", filepath.Dir(harness.Bin("netsplit")), out)
	build.Env = append(os.Environ(), "LEVEL=0", "MAINTAINER=Somebody <somebody@debian.org>")
	b, err := build.Output()
	deb := strings.TrimSpace(string(b))
	if err != nil || filepath.Dir(deb) != out {
		t.Fatalf("%v, %q", err, b)
	}
	return deb
}

// TestTheDebianPackage: lintian finds nothing in it, and what is installed runs: the program with
// its helpers beside it, what the units start, the manual page.
func TestTheDebianPackage(t *testing.T) {
	lintian := need.Program(t, "lintian", "lintian")
	deb := buildDeb(t)
	if b, err := exec.Command(lintian, "--allow-root", "--fail-on", "error,warning", deb).CombinedOutput(); err != nil || len(b) > 0 {
		t.Errorf("lintian: %v: %s", err, b)
	}
	tree := filepath.Join(t.TempDir(), "installed")
	if b, err := exec.Command("dpkg-deb", "-x", deb, tree).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	version, err := exec.Command(filepath.Join(tree, "usr/bin/netsplit"), "--version").Output()
	if want := harness.Run(t, "--version").Stdout; err != nil || string(version) != want {
		t.Errorf("%v, version %q, want %q", err, version, want)
	}
	program, err := filepath.EvalSymlinks(filepath.Join(tree, "usr/bin/netsplit"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{filepath.Join(filepath.Dir(program), "redis-sentinel-client"), filepath.Join(tree, "usr/share/man/man1/netsplit.1.gz"),
		filepath.Join(tree, "usr/lib/sysusers.d/netsplit.conf"), filepath.Join(tree, "usr/lib/tmpfiles.d/netsplit.conf"), filepath.Join(tree, "etc/netsplit/netsplit.yaml")} {
		if _, err := os.Stat(f); err != nil {
			t.Error(err)
		}
	}
	for _, module := range []string{"Go: its runtime", "github.com/spf13/cobra@", "go.etcd.io/bbolt@", "github.com/!data"} {
		b := harness.Output(t, "zcat", filepath.Join(tree, "usr/share/doc/netsplit/modules.txt.gz"))
		if has := strings.Contains(b, module); has == strings.Contains(module, "!") {
			t.Errorf("the licences of modules have %s: %v", module, has)
		}
	}
	// The user of its own is made, with its home.
	for _, args := range [][]string{{"systemd-sysusers", "--root=" + tree, "netsplit.conf"}, {"systemd-tmpfiles", "--root=" + tree, "--create", "netsplit.conf"}} {
		if b, err := exec.Command(need.Program(t, args[0], "systemd"), args[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v: %s", args, err, b)
		}
	}
	if info, err := os.Stat(filepath.Join(tree, "var/lib/netsplit")); err != nil || info.Mode() != os.ModeDir|0o700 || info.Sys().(*syscall.Stat_t).Uid == 0 {
		t.Errorf("the home of its user: %v, %v", info, err)
	}
	units, err := filepath.Glob(filepath.Join(tree, "lib/systemd/system/*.service"))
	if err != nil || len(units) != 3 {
		t.Fatalf("units %v, %v", units, err)
	}
	for _, u := range units {
		b, err := os.ReadFile(u)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^(?:ExecStart=|Documentation=file:)(\S+)`).FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat(filepath.Join(tree, m[1])); err != nil {
				t.Errorf("%s: %v", filepath.Base(u), err)
			}
		}
	}
}

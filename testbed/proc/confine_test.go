package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// confined runs a script under an identity, as TestMain lets this program do.
func confined(t *testing.T, id Identity, script string, args ...string) string {
	t.Helper()
	argv := id.Argv("/proc/self/exe", append([]string{"sh", "-c", script, "sh"}, args...)...)
	b, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %v: %s", argv, err, b)
	}
	return string(b)
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("rights are given up by root: run this test as root")
	}
}

// TestAProcessHasTheRightsOfItsIdentityAndNoOthers: neither it nor what it starts.
func TestAProcessHasTheRightsOfItsIdentityAndNoOthers(t *testing.T) {
	needRoot(t)
	const status = `id -u; id -g; id -G; grep -E "^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs)" /proc/self/status | tr -d "\t"`
	const none, bind, kill = "0000000000000000", "0000000000000400", "0000000000000020"
	for _, c := range []struct {
		id        Identity
		ids, caps string
		amb       string
	}{
		{Identity{UID: 76653, GID: 76653}, "76653\n76653\n76653\n", none, none},
		{Identity{UID: 76653, GID: 76653, Capabilities: []string{"net_bind_service"}}, "76653\n76653\n76653\n", bind, bind},
		{Identity{Capabilities: []string{"kill"}}, "0\n0\n0\n", kill, none},
	} {
		want := c.ids + fmt.Sprintf("CapInh:%[1]s\nCapPrm:%[1]s\nCapEff:%[1]s\nCapBnd:%[1]s\nCapAmb:%[2]s\nNoNewPrivs:1\n", c.caps, c.amb)
		if got := confined(t, c.id, status); got != want {
			t.Errorf("%+v:\n%s\nwant\n%s", c.id, got, want)
		}
	}
	if got := confined(t, Identity{All: true}, "id -u; cat /etc/shadow >/dev/null && echo reads"); got != "0\nreads\n" {
		t.Errorf("root: %q", got)
	}
	argv := Identity{UID: 76653, GID: 76653}.Argv("/proc/self/exe", "cat", "/etc/shadow")
	if b, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err == nil || !strings.Contains(string(b), "Permission denied") {
		t.Errorf("it reads what is root's: %v, %s", err, b)
	}
}

// TestAProcessGetsNoFileThatWasOpen: what whoever started netsplit left open stays here.
func TestAProcessGetsNoFileThatWasOpen(t *testing.T) {
	secret, err := os.Open("/etc/shadow")
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	argv := Identity{All: true}.Argv("/proc/self/exe", "sh", "-c", "readlink /proc/self/fd/3 || echo none; head -c 0 && echo input")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.ExtraFiles = []*os.File{secret}
	if got, err := cmd.CombinedOutput(); err != nil || string(got) != "none\ninput\n" {
		t.Errorf("%s %v", got, err)
	}
}

// TestAProcessReachesWhatItIsShown in a folder that others cannot pass, from there,
// and nothing else of it.
func TestAProcessReachesWhatItIsShown(t *testing.T) {
	needRoot(t)
	shut := filepath.Join(t.TempDir(), "shut") // and so is the one above
	work, lib := filepath.Join(shut, "runs", "work"), filepath.Join(shut, "lib")
	passwd := filepath.Join(shut, "passwd")
	if err := errors.Join(os.MkdirAll(filepath.Join(work, "n1"), 0o755), os.MkdirAll(lib, 0o755), os.Chmod(shut, 0o700), os.Chown(filepath.Join(work, "n1"), 76653, 76653),
		os.WriteFile(filepath.Join(lib, "jar"), []byte("jar\n"), 0o644), os.WriteFile(filepath.Join(shut, "other"), nil, 0o644),
		os.WriteFile(passwd, []byte("me:x:76653:76653::/:/bin/sh\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	id := Identity{UID: 76653, GID: 76653, Show: []string{work, filepath.Join(work, "n1"), lib, "/none", "/usr/bin"}, Passwd: passwd}
	argv := id.Argv("/proc/self/exe", "sh", "-c", `echo data > f && cat "$0/jar" && ls "$1" && pwd -P && id -un && cd .. && ls; touch x 2>&1; touch "$1/x" 2>&1`, lib, shut)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = filepath.Join(work, "n1")
	b, _ := cmd.CombinedOutput()
	if want := "jar\nlib\nruns\n" + filepath.Join(work, "n1") + "\nme\nn1\n"; !strings.HasPrefix(string(b), want) || !strings.Contains(string(b), "Permission denied") || !strings.Contains(string(b), "Read-only") {
		t.Errorf("%s\nwant\n%s", b, want)
	}
	if b, err := os.ReadFile(filepath.Join(work, "n1", "f")); err != nil || string(b) != "data\n" {
		t.Errorf("what it wrote: %q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(shut, "other")); err != nil {
		t.Errorf("its view is everybody's: %v", err)
	}
}

package service

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"netsplit/e2e/harness"
	"netsplit/e2e/need"
)

// machine is a root of its own: this machine as it is, of which each change goes into memory,
// seen in the mount namespace of the test alone.
type machine struct {
	t           *testing.T
	root, upper string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	need.Root(t, "mount a root of its own")
	dir := t.TempDir()
	m := &machine{t, filepath.Join(dir, "root"), filepath.Join(dir, "upper")}
	m.mount("tmpfs", dir, "tmpfs", 0, "mode=755")
	for _, d := range []string{"root", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m.mount("overlay", m.root, "overlay", 0, "lowerdir=/,upperdir="+m.upper+",workdir="+filepath.Join(dir, "work"))
	m.mount("/dev", filepath.Join(m.root, "dev"), "", unix.MS_BIND, "")
	m.mount("proc", filepath.Join(m.root, "proc"), "proc", 0, "")
	if _, err := os.Stat(m.path("/var/lib/dpkg/status")); err != nil {
		t.Fatalf("needs /usr and /var on the file system of /: %v", err)
	}
	return m
}

func (m *machine) mount(source, target, kind string, flags uintptr, data string) {
	m.t.Helper()
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		m.t.Fatalf("mount %s at %s: %v", source, target, err)
	}
	m.t.Cleanup(func() {
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
			m.t.Errorf("unmount %s: %v", target, err)
		}
	})
}

func (m *machine) path(p string) string { return filepath.Join(m.root, p) }

// run runs a program in the root, which must exit with 0, and returns what it says.
func (m *machine) run(args ...string) string {
	m.t.Helper()
	c := exec.Command("chroot", append([]string{m.root}, args...)...)
	c.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C")
	out, err := c.CombinedOutput()
	if err != nil {
		m.t.Fatalf("%v: %v: %s", args, err, out)
	}
	return string(out)
}

// install installs a package with all of its files, also where this machine leaves out documents.
func (m *machine) install(deb string, options ...string) {
	m.t.Helper()
	b, err := os.ReadFile(deb)
	if err != nil {
		m.t.Fatal(err)
	}
	m.write("/tmp/"+filepath.Base(deb), string(b), 0o644)
	out := m.run(slices.Concat([]string{"dpkg", "--path-include=/*"}, options, []string{"-i", "/tmp/" + filepath.Base(deb)})...)
	for _, line := range strings.Split(out, "\n") {
		if regexp.MustCompile(`(?i)warn|error|fail|cannot`).MatchString(line) {
			m.t.Errorf("dpkg -i: %s", line)
		}
	}
	if s := m.run("dpkg-query", "-W", "-f", "${db:Status-Abbrev}", "netsplit"); s != "ii " {
		m.t.Errorf("its state is %q", s)
	}
}

func (m *machine) write(path, text string, mode fs.FileMode) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(path)), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.path(path), []byte(text), mode); err != nil {
		m.t.Fatal(err)
	}
}

// has fails unless the root has files, and each with the text that was written.
func (m *machine) has(when string, files map[string]string) {
	m.t.Helper()
	for path, text := range files {
		if b, err := os.ReadFile(m.path(path)); err != nil || string(b) != text {
			m.t.Errorf("%s: %s: %v, %q, want %q", when, path, err, b, text)
		}
	}
}

// left are the paths of netsplit that came into the root, but for those that dpkg itself keeps.
func (m *machine) left() []string {
	m.t.Helper()
	var out []string
	err := filepath.WalkDir(m.upper, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		p := strings.TrimPrefix(path, m.upper)
		if slices.Contains([]string{"/tmp", "/var/lib/dpkg", "/var/log"}, p) {
			return fs.SkipDir
		}
		if strings.Contains(p, "netsplit") && d.Type()&fs.ModeCharDevice == 0 { // a character device says that it is gone
			out = append(out, p)
		}
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// user is the line of /etc/passwd, and fails unless it has its home for itself.
func (m *machine) user() string {
	m.t.Helper()
	line := m.run("getent", "passwd", "netsplit")
	f := strings.Split(strings.TrimSpace(line), ":")
	if f[2] == "0" || f[5] != "/var/lib/netsplit" || !strings.HasSuffix(f[6], "nologin") {
		m.t.Errorf("its user: %s", line)
	}
	if s := m.run("stat", "-c", "%U %G %a %F", "/var/lib/netsplit"); s != "netsplit netsplit 700 directory\n" {
		m.t.Errorf("the home of its user: %s", s)
	}
	return line
}

// newer makes the package of a later version, whose default configuration ends with more text.
func newer(t *testing.T, deb, suffix, more string) string {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "tree")
	harness.Output(t, "dpkg-deb", "-R", deb, tree)
	for path, change := range map[string]func(string) string{
		"DEBIAN/control":             func(s string) string { return regexp.MustCompile(`(?m)^Version: .*$`).ReplaceAllString(s, "$0"+suffix) },
		"etc/netsplit/netsplit.yaml": func(s string) string { return s + more },
	} {
		b, err := os.ReadFile(filepath.Join(tree, path))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tree, path), []byte(change(string(b))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "newer"+suffix+".deb")
	harness.Output(t, "dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, out)
	return out
}

// TestTheDebianPackageOnAMachine installs, upgrades, removes and purges it with dpkg, in a root of
// its own. The first time there is no systemd; then there is one, whose systemctl notes what it is
// told.
func TestTheDebianPackageOnAMachine(t *testing.T) {
	need.Program(t, "dpkg", "dpkg")
	m := newMachine(t)
	deb := buildDeb(t)
	// The machine may have it. To list all manual pages anew, at each step, takes seconds.
	m.run("sh", "-c", "rm -f /var/lib/man-db/auto-update; dpkg --purge netsplit; ! getent passwd netsplit || userdel netsplit; rm -rf /var/lib/netsplit* /etc/netsplit /run/systemd/system /usr/sbin/policy-rc.d")
	told := func() string {
		b, err := os.ReadFile(m.path("/tmp/told"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		os.Remove(m.path("/tmp/told"))
		return string(b)
	}
	if err := os.Remove(m.path("/usr/bin/systemctl")); err != nil && !os.IsNotExist(err) { // perhaps a link
		t.Fatal(err)
	}
	m.write("/usr/bin/systemctl", "#!/bin/sh\necho \"$@\" >>/tmp/told\n", 0o755)
	before := m.left()

	m.install(deb)
	m.user()
	if got, want := m.run("netsplit", "--version"), harness.Run(t, "--version").Stdout; got != want {
		t.Errorf("version %q, want %q", got, want)
	}
	if s := m.run("dpkg", "--verify", "netsplit"); s != "" {
		t.Errorf("other files than the package's: %s", s)
	}
	m.run("dpkg", "--purge", "netsplit")
	if left := m.left(); !slices.Equal(left, before) {
		t.Errorf("a purge at once leaves %v", left)
	}
	if s := told(); s != "" {
		t.Errorf("without systemd, systemctl was told: %s", s)
	}

	if err := os.MkdirAll(m.path("/run/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	m.install(deb)
	if s := told(); s != "--system daemon-reload\n" {
		t.Errorf("at the install systemctl was told: %s", s)
	}
	user := m.user()
	config := map[string]string{"/etc/netsplit/netsplit.yaml": "testbed: /etc/netsplit/testbed.yaml\nopenflow: 192.0.2.254:6653\n"}
	theirs := map[string]string{"/etc/netsplit/testbed.yaml": "name: rack7\n", "/etc/netsplit/runner.join": "secret",
		"/var/lib/netsplit/.ssh/id_ed25519": "key", "/var/lib/netsplit/c1/run.json": "{}", "/var/lib/netsplit-labs/store.db": "store"}
	cache := map[string]string{"/var/cache/netsplit/redis.tar": "redis"}
	for _, files := range []map[string]string{config, theirs, cache} {
		for path, text := range files {
			m.write(path, text, 0o600)
		}
	}
	link := "/etc/systemd/system/multi-user.target.wants/netsplit.service"
	if err := os.MkdirAll(filepath.Dir(m.path(link)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/lib/systemd/system/netsplit.service", m.path(link)); err != nil {
		t.Fatal(err)
	}
	all := func(when string, files ...map[string]string) {
		t.Helper()
		for _, f := range files {
			m.has(when, f)
		}
	}

	m.install(newer(t, deb, "+1", "")) // asks nothing
	all("after an upgrade", config, theirs, cache)
	if again := m.user(); again != user {
		t.Errorf("its user was %s and is %s", user, again)
	}
	if s := told(); !strings.Contains(s, "try-restart netsplit.service netsplit-labs.service netsplit-runner.service\n") || strings.Contains(s, "enable") || strings.Contains(s, " start") {
		t.Errorf("at an upgrade systemctl was told: %s", s)
	}
	last := newer(t, deb, "+2", "# later\n")
	m.install(last, "--force-confold")
	all("after an upgrade with another configuration", config, theirs, cache)
	told()

	m.run("dpkg", "--remove", "netsplit")
	all("after a removal", config, theirs, cache)
	if s := told(); !strings.Contains(s, "stop netsplit.service netsplit-labs.service netsplit-runner.service\n") || !strings.HasSuffix(s, "daemon-reload\n") {
		t.Errorf("at a removal systemctl was told: %s", s)
	}
	for _, path := range []string{"/usr/bin/netsplit", "/usr/lib/netsplit", "/lib/systemd/system/netsplit.service", "/usr/lib/sysusers.d/netsplit.conf"} {
		if _, err := os.Lstat(m.path(path)); !os.IsNotExist(err) {
			t.Errorf("after a removal: %s: %v", path, err)
		}
	}
	m.install(last)
	all("after it was installed again", config, theirs, cache)
	if _, err := os.Lstat(m.path(link)); err != nil {
		t.Errorf("an enabled unit is enabled no more: %v", err)
	}

	said := m.run("dpkg", "--purge", "netsplit")
	all("after a purge", theirs)
	for _, dir := range []string{"/var/lib/netsplit\n", "/var/lib/netsplit-labs\n", "/etc/netsplit"} {
		if !strings.Contains(said, dir) {
			t.Errorf("a purge does not say that %s stays: %s", dir, said)
		}
	}
	want := append(before, "/etc/netsplit", "/var/lib/netsplit", "/var/lib/netsplit/.ssh", "/var/lib/netsplit/c1", "/var/lib/netsplit-labs")
	for path := range theirs {
		want = append(want, path)
	}
	left := m.left()
	slices.Sort(want)
	slices.Sort(left)
	if !slices.Equal(left, want) {
		t.Errorf("a purge leaves %v, want %v", left, want)
	}
	if info, err := os.Stat(m.path("/var/lib/netsplit")); err != nil || info.Sys().(*syscall.Stat_t).Uid == 0 {
		t.Errorf("the records are of another user: %v", err)
	}
}

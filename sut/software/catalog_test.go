package software

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"netsplit/model"
)

// Every release that is fetched has hashes, every list of hashes belongs to
// one, and nothing names a host: where to fetch from is the user's business.
func TestTheCatalogueIsWhole(t *testing.T) {
	locks := map[string]bool{}
	files, err := fs.ReadDir(catalogFS, "catalog")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := fs.ReadFile(catalogFS, path.Join("catalog", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b = regexp.MustCompile(`\bgo: \[[^\]]*\]`).ReplaceAll(b, nil) // the path of a module is its name
		if regexp.MustCompile(`https?:|\.(org|com)/`).Match(b) {
			t.Errorf("%s names a host", f.Name())
		}
		if n, ok := strings.CutSuffix(f.Name(), ".sha256"); ok {
			locks[n] = true
		}
	}
	n := 0
	for _, p := range Products() {
		for _, v := range Releases(p) {
			n++
			r, err := Load(p, v, "")
			if err != nil {
				t.Errorf("%s %s: %v", p, v, err)
				continue
			}
			if r.fetches() != (r.lock != nil) {
				t.Errorf("%s: it is fetched: %v, it has hashes: %v", r, r.fetches(), r.lock != nil)
			}
			delete(locks, r.name())
		}
	}
	if n < 16 {
		t.Errorf("%d releases, want 16 and more", n)
	}
	for l := range locks {
		t.Errorf("hashes of %s, which no catalogue has", l)
	}
}

func TestLoadSaysWhatThereIs(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.yaml")
	write(t, own, "product: mine\nreleases: {1.0: {maven: ['a:b:1']}}\n")
	for _, c := range []struct{ product, version, file, want string }{
		{"hadop", "1", "", `no product "hadop": netsplit has cassandra, hadoop, jdk, nats, zookeeper`},
		{"zookeeper", "3.8", "", `zookeeper has no release "3.8": catalogue catalog/zookeeper.yaml has 3.4.14, 3.6.3, 3.9.3, 3.9.5, debian`},
		{"mine", "2.0", own, `mine has no release "2.0": catalogue ` + own + ` has 1.0`},
		{"other", "1.0", own, `is of product "mine", not "other"`},
		{"mine", "1.0", own + "x", "check software.catalog of the target file"},
	} {
		if _, err := Load(c.product, c.version, c.file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Load(%s, %s, %s): %v, want %s", c.product, c.version, c.file, err, c.want)
		}
	}
	if r, err := Load("mine", "1.0", own); err != nil || r.lock != nil || r.lockFile != filepath.Join(filepath.Dir(own), "mine-1.0.sha256") {
		t.Errorf("own catalogue: %+v, %v", r, err)
	}
}

func TestABadCatalogueIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"product: x\nreleases: {1: {maven: [a:b]}}":                    `release 1: maven: "a:b": want group:artifact:version`,
		"product: x\nreleases: {1: {maven: ['a:b:1 -Dx']}}":            `want group:artifact:version`,
		"product: x\nreleases: {1: {maven: ['a:b:1</version>']}}":      `want group:artifact:version`,
		"product: x\nreleases: {1: {pip: ['--index-url=x']}}":          `want package==version`,
		"product: x\nreleases: {1: {go: ['a.org/b@latest']}}":          `release 1: go: "a.org/b@latest": want package@version`,
		"product: x\nreleases: {1: {go: ['-x/b@v1.0.0']}}":             `want package@version`,
		"product: x\nreleases: {1: {exclude: ['a']}}":                  `want group:artifact`,
		"product: x\nreleases: {../1: {maven: ['a:b:1']}}":             `release: "../1"`,
		"product: ../x\nreleases: {1: {maven: ['a:b:1']}}":             `product: "../x"`,
		"product: x\nreleases: {1: {maven: ['a:b:1'], java: new}}":     `a major version such as "17"`,
		"product: x\nreleases: {1: {pip: [a==1], java_home: ../../x}}": `a path inside the release's files`,
		"product: x\nreleases: {1: {link: [x.jar]}}":                   `an absolute path`,
		"product: x\nreleases: {1: {debian: {a: 'b; c'}}}":             `program: package`,
		"product: x\nreleases: {1: {}}":                                `release 1 is empty`,
		"product: x\n":                                                 `has no releases`,
		"product: x\nreleases: {1: {mavn: ['a:b:1']}}":                 `field mavn not found`,
		"": `EOF`,
	} {
		if _, err := parse("c.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestForTargetTakesTheReleaseThatWasChosen(t *testing.T) {
	if _, needed, err := ForTarget(&model.Target{Name: "plain"}, ""); needed || err != nil {
		t.Errorf("a target without software: %v, %v", needed, err)
	}
	tg := &model.Target{Name: "zk", Software: &model.Software{Product: "zookeeper", Default: "3.9.3"}}
	for chosen, want := range map[string]string{"": "zookeeper 3.9.3", "3.6.3": "zookeeper 3.6.3"} {
		tg.Release = chosen
		r, needed, err := ForTarget(tg, "")
		if err != nil || !needed || r.String() != want || !strings.HasPrefix(r.GetCommand(), "netsplit target get zk@3") {
			t.Errorf("release %q: %s, %v, %v", chosen, r, needed, err)
		}
	}
	tg.Release = "9"
	if _, _, err := ForTarget(tg, ""); err == nil || !strings.Contains(err.Error(), "software of target zk: zookeeper has no release") {
		t.Errorf("error %v", err)
	}
}

// The lists are what sha256sum reads and writes.
func TestLocksAreThoseOfSha256sum(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b.jar"), "b")
	write(t, filepath.Join(dir, "files", "a b.jar"), "a")
	write(t, filepath.Join(dir, stampName), "{}")
	have, err := hashTree(dir)
	if err != nil || len(have) != 2 || have[0].path != "b.jar" || have[1].path != "files/a b.jar" {
		t.Fatalf("%v, %v", have, err)
	}
	c := exec.Command("sha256sum", "-c", "-")
	c.Dir, c.Stdin = dir, strings.NewReader(string(formatLock(have)))
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("sha256sum -c: %v\n%s", err, out)
	}
	c = exec.Command("sha256sum", "b.jar", "files/a b.jar")
	c.Dir = dir
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	lock, err := parseLock(out)
	if err != nil || !compare(have, lock).ok() || digest(lock) != digest(have) {
		t.Errorf("%v, %v", lock, err)
	}
	lock[0].sum = strings.Repeat("0", 64)
	lock[1].path = "gone.jar"
	if got, want := compare(have, lock).String(), "wrong hash: b.jar; missing: gone.jar; not in the list: files/a b.jar"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, bad := range []string{"", "x\n", strings.Repeat("0", 64) + "  ../x\n", strings.Repeat("0", 64) + "  /x\n"} {
		if _, err := parseLock([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

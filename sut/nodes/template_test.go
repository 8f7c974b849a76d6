package nodes

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/sut"
	"netsplit/testbed"
)

// TestCopiesOfATemplateAreWholeAndChecked: what was kept comes back, links and
// folders on the way included, and a template that was changed is refused.
func TestCopiesOfATemplateAreWholeAndChecked(t *testing.T) {
	src, made := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"dfs/name/current/VERSION": "1", "conf/a.xml": "<a/>", "conf/b.txt": "b", "logs/x": "noise"} {
		path := filepath.Join(src, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("VERSION", filepath.Join(src, "dfs/name/current/link")); err != nil {
		t.Fatal(err)
	}
	keep := []string{"dfs/name", "conf/*.xml"}
	sum, err := copyKept(src, filepath.Join(made, "hosts", "n1"), keep)
	if err != nil {
		t.Fatal(err)
	}
	p := &Processes{c: Config{Dir: t.TempDir(), Kit: &Kit{Target: &model.Target{Nodes: []model.NodeID{"n1"}, Template: model.TemplateSetting{Keep: keep}}}},
		template: &template{dir: made, manifest: manifest{Hosts: map[model.NodeID]string{"n1": sum}}}}
	if copied, err := p.fromTemplate(); err != nil || !copied {
		t.Fatalf("copied %v, %v", copied, err)
	}
	b, err := os.ReadFile(filepath.Join(p.dirOf("n1"), "dfs/name/current/link"))
	if err != nil || string(b) != "1" {
		t.Errorf("through the link: %q, %v", b, err)
	}
	for _, gone := range []string{"conf/b.txt", "logs"} {
		if _, err := os.Stat(filepath.Join(p.dirOf("n1"), gone)); err == nil {
			t.Errorf("%s was copied", gone)
		}
	}
	if err := os.WriteFile(filepath.Join(made, "hosts/n1/conf/a.xml"), []byte("<b/>"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(made, manifestFile), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.c.Dir = t.TempDir()
	if _, err := p.fromTemplate(); err == nil {
		t.Error("a template that was changed was taken")
	}
	if p.template.load() == nil {
		t.Error("a template that was changed will be taken again")
	}
}

// TestACopyBelongsToWhomeverTheFilesBelongedTo: a server that gave up root writes to
// what a template kept of it, and may insist that nobody else reads there.
func TestACopyBelongsToWhomeverTheFilesBelongedTo(t *testing.T) {
	src, dst := t.TempDir(), filepath.Join(t.TempDir(), "n1")
	if err := os.MkdirAll(filepath.Join(src, "lib/data/in"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"lib/data/in/file": "1", "lib/data/shut": "2"} {
		if err := os.WriteFile(filepath.Join(src, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("file", filepath.Join(src, "lib/data/in/link")); err != nil {
		t.Fatal(err)
	}
	modes := map[string]os.FileMode{".": 0o750, "lib": 0o775, "lib/data": 0o700, "lib/data/in": 0o755, "lib/data/in/file": 0o664, "lib/data/in/link": 0, "lib/data/shut": 0o400}
	for name, mode := range modes {
		path := filepath.Join(src, name)
		if mode != 0 {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		if os.Getuid() == 0 {
			if err := os.Lchown(path, 1234, 5678); err != nil {
				t.Fatal(err)
			}
		}
	}
	sum, err := copyKept(src, dst, []string{"lib/data"})
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range modes {
		was, err := os.Lstat(filepath.Join(src, name))
		if err != nil {
			t.Fatal(err)
		}
		is, err := os.Lstat(filepath.Join(dst, name))
		if err != nil {
			t.Error(err)
			continue
		}
		a, b := was.Sys().(*syscall.Stat_t), is.Sys().(*syscall.Stat_t)
		if mode != 0 && is.Mode().Perm() != mode || a.Uid != b.Uid || a.Gid != b.Gid {
			t.Errorf("%s: %v %d:%d, want %v %d:%d", name, is.Mode(), b.Uid, b.Gid, was.Mode(), a.Uid, a.Gid)
		}
	}
	if err := os.Chmod(filepath.Join(dst, "lib/data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if other, err := copyKept(dst, t.TempDir(), []string{"lib/data"}); err != nil || other == sum {
		t.Errorf("a folder that was opened is not told: %v", err)
	}
}

// TestATemplateServesOnlyWhatItWasMadeWith: what it is made with, and when a
// cluster counts as settled, are part of its name.
func TestATemplateServesOnlyWhatItWasMadeWith(t *testing.T) {
	tg := func() *model.Target {
		return &model.Target{Name: "x", Nodes: []model.NodeID{"n1"}, Template: model.TemplateSetting{Keep: []string{"data"}},
			Processes: []model.Process{{Name: "p", Hosts: []model.NodeID{"n1"}, Command: []string{"{{if .Building}}a{{else}}b{{end}}"}}},
			Stable:    []model.Condition{{Name: "up", Hosts: []model.NodeID{"n1"}, Match: "up"}}}
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "start.sh")
	write := func(text string) {
		if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("exec server")
	version := "1.0"
	key := func(tg *model.Target) string {
		b := &testbed.Testbed{Testbed: model.Testbed{Hosts: []model.TestbedHost{{Name: "n1"}}}}
		k, err := New(Config{Kit: &Kit{Target: tg, expand: sut.ExpandInput{TargetDir: dir}}, Testbed: b}).templateKey(version)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := key(tg())
	version = "2.0"
	if key(tg()) == first {
		t.Error("another version, the same key")
	}
	version = "1.0"
	if first != key(tg()) {
		t.Error("one target, two keys")
	}
	for name, change := range map[string]func(*model.Target){
		"building":  func(x *model.Target) { x.Processes[0].Command[0] = "{{if .Building}}c{{else}}b{{end}}" },
		"serving":   func(x *model.Target) { x.Processes[0].Command[0] = "{{if .Building}}a{{else}}c{{end}}" },
		"stable":    func(x *model.Target) { x.Stable[0].Match = "all up" },
		"hostnames": func(x *model.Target) { x.Hostnames = true },
	} {
		x := tg()
		change(x)
		if key(x) == first {
			t.Errorf("%s: the same key", name)
		}
	}
	x := tg()
	x.Processes[0].Command = append(x.Processes[0].Command, "-e", "A={{.TargetDir}}/start.sh:{{.TargetDir}}/none")
	before := key(x)
	write("exec server -v")
	if key(x) == before {
		t.Error("another script, the same key")
	}
	if key(tg()) != first {
		t.Error("a script that is not used, another key")
	}
}

func TestOldTemplatesAndWhatKilledMakersLeftGo(t *testing.T) {
	cache := t.TempDir()
	add := func(name string, age time.Duration) string {
		dir := filepath.Join(cache, "template-"+name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, manifestFile), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	oldest := add("old", time.Hour)
	for i := range templatesKept {
		add(string(rune('a'+i)), time.Minute)
	}
	killed, busy := add("killed"+unmade, time.Minute), add("busy"+unmade, 2*time.Hour)
	lock, err := (&template{dir: filepath.Join(cache, "template-busy")}).lock()
	if err != nil || lock == nil {
		t.Fatal(lock, err)
	}
	defer lock.Close()
	New(Config{Kit: &Kit{cache: cache}}).forgetOld()
	for dir, want := range map[string]bool{oldest: false, killed: false, busy: true, filepath.Join(cache, "template-a"): true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", filepath.Base(dir), err == nil, want)
		}
	}
}

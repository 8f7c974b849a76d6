package nodes

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"netsplit/model"
	"netsplit/sut"
)

func TestScriptsAreWhatTheTargetFileNames(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"client.py": "a", "lib/one.py": "b", "lib/deep/two.py": "c", "notes.md": "d", "go here": "e"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"linked.py": "notes.md", "linked": "lib"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "lib", "pipe"), 0o600); err != nil { // who reads it waits for ever
		t.Fatal(err)
	}
	k := &Kit{expand: sut.ExpandInput{TargetDir: dir}, Target: &model.Target{
		Processes: []model.Process{{Command: []string{"sh", "-c", "cd {{ .TargetDir }}/lib; exec python3 {{.TargetDir}}/client.py --data '{{.TargetDir}}/{{.Host}}.txt'"}}},
		Final:     []model.Workload{{Command: []string{"{{.TargetDir}}/client.py", "{{.TargetDir}}/made-later", "{{.TargetDir}}/linked.py", "{{.TargetDir}}/linked"}}},
	}}
	before, err := k.Scripts()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(before)), []string{"client.py", "lib/deep/two.py", "lib/one.py", "linked.py", "linked/deep/two.py", "linked/one.py"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "client.py"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	after, err := k.Scripts()
	if err != nil || before["client.py"] == after["client.py"] || before["lib/one.py"] != after["lib/one.py"] {
		t.Errorf("before %v, after %v: %v", before, after, err)
	}
	if none, err := (&Kit{Target: &model.Target{}}).Scripts(); none != nil || err != nil {
		t.Errorf("without a folder: %v, %v", none, err)
	}
}

package software

import (
	"archive/zip"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/e2e/need"
)

// moduleZip publishes a version of a module in a proxy's folder (go help
// goproxy): files by name, with the module's go.mod among them.
func moduleZip(t *testing.T, proxy, module, version string, files map[string]string) {
	t.Helper()
	at := filepath.Join(proxy, module, "@v")
	write(t, filepath.Join(at, "list"), version+"\n")
	write(t, filepath.Join(at, version+".info"), `{"Version":"`+version+`"}`)
	write(t, filepath.Join(at, version+".mod"), files["go.mod"])
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		w, err := z.Create(path.Join(module+"@"+version, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(at, version+".zip"), b.String())
}

// goProxy sets up a cache, a proxy in a folder that has program
// example.test/server/v2 of one dependency, and a release "mine 1.0" of it
// without hashes.
func goProxy(t *testing.T) (dir, proxy string) {
	t.Helper()
	dir, proxy = t.TempDir(), t.TempDir()
	t.Setenv("NETSPLIT_CACHE", t.TempDir())
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOFLAGS", "-mod=vendor") // of the user's own work, not for this
	moduleZip(t, proxy, "example.test/word", "v1.0.0", map[string]string{
		"go.mod": "module example.test/word\n", "word.go": "package word\n\nconst Word = \"good\"\n"})
	moduleZip(t, proxy, "example.test/server/v2", "v2.1.0", map[string]string{
		"go.mod":  "module example.test/server/v2\n\ngo 1.21\n\nrequire example.test/word v1.0.0\n",
		"main.go": "package main\n\nimport \"example.test/word\"\n\nfunc main() { println(word.Word) }\n"})
	write(t, filepath.Join(dir, "mine.yaml"), "product: mine\nreleases: {'1.0': {go: [example.test/server/v2@v2.1.0]}}\n")
	return dir, proxy
}

// A program is built once. Its list of hashes has what it was built from and not
// the program, which another Go builds with other bytes.
func TestAGoProgramIsBuiltOnce(t *testing.T) {
	need.Program(t, "go", "golang")
	dir, proxy := goProxy(t)
	s, err := Get(context.Background(), load(t, dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(s.Lib, "server")
	out, err := exec.Command(program).CombinedOutput()
	if err != nil || string(out) != "good\n" {
		t.Errorf("it says %q, %v", out, err)
	}
	listed, err := os.ReadFile(filepath.Join(s.Lib, "server.modules"))
	lines := strings.Split(string(listed), "\n")
	if err != nil || len(lines) != 3 || !strings.HasPrefix(lines[0], "example.test/server/v2 v2.1.0 h1:") || !strings.HasPrefix(lines[1], "example.test/word v1.0.0 h1:") {
		t.Errorf("built from %q, %v", listed, err)
	}
	lock, err := os.ReadFile(filepath.Join(dir, "mine-1.0.sha256"))
	if err != nil || !strings.HasSuffix(string(lock), "  server.modules\n") || strings.Count(string(lock), "\n") != 1 {
		t.Errorf("hashes %q, %v", lock, err)
	}

	// From now on without a network.
	if err := os.RemoveAll(proxy); err != nil {
		t.Fatal(err)
	}
	r := load(t, dir)
	if found, err := Find(r); err != nil || !cmp.Equal(found, s) {
		t.Errorf("Find: %+v, %v, want %+v", found, err, s)
	}
	if again, err := Get(context.Background(), r, nil); err != nil || !cmp.Equal(again, s) {
		t.Errorf("Get: %+v, %v, want %+v", again, err, s)
	}

	// A program that changes behind our back is seen whatever shows it.
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(program, b, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(program, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := verify(r, s.Lib); err == nil || err.Error() != "wrong hash: server" {
		t.Errorf("a changed program: %v", err)
	}
}

// A module that is not the one that was listed is not taken, though nothing in
// the go command's configuration objects.
func TestAnotherModuleUnderTheSameVersionIsRefused(t *testing.T) {
	need.Program(t, "go", "golang")
	dir, proxy := goProxy(t)
	lock, err := Pin(context.Background(), load(t, dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "mine-1.0.sha256"), string(lock))
	moduleZip(t, proxy, "example.test/word", "v1.0.0", map[string]string{
		"go.mod": "module example.test/word\n", "word.go": "package word\n\nconst Word = \"evil\"\n"})
	r := load(t, dir)
	_, err = Get(context.Background(), r, nil)
	if err == nil || !strings.Contains(err.Error(), "the fetched files are not the expected ones: wrong hash: server.modules; nothing is kept") {
		t.Errorf("error %v", err)
	}
	none(t, os.Getenv("NETSPLIT_CACHE"), r)
}

// fakeGo prints $FAKE/says and fails, as go does.
const fakeGo = `#!/bin/sh
cat "$FAKE/says"
exit 1
`

func TestAFailureOfGoIsOneClearLine(t *testing.T) {
	const progress = "go: downloading example.test/server/v2 v2.1.0\n"
	for says, want := range map[string][2]string{
		"go: example.test/server/v2@v2.1.0 requires go >= 1.99 (running go 1.26.8; GOTOOLCHAIN=local)\n":                                    {"requires go >= 1.99", "install one and put it first in PATH"},
		"go: example.test/server/v2@v2.1.0: reading mirror/example.test/server/v2/@v/v2.1.0.info: 404 Not Found\n":                          {"404 Not Found", "the module proxy does not have it: check the version in the catalogue, and GOPROXY"},
		"go: example.test/server/v2@v2.1.0: reading mirror/example.test/server/v2/@v/v2.1.0.info: 410 Gone\n":                               {"410 Gone", "the module proxy does not have it"},
		progress + "go: example.test/server/v2@v2.1.0: dial tcp: lookup mirror: no such host\n":                                             {"no such host", "the repository cannot be reached"},
		progress + "go: example.test/server/v2@v2.1.0: verifying module: checksum mismatch\n\tdownloaded: h1:a=\n\tsum.golang.org: h1:b=\n": {"checksum mismatch", "not the one that the checksum database knows: check GOPROXY and GOSUMDB (go env)"},
		progress + "go: writing stat cache: write /x: no space left on device\n":                                                            {"no space left on device", "the disk of the cache is full"},
		progress + "# example.test/server/v2\nmain.go:3:1: syntax error\n":                                                                  {"# example.test/server/v2", "(exit status 1)"},
	} {
		dir, _ := goProxy(t)
		fake := t.TempDir()
		t.Setenv("FAKE", fake)
		t.Setenv("PATH", fake+":/usr/bin:/bin")
		pause(t)
		write(t, filepath.Join(fake, "go"), fakeGo)
		if err := os.Chmod(filepath.Join(fake, "go"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(fake, "says"), says)
		r := load(t, dir)
		_, err := Get(context.Background(), r, nil)
		if err == nil || !strings.Contains(err.Error(), "go: ") || !strings.Contains(err.Error(), want[0]) || !strings.Contains(err.Error(), want[1]) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %s, %s", err, want[0], want[1])
		}
		none(t, os.Getenv("NETSPLIT_CACHE"), r)
	}
}

func TestAMissingGoIsNamed(t *testing.T) {
	dir, _ := goProxy(t)
	t.Setenv("PATH", t.TempDir())
	r := load(t, dir)
	if _, err := Get(context.Background(), r, nil); err == nil || !strings.HasPrefix(err.Error(), "get mine 1.0: go is not installed: install a Go ") {
		t.Errorf("error %v", err)
	}
	none(t, os.Getenv("NETSPLIT_CACHE"), r)
}

func TestProgramIsNamedAsGoNamesIt(t *testing.T) {
	for spec, want := range map[string]string{
		"example.org/server@v1.0.0":           "server",
		"example.org/server/v2@v2.0.0":        "server",
		"example.org/server/v2/cmd/x@v2.0.0":  "x",
		"example.org/a/cmd/v2ray@v2.0.0-rc.1": "v2ray",
	} {
		if !goRE.MatchString(spec) || program(spec) != want {
			t.Errorf("%s: %v, %s, want %s", spec, goRE.MatchString(spec), program(spec), want)
		}
	}
}

package software

import (
	"archive/zip"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakePip is python3 -m pip: it copies $FAKE/w.whl where it is told, or prints
// $FAKE/says and fails.
const fakePip = `#!/bin/sh
while [ $# -gt 0 ]; do case $1 in -d) out=$2; shift;; esac; shift; done
echo run >> "$FAKE/runs"
[ -e "$FAKE/says" ] && { cat "$FAKE/says"; exit 1; }
cp "$FAKE/w.whl" "$out/w.whl"
`

// fakeJDK is a catalogue of one Java that comes as a wheel.
func fakeJDK(t *testing.T, entries map[string]string) (dir string) {
	t.Helper()
	_, _, dir = fake(t, "ok")
	write(t, filepath.Join(dir, "bin", "python3"), fakePip)
	if err := os.Chmod(filepath.Join(dir, "bin", "python3"), 0o755); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range entries {
		w, err := z.Create(name)
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
	write(t, filepath.Join(dir, "w.whl"), b.String())
	write(t, filepath.Join(dir, "mine.yaml"), "product: mine\nreleases: {'1.0': {pip: [w==1], executable: ['w/bin/*'], java_home: w}}\n")
	if err := os.Remove(filepath.Join(dir, "mine-1.0.sha256")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAJavaComesAsAWheel(t *testing.T) {
	dir := fakeJDK(t, map[string]string{"w/bin/java": "#!/bin/sh\necho version '\"1.0.3\"'\n", "w/lib/x": "x"})
	s, err := Get(context.Background(), load(t, dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.JavaHome != filepath.Join(s.Files, "w") || s.Java != filepath.Join(s.JavaHome, "bin", "java") || s.Count != 2 {
		t.Errorf("%+v", s)
	}
	lock, err := os.ReadFile(filepath.Join(dir, "mine-1.0.sha256"))
	if err != nil || !strings.Contains(string(lock), "  files/w/bin/java\n") {
		t.Errorf("%s, %v", lock, err)
	}
}

func TestAJavaForAnotherMachineIsNamed(t *testing.T) {
	dir := fakeJDK(t, map[string]string{"w/bin/java": "\x7fELF of another machine"})
	if _, err := Get(context.Background(), load(t, dir), nil); err == nil || !strings.Contains(err.Error(), "does not run: ") ||
		!strings.Contains(err.Error(), "it is made for another kind of machine; install a Java 1.0 and set JAVA_HOME to it") {
		t.Errorf("error %v", err)
	}
}

func TestABadWheelIsAnError(t *testing.T) {
	for name, want := range map[string]string{
		"../../../evil":     `entry "../../../evil" leads out of the directory`,
		"/tmp/evil":         `leads out of the directory`,
		"w/bin-is-not-here": `executable "w/bin/*" of the catalogue matches no file`,
	} {
		dir := fakeJDK(t, map[string]string{name: "x"})
		r := load(t, dir)
		if _, err := Get(context.Background(), r, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		none(t, os.Getenv("NETSPLIT_CACHE"), r)
	}
	dir := fakeJDK(t, map[string]string{"w/bin/java": "x"})
	write(t, filepath.Join(dir, "w.whl"), "PK\x03\x04half")
	r := load(t, dir)
	if _, err := Get(context.Background(), r, nil); err == nil || !strings.Contains(err.Error(), "unpack w.whl: zip: not a valid zip file: the download is damaged") {
		t.Errorf("half a wheel: %v", err)
	}
	none(t, os.Getenv("NETSPLIT_CACHE"), r)
}

func TestAFailureOfPipIsOneClearLine(t *testing.T) {
	notThere := "ERROR: Could not find a version that satisfies the requirement w==1 (from versions: none)\nERROR: No matching distribution found for w==1\n"
	for says, want := range map[string][2]string{
		notThere: {"pip: No matching distribution found for w==1", "the repository does not have it for this Python and machine"},
		"WARNING: Retrying after 'NewConnectionError(..): Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')': /w/\n" + notThere: {
			"Temporary failure in name resolution", "the repository cannot be reached: check the network, and the index and proxy of pip's configuration"},
		"/usr/bin/python3: No module named pip\n":                                                   {"No module named pip", "apt-get install python3-pip"},
		"ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n": {"No space left on device", "the disk of the cache is full"},
	} {
		dir := fakeJDK(t, map[string]string{"w/bin/java": "x"})
		write(t, filepath.Join(dir, "says"), says)
		_, err := Get(context.Background(), load(t, dir), nil)
		if err == nil || !strings.Contains(err.Error(), want[0]) || !strings.Contains(err.Error(), want[1]) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %s, %s", err, want[0], want[1])
		}
	}
}

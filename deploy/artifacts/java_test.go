package artifacts

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// javaAt makes a java that prints a version, in a home without a release file.
func javaAt(t *testing.T, version string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "bin", "java")
	write(t, p, "#!/bin/sh\necho 'openjdk version \""+version+"\" 2025-04-15' >&2\n")
	if err := os.Chmod(p, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFindJavaTakesTheMajorVersion(t *testing.T) {
	j8, j11, j17, j25 := javaAt(t, "1.8.0_392"), javaAt(t, "11.0.13"), javaAt(t, "17.0.21.1"), javaAt(t, "25")
	link := filepath.Join(t.TempDir(), "java")
	if err := os.Symlink(j17, link); err != nil {
		t.Fatal(err)
	}
	all := []string{j8, j25, link, j11}
	for major, want := range map[string]string{"8": j8, "11": j11, "17": j17, "25": j25} {
		java, home, err := findJava(major, all, readMajor)
		if err != nil || java != want || home != filepath.Dir(filepath.Dir(want)) {
			t.Errorf("Java %s: %s, %s, %v, want %s", major, java, home, err, want)
		}
	}
	broken := filepath.Join(t.TempDir(), "bin", "java")
	write(t, broken, "not a program")
	_, _, err := findJava("17", []string{"/nowhere/java", broken, j25, j8, j25}, readMajor)
	for _, want := range []string{"needs Java 17; this machine has /nowhere/java (does not exist), " + broken + " (does not run: ", j25 + " (Java 25), " + j8 + " (Java 8): install it (apt-get install openjdk-17-jdk-headless), or set JAVA_HOME to one"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, _, err := findJava("17", nil, readMajor); err == nil || !strings.Contains(err.Error(), "this machine has none") {
		t.Errorf("error %v", err)
	}
}

// The release file spares the start of a Java.
func TestReadMajorReadsTheReleaseFile(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, "release"), "IMPLEMENTOR=\"Debian\"\nJAVA_VERSION=\"17.0.15\"\nOS_NAME=\"Linux\"\n")
	if m, err := readMajor(home, "/nowhere"); err != nil || m != "17" {
		t.Errorf("%q, %v", m, err)
	}
}

// A release that needs a Java nobody has says so before anything is fetched.
func TestGetNamesTheJavaItLacks(t *testing.T) {
	_, cache, dir := fake(t, "ok")
	write(t, filepath.Join(dir, "mine.yaml"), "product: mine\nreleases: {'1.0': {maven: ['a:a:1'], java: '7'}}\n")
	r := load(t, dir)
	_, err := Get(context.Background(), r, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "mine 1.0: needs Java 7; this machine has ") || runs(t, dir) > 0 {
		t.Errorf("error %v; mvn ran %d times", err, runs(t, dir))
	}
	none(t, cache, r)
}

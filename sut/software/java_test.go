package software

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
		java, home, err := findJava(major, 0, all, readVersion)
		if err != nil || java != want || home != filepath.Dir(filepath.Dir(want)) {
			t.Errorf("Java %s: %s, %s, %v, want %s", major, java, home, err, want)
		}
	}
	broken := filepath.Join(t.TempDir(), "bin", "java")
	write(t, broken, "not a program")
	_, _, err := findJava("17", 0, []string{"/nowhere/java", broken, j25, j8, j25}, readVersion)
	for _, want := range []string{"needs Java 17; this machine has /nowhere/java (does not exist), " + broken + " (does not run: ", j25 + " (Java 25), " + j8 + " (Java 8): install it (apt-get install openjdk-17-jdk-headless), or set JAVA_HOME to one"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, _, err := findJava("17", 0, nil, readVersion); err == nil || !strings.Contains(err.Error(), "this machine has none") {
		t.Errorf("error %v", err)
	}
}

// TestFindJavaLeavesOutVersionsOfMoreParts than the release's programs read, and
// so leaves the pinned one to be taken.
func TestFindJavaLeavesOutVersionsOfMoreParts(t *testing.T) {
	long, short := javaAt(t, "11.0.20.1"), javaAt(t, "11.0.13")
	if java, _, err := findJava("11", 3, []string{long, short}, readVersion); err != nil || java != short {
		t.Errorf("%s, %v, want %s", java, err, short)
	}
	if java, _, err := findJava("11", 0, []string{long, short}, readVersion); err != nil || java != long {
		t.Errorf("%s, %v, want %s", java, err, long)
	}
	_, _, err := findJava("11", 3, []string{long}, readVersion)
	if want := "needs Java 11 with a version of at most 3 parts; this machine has " + long + " (Java 11.0.20.1, whose version has more than 3 parts): install it"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	r, err := Load("hadoop", "3.2.0", "")
	if err != nil || r.Java != "11" || r.JavaParts != 3 {
		t.Errorf("Hadoop 3.2.0: Java %q, %d parts, %v", r.Java, r.JavaParts, err)
	}
	if jdk, ok := pinned(r.Java); !ok {
		t.Errorf("no Java is pinned for it: %v", jdk)
	}
}

// The release file spares the start of a Java.
func TestReadVersionReadsTheReleaseFile(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, "release"), "IMPLEMENTOR=\"Debian\"\nJAVA_VERSION=\"17.0.15\"\nOS_NAME=\"Linux\"\n")
	if m, err := readVersion(home, "/nowhere"); err != nil || m != "17.0.15" {
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

// TestJavaPartsLeavesTheCacheAlone: what was fetched stays what the catalogue
// describes when somebody finds out which Java serves it.
func TestJavaPartsLeavesTheCacheAlone(t *testing.T) {
	recipe := func(more string) string {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "mine.yaml"), "product: mine\nreleases: {'1.0': {maven: ['a:a:1'], java: '11'"+more+"}}\n")
		return load(t, dir).recipe
	}
	if recipe("") != recipe(", java_parts: 3") {
		t.Error("java_parts makes it another set")
	}
	if recipe("") == recipe(", exclude: ['b:b']") {
		t.Error("other contents are the same set")
	}
}

package software

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeMaven is mvn for the paths that a real repository does not take on
// demand. It copies $FAKE/a-1.jar by way of the repository, as mvn does, and
// notes each run in $FAKE/runs.
const fakeMaven = `#!/bin/sh
while [ $# -gt 0 ]; do case $1 in -f) pom=$2; shift;; -Dmaven.repo.local=*) m2=${1#*=};; esac; shift; done
out=$(sed -n 's|.*<outputDirectory>\(.*\)</outputDirectory>.*|\1|p' "$pom" | head -1)
echo run >> "$FAKE/runs"
echo "[INFO] Downloaded from central: u (1.0 kB at 2 kB/s)"
case $MODE in
fail) cat "$FAKE/says"; exit 1;;
flaky) [ "$(wc -l < "$FAKE/runs")" -gt 2 ] || { cat "$FAKE/says"; exit 1; };;
slow) sleep 300 & echo $! > "$FAKE/child"; wait;;
esac
[ -e "$m2/a/a/1/a-1.jar" ] || { mkdir -p "$m2/a/a/1" && cp "$FAKE/a-1.jar" "$m2/a/a/1/"; }
sleep ${PAUSE:-0}
cp "$m2/a/a/1/a-1.jar" "$out/"
`

// fake sets up a cache, the fake mvn and a release "mine 1.0" of one jar with
// its lock. It returns the release, the cache and the fake's directory.
func fake(t *testing.T, mode string) (r Release, cache, dir string) {
	t.Helper()
	cache, dir = t.TempDir(), t.TempDir()
	bin := filepath.Join(dir, "bin")
	write(t, filepath.Join(bin, "mvn"), fakeMaven)
	if err := os.Chmod(filepath.Join(bin, "mvn"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("FAKE", dir)
	t.Setenv("MODE", mode)
	t.Setenv("NETSPLIT_CACHE", cache)
	pause(t, time.Millisecond, time.Millisecond)
	jar(t, filepath.Join(dir, "a-1.jar"), "good")
	write(t, filepath.Join(dir, "mine.yaml"), "product: mine\nreleases: {'1.0': {maven: ['a:a:1']}}\n")
	sum, err := hashFile(filepath.Join(dir, "a-1.jar"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "mine-1.0.sha256"), sum+"  a-1.jar\n")
	return load(t, dir), cache, dir
}

// pause sets how long a client waits before each of its tries again.
func pause(t *testing.T, d ...time.Duration) {
	before := pauses
	pauses = d
	t.Cleanup(func() { pauses = before })
}

func load(t *testing.T, dir string) Release {
	t.Helper()
	r, err := Load("mine", "1.0", filepath.Join(dir, "mine.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func jar(t *testing.T, file, text string) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("x")
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, b.String())
}

func runs(t *testing.T, dir string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "runs"))
	if err != nil {
		return 0
	}
	return bytes.Count(b, []byte("\n"))
}

// none wants nothing of the set in the cache, whole or in part.
func none(t *testing.T, cache string, r Release) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(cache, "lib", "*"))
	hidden, err2 := filepath.Glob(filepath.Join(cache, "lib", ".*"))
	if left = append(left, hidden...); err != nil || err2 != nil || len(left) > 0 {
		t.Errorf("left in the cache: %v, %v, %v", left, err, err2)
	}
	if _, err := Find(r); !errors.Is(err, ErrAbsent) {
		t.Errorf("Find: %v, want absent", err)
	}
}

func TestGetOnceThenFind(t *testing.T) {
	r, _, dir := fake(t, "ok")
	if _, err := Find(r); !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "fetch it with: netsplit target get mine@1.0") {
		t.Errorf("before: %v", err)
	}
	var said strings.Builder
	for i := range 3 {
		s, err := Get(context.Background(), r, &said)
		if err != nil || s.Count != 1 || s.Bytes == 0 {
			t.Fatalf("get %d: %+v, %v", i, s, err)
		}
		found, err := Find(r)
		if err != nil || found != s {
			t.Fatalf("find %d: %+v, %v, want %+v", i, found, err, s)
		}
	}
	if runs(t, dir) != 1 || strings.Count(said.String(), "asking Maven") != 1 {
		t.Errorf("mvn ran %d times, want once; it said\n%s", runs(t, dir), &said)
	}
}

// A file that changes behind our back is seen, by Find if its size or time
// shows it, by Get whatever it shows, and fetched again.
func TestAChangedSetIsFetchedAgain(t *testing.T) {
	r, _, dir := fake(t, "ok")
	get := func(want int) Set {
		t.Helper()
		s, err := Get(context.Background(), r, nil)
		if err != nil || runs(t, dir) != want {
			t.Fatalf("%v; mvn ran %d times, want %d", err, runs(t, dir), want)
		}
		return s
	}
	s := get(1)
	file := filepath.Join(s.Lib, "a-1.jar")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}

	write(t, file, string(good[:len(good)/2]))
	if _, err := Find(r); !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "a-1.jar was changed") {
		t.Errorf("half a jar: %v", err)
	}
	get(2)

	bad := bytes.Clone(good)
	bad[len(bad)/2] ^= 1
	write(t, file, string(bad))
	if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	get(3) // the same size and time

	write(t, filepath.Join(s.Lib, "b.jar"), "one more on the class path")
	if _, err := Find(r); !errors.Is(err, ErrAbsent) {
		t.Errorf("an extra jar: %v", err)
	}
	get(4)

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(r); !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "a-1.jar is missing") {
		t.Errorf("a jar less: %v", err)
	}
	get(5)

	// Other times alone, as in a cache that was copied, need no download.
	now := time.Now()
	if err := os.Chtimes(file, now, now); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(r); !errors.Is(err, ErrAbsent) {
		t.Errorf("another time: %v", err)
	}
	get(5)
	if _, err := Find(r); err != nil {
		t.Error(err)
	}
}

// Half a jar in Maven's repository would be copied for ever: it is dropped
// there and fetched once more.
func TestHalfAJarInTheRepositoryIsMended(t *testing.T) {
	r, cache, dir := fake(t, "ok")
	write(t, filepath.Join(cache, "m2", "a", "a", "1", "a-1.jar"), "PK\x03\x04half")
	var said strings.Builder
	if _, err := Get(context.Background(), r, &said); err != nil || runs(t, dir) != 2 {
		t.Fatalf("%v; mvn ran %d times, want 2", err, runs(t, dir))
	}
	if !strings.Contains(said.String(), "damaged files (wrong hash: a-1.jar): fetching them once more") {
		t.Errorf("it said\n%s", &said)
	}
}

func TestAWrongHashIsAnError(t *testing.T) {
	r, cache, dir := fake(t, "ok")
	jar(t, filepath.Join(dir, "a-1.jar"), "somebody else's")
	_, err := Get(context.Background(), r, nil)
	want := "get mine 1.0: the fetched files are not the expected ones: wrong hash: a-1.jar; nothing is kept"
	if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want %s", err, want)
	}
	if runs(t, dir) != 2 {
		t.Errorf("mvn ran %d times, want 2", runs(t, dir))
	}
	none(t, cache, r)
}

func TestANetworkThatFailsIsTriedAgain(t *testing.T) {
	const down = "[ERROR] Unknown host u: Temporary failure in name resolution\n"
	r, _, dir := fake(t, "flaky")
	write(t, filepath.Join(dir, "says"), down)
	var said bytes.Buffer
	if _, err := Get(context.Background(), r, &said); err != nil || runs(t, dir) != 3 {
		t.Errorf("the third try of mvn is answered: %v after %d", err, runs(t, dir))
	}
	if n := strings.Count(said.String(), "mine 1.0: mvn cannot reach the repository: trying again in 1ms"); n != 2 {
		t.Errorf("it told of %d tries, want 2:\n%s", n, &said)
	}

	for says, want := range map[string]int{down: 3, "[ERROR] Could not find artifact a:a:jar:1 in central\n": 1} {
		r, cache, dir := fake(t, "fail")
		write(t, filepath.Join(dir, "says"), says)
		if _, err := Get(context.Background(), r, nil); err == nil || runs(t, dir) != want {
			t.Errorf("%s: %v after %d tries, want an error after %d", says, err, runs(t, dir), want)
		}
		none(t, cache, r)
	}

	r, cache, dir := fake(t, "fail")
	write(t, filepath.Join(dir, "says"), down)
	pause(t, time.Hour)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	time.AfterFunc(200*time.Millisecond, cancel)
	if _, err := Get(ctx, r, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled in a pause: %v", err)
	}
	none(t, cache, r)
}

// What mvn 3.8.7 and pip 23.2.1 print, shortened.
func TestAFailureOfAClientIsOneClearLine(t *testing.T) {
	head := "[INFO] Scanning for projects...\n[ERROR] Failed to execute goal x: Could not resolve dependencies for project netsplit:mine:pom:1.0: "
	tail := strings.Repeat("[ERROR] [Help 1] see some page\n", 200)
	for _, c := range []struct{ says, line, advice string }{
		{head + "Failed to collect dependencies at a:a:jar:1: Could not transfer artifact a:a:pom:1 from/to central (u): Unknown host u: Temporary failure in name resolution -> [Help 1]\n" + tail,
			"Unknown host u: Temporary failure in name resolution", "the repository cannot be reached: check the network, and the mirrors and proxies of ~/.m2/settings.xml"},
		{head + "Could not find artifact a:a:jar:1 in central (u) -> [Help 1]\n" + tail, "Could not find artifact a:a:jar:1 in central", "the repository does not have it: check the coordinate in the catalogue"},
		{head + "Could not transfer artifact a:a:jar:1 from/to central (u): status code: 403, reason phrase: Forbidden (403) -> [Help 1]\n", "status code: 403", "the repository refuses access"},
		{head + "Failed to write file /c/a-1.jar: No space left on device -> [Help 1]\n", "No space left on device", "the disk of the cache is full"},
		{"The JAVA_HOME environment variable is not defined correctly,\nthis environment variable is needed to run this program.\n", "The JAVA_HOME environment variable is not defined correctly", "correct or unset it"},
		{"[ERROR] Something new -> [Help 1]\n" + tail, "Something new", "(exit status 1)"},
		{"", "it did not say why", "(exit status 1)"},
	} {
		r, cache, dir := fake(t, "fail")
		write(t, filepath.Join(dir, "says"), c.says)
		_, err := Get(context.Background(), r, nil)
		if err == nil || !strings.Contains(err.Error(), c.line) || !strings.Contains(err.Error(), c.advice) ||
			strings.Contains(err.Error(), "\n") || len(err.Error()) > 700 {
			t.Errorf("error %v, want %s and %s in one line", err, c.line, c.advice)
		}
		if err != nil {
			_, log, _ := strings.Cut(err.Error(), "its output is in ")
			if b, err := os.ReadFile(log); err != nil || !strings.HasSuffix(string(b), c.says) {
				t.Errorf("log %s: %v", log, err)
			}
		}
		none(t, cache, r)
	}
}

func TestACacheThatCannotBeWrittenIsNamed(t *testing.T) {
	r, _, dir := fake(t, "ok")
	for _, cache := range []string{"/proc/x", "/dev/null/x"} {
		t.Setenv("NETSPLIT_CACHE", cache)
		if _, err := Get(context.Background(), r, nil); err == nil || !strings.Contains(err.Error(), "the cache cannot be written (mkdir ") ||
			!strings.Contains(err.Error(), "set NETSPLIT_CACHE to a directory of yours") || runs(t, dir) > 0 {
			t.Errorf("%s: %v", cache, err)
		}
	}
}

func TestAMissingClientIsNamed(t *testing.T) {
	r, cache, _ := fake(t, "ok")
	t.Setenv("PATH", t.TempDir())
	if _, err := Get(context.Background(), r, nil); err == nil || err.Error() != "get mine 1.0: mvn is not installed: install it with: apt-get install maven" {
		t.Errorf("error %v", err)
	}
	none(t, cache, r)
}

func TestGetIsInterruptedWithAllItStarted(t *testing.T) {
	r, cache, dir := fake(t, "slow")
	ctx, cancel := context.WithCancel(context.Background())
	child := filepath.Join(dir, "child")
	go func() {
		defer cancel()
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if b, err := os.ReadFile(child); err == nil && bytes.HasSuffix(b, []byte("\n")) {
				return
			}
		}
	}()
	_, err := Get(ctx, r, nil)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "get mine 1.0: interrupted, nothing is kept") {
		t.Errorf("error %v", err)
	}
	none(t, cache, r)
	b, err := os.ReadFile(child)
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join("/proc", strings.TrimSpace(string(b)), "status")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		s, err := os.ReadFile(state)
		if err != nil || strings.Contains(string(s), "State:\tZ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the child of mvn lives on:\n%s", s)
		}
	}
}

// A process that was killed leaves a half set under another name; the next get
// removes it.
func TestWhatAKilledGetLeftIsRemoved(t *testing.T) {
	r, cache, _ := fake(t, "ok")
	write(t, filepath.Join(cache, "lib", ".new-"+r.dirName()+"-123", "a-1.jar"), "half")
	if _, err := Get(context.Background(), r, nil); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(cache, "lib", ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestTwoGetsAtOnceFetchOnce(t *testing.T) {
	r, _, dir := fake(t, "ok")
	t.Setenv("PAUSE", "0.3")
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() { _, errs[i] = Get(context.Background(), r, nil) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil || runs(t, dir) != 1 {
		t.Errorf("%v; mvn ran %d times, want once", err, runs(t, dir))
	}
}

// The first set of a catalogue without hashes writes them; what is no archive
// is not taken even then.
func TestACatalogueWithoutHashesGetsThem(t *testing.T) {
	_, cache, dir := fake(t, "ok")
	lock := filepath.Join(dir, "mine-1.0.sha256")
	want, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	r := load(t, dir)
	good, err := os.ReadFile(filepath.Join(dir, "a-1.jar"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a-1.jar"), string(good[:len(good)-9]))
	if _, err := Get(context.Background(), r, nil); err == nil || !strings.Contains(err.Error(), "the fetched file is not an archive: wrong hash: a-1.jar") {
		t.Errorf("half a jar: %v", err)
	}
	none(t, cache, r)
	if _, err := os.Stat(lock); err == nil {
		t.Error("hashes of half a jar were written")
	}
	write(t, filepath.Join(dir, "a-1.jar"), string(good))
	if err := os.RemoveAll(filepath.Join(cache, "m2")); err != nil {
		t.Fatal(err)
	}
	pinned, err := Pin(context.Background(), r, nil)
	if err != nil || !bytes.Equal(pinned, want) {
		t.Errorf("Pin: %q, %v, want %q", pinned, err, want)
	}
	none(t, cache, r)
	if _, err := Get(context.Background(), r, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(lock); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if _, err := Find(load(t, dir)); err != nil {
		t.Errorf("with the hashes that were written: %v", err)
	}
	// Another recipe is another set.
	write(t, filepath.Join(dir, "mine.yaml"), "product: mine\nreleases: {'1.0': {maven: ['a:a:1', 'b:b:1']}}\n")
	if _, err := Find(load(t, dir)); !errors.Is(err, ErrAbsent) {
		t.Errorf("another recipe: %v", err)
	}
}

// A newer netsplit with another recipe or other hashes does not take the set of
// the older one, which has the same name.
func TestAnotherRecipeOrOtherHashesAreAnotherSet(t *testing.T) {
	r, _, _ := fake(t, "ok")
	s, err := Get(context.Background(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	st, err := readStamp(s.Lib)
	if err != nil || st.verify(r, s.Lib) != nil {
		t.Fatalf("%v, %v", err, st.verify(r, s.Lib))
	}
	other := r
	other.recipe = "another"
	if err := st.verify(other, s.Lib); err == nil || !strings.Contains(err.Error(), "describes another set now") {
		t.Errorf("another recipe: %v", err)
	}
	other = r
	other.lock = append(bytes.Clone(r.lock), strings.Repeat("0", 64)+"  b.jar\n"...)
	if err := st.verify(other, s.Lib); err == nil || !strings.Contains(err.Error(), "verified against other hashes") {
		t.Errorf("other hashes: %v", err)
	}
	if err := verify(other, s.Lib); err == nil || !strings.Contains(err.Error(), "missing: b.jar") {
		t.Errorf("other hashes, all of them compared: %v", err)
	}
}

func TestDebianReleasesNameThePackage(t *testing.T) {
	t.Setenv("NETSPLIT_CACHE", t.TempDir())
	dir := t.TempDir()
	jar := filepath.Join(dir, "x.jar")
	text := fmt.Sprintf("product: mine\nreleases: {'1.0': {debian: {%s: libx-java}, link: [%s]}}\n", jar, jar)
	write(t, filepath.Join(dir, "mine.yaml"), text)
	r := load(t, dir)
	if _, err := Get(context.Background(), r, nil); err == nil || err.Error() != "mine 1.0 needs what is not installed: "+jar+"; install it with: apt-get install libx-java" {
		t.Errorf("error %v", err)
	}
	write(t, jar, "x")
	s, err := Get(context.Background(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(s.Lib, "x.jar")); err != nil || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
}

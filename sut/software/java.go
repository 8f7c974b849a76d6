package software

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// candidates lists the java programs of the machine: $JAVA_HOME's, the one in
// PATH, those of Debian's packages.
func candidates() []string {
	var out []string
	if h := os.Getenv("JAVA_HOME"); h != "" {
		out = append(out, filepath.Join(h, "bin", "java"))
	}
	if p, err := exec.LookPath("java"); err == nil {
		out = append(out, p)
	}
	more, _ := filepath.Glob("/usr/lib/jvm/*/bin/java")
	return append(out, more...)
}

// findJava returns the first of the programs that is of the major version, and
// whose version has at most so many parts (0: any), and its home. The error names
// those that there are and what to install.
func findJava(major string, parts int, programs []string, read func(home, program string) (string, error)) (java, home string, err error) {
	var seen, have []string
	for _, p := range programs {
		real, err := filepath.EvalSymlinks(p)
		if err != nil {
			have = append(have, p+" (does not exist)")
			continue
		}
		if slices.Contains(seen, real) {
			continue
		}
		seen = append(seen, real)
		home := filepath.Dir(filepath.Dir(real))
		switch v, err := read(home, real); {
		case err != nil:
			have = append(have, fmt.Sprintf("%s (%v)", p, err))
		case majorOf(v) != major:
			have = append(have, p+" (Java "+majorOf(v)+")")
		case parts > 0 && strings.Count(v, ".") >= parts:
			have = append(have, fmt.Sprintf("%s (Java %s, whose version has more than %d parts)", p, v, parts))
		default:
			return real, home, nil
		}
	}
	if len(have) == 0 {
		have = []string{"none"}
	}
	what := "Java " + major
	if parts > 0 {
		what += fmt.Sprintf(" with a version of at most %d parts", parts)
	}
	return "", "", fmt.Errorf("needs %s; this machine has %s: install it (apt-get install openjdk-%s-jdk-headless), or set JAVA_HOME to one",
		what, strings.Join(have, ", "), major)
}

var (
	releaseVersion = regexp.MustCompile(`(?m)^JAVA_VERSION="?([0-9][0-9._]*)`)
	printedVersion = regexp.MustCompile(`version "([0-9][0-9._]*)`)
)

// readVersion reads the version in the file "release" of a Java's home, and
// asks the program where there is none.
func readVersion(home, program string) (string, error) {
	if b, err := os.ReadFile(filepath.Join(home, "release")); err == nil {
		if m := releaseVersion.FindSubmatch(b); m != nil {
			return string(m[1]), nil
		}
	}
	return runVersion(context.Background(), program)
}

func runVersion(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, program, "-XX:TieredStopAtLevel=1", "-version")
	c.WaitDelay = time.Second
	b, err := c.CombinedOutput()
	if m := printedVersion.FindSubmatch(b); m != nil && err == nil {
		return string(m[1]), nil
	}
	if err == nil {
		err = errors.New("prints no version")
	}
	return "", fmt.Errorf("does not run: %w", err)
}

// majorOf is 17 of 17.0.15, and 8 of 1.8.0_392.
func majorOf(version string) string {
	parts := strings.FieldsFunc(version, func(r rune) bool { return r == '.' || r == '_' })
	if len(parts) > 1 && parts[0] == "1" {
		return parts[1]
	}
	return parts[0]
}

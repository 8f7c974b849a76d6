package software

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// clientError is a client that ran and failed.
type clientError struct {
	name   string // mvn, pip, go
	output string
	log    string // file with the output
	err    error
}

func (e *clientError) Error() string {
	return fmt.Sprintf("%s failed: %v; its output is in %s", e.name, e.err, e.log)
}
func (e *clientError) Unwrap() error { return e.err }

// runClient runs a client to its end, in a process group that ends with ctx.
// line gets each line that it prints; env is added to its environment. The output
// is kept in log/ of the cache.
func runClient(ctx context.Context, root, name, set, install string, args []string, line func(string), env ...string) (string, error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return "", fmt.Errorf("%s is not installed: install it with: apt-get install %s", args[0], install)
	}
	log := filepath.Join(root, "log", set+"-"+name+".log")
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return "", err
	}
	c := exec.CommandContext(ctx, path, args[1:]...)
	c.Env = append(os.Environ(), env...)
	// It dies with us even if we are killed; the kernel asks whether the thread
	// that started it is there.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out := &lines{line: line}
	c.Stdout, c.Stderr = out, out
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = 3 * time.Second
	err = c.Run()
	if c.Process != nil {
		// Whatever the client left behind in its group would go on writing.
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	text := out.all.String()
	if werr := os.WriteFile(log, out.all.Bytes(), 0o644); werr != nil && err == nil {
		return "", werr
	}
	if err != nil {
		return text, &clientError{name, text, log, err}
	}
	return text, nil
}

// lines collects output and hands it on line by line.
type lines struct {
	all  bytes.Buffer
	part []byte
	line func(string)
}

// Write takes any piece of output.
func (l *lines) Write(b []byte) (int, error) {
	l.all.Write(b)
	l.part = append(l.part, b...)
	for {
		i := bytes.IndexByte(l.part, '\n')
		if i < 0 {
			return len(b), nil
		}
		l.line(strings.TrimRight(string(l.part[:i]), "\r"))
		l.part = l.part[i+1:]
	}
}

// cause is one way a client says why it failed, and what to do about it.
type cause struct {
	sign   string // in lower case, in the output
	advice string // %s: the line that says it; %m: where mirrors are set
}

// causes are looked for in this order.
var causes = []cause{
	{"no space left on device", "the disk of the cache is full: free some space there, or set NETSPLIT_CACHE to another disk"},
	{"disk quota exceeded", "the disk quota of the cache is used up: free some space there, or set NETSPLIT_CACHE to another disk"},
	{"java_home environment variable is not defined correctly", "JAVA_HOME does not name a Java: correct or unset it (mvn needs one to run)"},
	{"no module named pip", "Python has no pip: apt-get install python3-pip"},
	{"requires go >= ", newerGo}, {"module requires go ", newerGo},
	{"checksum mismatch", "the module is not the one that the checksum database knows: check %m"},
	{"contains one or more replace directives", "go install takes no module that replaces others: take a release that does not"},
	{"permission denied", "the cache cannot be written: set NETSPLIT_CACHE to a directory of yours"},
	{"read-only file system", "the cache cannot be written: set NETSPLIT_CACHE to a directory of yours"},
	{"unknown host", netAdvice},
	{"no such host", netAdvice},
	{"i/o timeout", netAdvice},
	{"name resolution", netAdvice},
	{"name or service not known", netAdvice},
	{"network is unreachable", netAdvice},
	{"connection refused", netAdvice},
	{"no route to host", netAdvice},
	{"timed out", netAdvice},
	{"connection reset", netAdvice},
	{"failed to establish a new connection", netAdvice},
	{"premature end of", "a download broke off: run the command again"},
	{"pkix path building failed", "the repository's certificate is not trusted by mvn's Java: import it there, or use another mirror (%m)"},
	{"certificate verify failed", "the repository's certificate is not trusted: see pip's --cert, or use another mirror (%m)"},
	{"status code: 401", denied}, {"status: 401", denied}, {"status code: 403", denied}, {"status: 403", denied}, {"407 proxy", denied}, {"status code: 407", denied}, {"status: 407", denied},
	{"could not find artifact", "the repository does not have it: check the coordinate in the catalogue, and %m"},
	{"404 not found", noModule}, {"410 gone", noModule}, {"unknown revision", noModule}, {"403 forbidden", denied},
	{"does not contain package", "the module has no such package: check the catalogue"},
	{"no matching distribution found", "the repository does not have it for this Python and machine: check the catalogue, and %m"},
	{"could not transfer artifact", netAdvice},
}

const (
	netAdvice = "the repository cannot be reached: check the network, and %m"
	denied    = "the repository refuses access: check %m"
	noModule  = "the module proxy does not have it: check the version in the catalogue, and %m"
	newerGo   = "the release needs a newer Go: install one and put it first in PATH"
)

// condense makes one line of a client's failure: what it says itself, shortened,
// and what to do. mirrors says where the client's mirrors and proxies are set.
func condense(err error, prefix, mirrors string) error {
	var e *clientError
	if !errors.As(err, &e) {
		return err
	}
	var said []string
	for _, l := range strings.Split(e.output, "\n") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(l), prefix); ok && strings.TrimSpace(rest) != "" {
			said = append(said, strings.TrimSpace(rest))
		}
	}
	if len(said) == 0 { // it died before it could say so in its own way
		for _, l := range strings.Split(strings.TrimSpace(e.output), "\n") {
			if s := strings.TrimSpace(l); s != "" && !strings.HasPrefix(s, "[INFO]") {
				said = append(said, s)
			}
		}
		said = said[max(0, len(said)-3):]
	}
	all := strings.ToLower(e.output)
	for _, c := range causes {
		if !strings.Contains(all, c.sign) {
			continue
		}
		line := ""
		for _, l := range append(said, strings.Split(e.output, "\n")...) {
			if strings.Contains(strings.ToLower(l), c.sign) {
				line = strings.TrimRight(around(l, c.sign), ",.:")
				break
			}
		}
		return fmt.Errorf("%s: %s: %s; its output is in %s", e.name, line, strings.ReplaceAll(c.advice, "%m", mirrors), e.log)
	}
	line := "it did not say why"
	if len(said) > 0 {
		line = around(said[0], "")
	}
	return fmt.Errorf("%s: %s (%v); its output is in %s", e.name, line, e.err, e.log)
}

// around is a line, or what of a long one is near a word.
func around(l, word string) string {
	const before, after = 60, 180
	l = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(l), "-> [Help 1]"))
	i := max(0, strings.Index(strings.ToLower(l), word))
	from, to := max(0, i-before), min(len(l), i+after)
	out := strings.ToValidUTF8(l[from:to], "")
	if from > 0 {
		out = "…" + out
	}
	if to < len(l) {
		out += "…"
	}
	return out
}

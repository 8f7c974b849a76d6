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

// passes tells whether the failure is one of the network, which may pass.
func (e *clientError) passes() bool {
	c := e.cause()
	return c != nil && c.advice == netAdvice
}

// cause is the first of causes that the output shows; nil if none.
func (e *clientError) cause() *cause {
	all := strings.ToLower(e.output)
	for i := range causes {
		if strings.Contains(all, causes[i].sign) {
			return &causes[i]
		}
	}
	return nil
}

// client is a program that fetches.
type client struct {
	name string // mvn, pip, go
	pkg  string // Debian package
	args []string
	env  []string     // added to the environment
	line func(string) // gets each line that it prints; nil: nobody
}

// pauses between the tries of a client that says that the network failed. An
// outage of a name server or a mirror is mostly over within a minute.
var pauses = []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second}

// fetch runs the client for a release to its end, again after a pause while the
// network fails. The output of the last try is kept in log/ of the cache.
func (c client) fetch(ctx context.Context, root string, r Release, p *printer) (string, error) {
	for i := 0; ; i++ {
		out, err := c.run(ctx, root, r.dirName())
		var failed *clientError
		if i == len(pauses) || !errors.As(err, &failed) || !failed.passes() {
			return out, err
		}
		p.printf("%s: %s cannot reach the repository: trying again in %s (its output is in %s)", r, c.name, pauses[i], failed.log)
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(pauses[i]):
		}
	}
}

// run runs the client once, in a process group that ends with ctx.
func (c client) run(ctx context.Context, root, set string) (string, error) {
	path, err := exec.LookPath(c.args[0])
	if err != nil {
		return "", fmt.Errorf("%s is not installed: install it with: apt-get install %s", c.args[0], c.pkg)
	}
	log := filepath.Join(root, "log", set+"-"+c.name+".log")
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, c.args[1:]...)
	cmd.Env = append(os.Environ(), c.env...)
	// It dies with us even if we are killed; the kernel asks whether the thread
	// that started it is there.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out := &lines{line: c.line}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 3 * time.Second
	err = cmd.Run()
	if cmd.Process != nil {
		// Whatever the client left behind in its group would go on writing.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	text := out.all.String()
	if werr := os.WriteFile(log, out.all.Bytes(), 0o644); werr != nil && err == nil {
		return "", werr
	}
	if err != nil {
		return text, &clientError{c.name, text, log, err}
	}
	return text, nil
}

// lines collects output and hands it on line by line.
type lines struct {
	all  bytes.Buffer
	part []byte
	line func(string) // nil: nobody
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
		if l.line != nil {
			l.line(strings.TrimRight(string(l.part[:i]), "\r"))
		}
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
	if c := e.cause(); c != nil {
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

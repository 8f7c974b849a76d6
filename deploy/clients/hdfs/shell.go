package main

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed Shell.java
var shellSource []byte

// packing compiles Shell.java for any Java from 11 on.
type packing struct{ out, lib string }

func (p packing) run(ctx context.Context) error {
	tmp, err := os.MkdirTemp("", "hdfs-shell-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	src := filepath.Join(tmp, "Shell.java")
	if err := os.WriteFile(src, shellSource, 0o644); err != nil {
		return err
	}
	classes := filepath.Join(tmp, "classes")
	for _, args := range [][]string{
		{"javac", "--release", "11", "-proc:none", "-cp", p.lib, "-d", classes, src},
		{"jar", "--create", "--file", p.out, "-C", classes, "."},
	} {
		if b, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s (it comes with openjdk-17-jdk-headless)", args[0], err, b)
		}
	}
	return nil
}

// shell is the JVM that runs users' commands.
type shell struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	ready chan struct{} // closed when it takes commands
	gone  chan struct{} // closed when it ended

	mu      sync.Mutex // guards what follows
	waiting map[string]chan answer
}

// answer is what a command said.
type answer struct {
	status   int
	out, err string
}

func startShell(c *cluster) (*shell, error) {
	cmd := exec.Command("sh", c.script, "shell", "Shell")
	cmd.Env = append(os.Environ(), "EXTRA="+c.jar)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the file system shell: %w", err)
	}
	s := &shell{cmd: cmd, in: in, ready: make(chan struct{}), gone: make(chan struct{}), waiting: map[string]chan answer{}}
	go s.read(out)
	return s, nil
}

func (s *shell) read(r io.Reader) {
	defer close(s.gone)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		w := strings.Split(lines.Text(), " ")
		if w[0] == "ready" {
			close(s.ready)
			continue
		}
		if len(w) != 4 {
			continue
		}
		a := answer{}
		a.status, _ = strconv.Atoi(w[1])
		out, _ := base64.StdEncoding.DecodeString(w[2])
		msg, _ := base64.StdEncoding.DecodeString(w[3])
		a.out, a.err = string(out), string(msg)
		s.mu.Lock()
		if ch := s.waiting[w[0]]; ch != nil {
			ch <- a
		}
		s.mu.Unlock()
	}
}

func (s *shell) stop() {
	s.in.Close()
	t := time.AfterFunc(2*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer t.Stop()
	<-s.gone
	_ = s.cmd.Wait()
}

var errTimeout = errors.New("timeout")

func isTimeout(err error) bool { return errors.Is(err, errTimeout) }

// run runs one command of the file system shell for a user: what it printed,
// or why it failed. It does not end with the run's time: an operation that was
// begun gets its answer or its timeout. A user whose command timed out goes on
// under another id, the old one still being busy.
func (s *shell) run(u *user, words ...string) (string, error) {
	ch := make(chan answer, 1)
	id := fmt.Sprintf("%d.%d", u.id, u.life)
	s.mu.Lock()
	s.waiting[id] = ch
	_, err := fmt.Fprintf(s.in, "%s %s\n", id, strings.Join(words, " "))
	s.mu.Unlock()
	if err != nil {
		return "", fmt.Errorf("client-died: %w", err)
	}
	t := time.NewTimer(u.patience)
	defer t.Stop()
	select {
	case a := <-ch:
		if a.status != 0 {
			return a.out, errors.New(reason(a))
		}
		return a.out, nil
	case <-s.gone:
		return "", errors.New("client-died: the JVM of the file system shell is gone")
	case <-t.C:
		u.life++
		return "", fmt.Errorf("%w after %v", errTimeout, u.patience)
	}
}

var (
	exception = regexp.MustCompile(`\b[A-Z][A-Za-z]*(?:Exception|Error)\b`)
	logLine   = regexp.MustCompile(`^\d{4}-\d\d-\d\d |^\s+at |^\s*$|^Caused by|^\s*\.\.\. `)
	verb      = regexp.MustCompile(`^(?:[a-z]+|[A-Z][a-z]+ failed): `)
	quoted    = regexp.MustCompile("`[^']*': ") // path that an error is about (PathIOException)
	notWord   = regexp.MustCompile(`[^A-Za-z]+`)
)

// reason is what the shell says of a failure, "cat: message", with a stable
// word in front: the exception that the message names, else its first words.
func reason(a answer) string {
	said := ""
	for line := range strings.Lines(a.err) {
		if logLine.MatchString(line) {
			continue
		}
		// The verb first, as in "cat: message"; else the first line there is.
		if verb.MatchString(line) {
			said = strings.TrimSpace(line)
			break
		}
		said = cmp.Or(said, strings.TrimSpace(line))
	}
	if said == "" {
		said = fmt.Sprintf("no-message: status %d", a.status)
	}
	word := exception.FindString(said)
	if word == "" {
		_, msg, _ := strings.Cut(quoted.ReplaceAllString(said, ""), ": ")
		w := strings.Fields(notWord.ReplaceAllString(msg, " "))
		word = strings.Join(w[:min(len(w), 4)], "-")
	}
	if len(said) > 400 {
		said = said[:400]
	}
	return word + ": " + said
}

package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxOutput is how much of each output Output keeps, in bytes.
const maxOutput = 1 << 20

// Output runs a command to its end and returns its standard output. After
// limit, or when ctx ends, the command and its children are killed. A status
// other than 0 is an error with what the command said on standard error; the
// output is returned all the same.
func Output(ctx context.Context, argv []string, limit time.Duration) (string, error) {
	return OutputFrom(ctx, nil, argv, limit)
}

// OutputFrom is Output for a command that reads its standard input from in; nil:
// it has none.
func OutputFrom(ctx context.Context, in *os.File, argv []string, limit time.Duration) (string, error) {
	return run(ctx, in, argv, limit, false)
}

// OutputLeaving is Output for a command that may start others in the background:
// they stay when it ends in time, whatever its status. What they print is read as
// long as they hold its output, and kept for a moment only.
func OutputLeaving(ctx context.Context, argv []string, limit time.Duration) (string, error) {
	return run(ctx, nil, argv, limit, true)
}

func run(ctx context.Context, in *os.File, argv []string, limit time.Duration, leave bool) (string, error) {
	if len(argv) == 0 {
		return "", errors.New("no command to run")
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = environment(nil)
	if in != nil {
		cmd.Stdin = in
	}
	var out, errs bounded
	ours, read, err := startRead(cmd, &out, &errs)
	if err != nil {
		return "", fmt.Errorf("cannot run %s: %w", argv[0], err)
	}
	pid := cmd.Process.Pid
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		}
	}()
	var gaveUp error
	select {
	case <-ended:
	case <-ctx.Done():
		gaveUp = ctx.Err()
	}
	var killed error
	if !leave || gaveUp != nil { // not collected yet, so the number is still its session's
		killed = killSession(pid)
	}
	err = cmd.Wait()
	select {
	case <-read:
	case <-time.After(drainLimit): // a child holds the output
		for _, f := range ours {
			if !leave { // it left the session
				_ = f.SetReadDeadline(time.Now())
			}
		}
	}
	name := strings.Join(argv, " ")
	switch {
	case killed != nil:
		return out.String(), fmt.Errorf("%s: %w", name, killed)
	case errors.Is(gaveUp, context.DeadlineExceeded):
		return out.String(), fmt.Errorf("%s: killed because it did not end within %v", name, limit)
	case gaveUp != nil:
		return out.String(), fmt.Errorf("%s: killed: %w", name, gaveUp)
	case err != nil:
		return out.String(), fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// bounded keeps the first maxOutput bytes.
type bounded struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := maxOutput - b.buf.Len(); room > 0 {
		b.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// String is what was written so far.
func (b *bounded) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// startRead starts a command and copies its standard output and standard error until
// nobody holds them any more, or our ends have a deadline; then read is closed.
func startRead(cmd *exec.Cmd, out, errs io.Writer) (ours []*os.File, read chan struct{}, err error) {
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	for range 2 {
		r, w, perr := os.Pipe()
		if err = errors.Join(err, perr); perr == nil {
			ours, theirs = append(ours, r), append(theirs, w)
		}
	}
	if err == nil {
		cmd.Stdout, cmd.Stderr = theirs[0], theirs[1]
		err = StartCommand(cmd)
	}
	if err != nil {
		for _, f := range ours {
			f.Close()
		}
		return nil, nil, err
	}
	read = make(chan struct{})
	var both sync.WaitGroup
	for i, to := range []io.Writer{out, errs} {
		both.Go(func() {
			defer ours[i].Close()
			_, _ = io.Copy(to, ours[i])
		})
	}
	go func() {
		both.Wait()
		close(read)
	}()
	return ours, read, nil
}

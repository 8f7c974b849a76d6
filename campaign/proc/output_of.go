package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
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
	if len(argv) == 0 {
		return "", errors.New("no command to run")
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = environment(nil)
	cmd.WaitDelay = drainLimit // for a child that left the session and holds the output
	if in != nil {
		cmd.Stdin = in
	}
	var out, errs bounded
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := StartCommand(cmd); err != nil {
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
	// Not collected yet, so the number is still its session's.
	killed := killSession(pid)
	err := cmd.Wait()
	name := strings.Join(argv, " ")
	switch {
	case killed != nil:
		return out.String(), fmt.Errorf("%s: %w", name, killed)
	case errors.Is(gaveUp, context.DeadlineExceeded):
		return out.String(), fmt.Errorf("%s: killed because it did not end within %v", name, limit)
	case gaveUp != nil:
		return out.String(), fmt.Errorf("%s: killed: %w", name, gaveUp)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return out.String(), fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// bounded keeps the first maxOutput bytes.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxOutput - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

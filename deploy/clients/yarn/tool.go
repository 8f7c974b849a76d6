package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Classes of the commands that "hadoop jar" and "yarn application" start.
const (
	sleepJob = "org.apache.hadoop.mapreduce.SleepJob"
	examples = "org.apache.hadoop.examples.ExampleDriver"
	appCLI   = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
)

// tool is a Hadoop command that runs.
type tool struct {
	done chan struct{} // closed when it has ended
	err  error         // set by then
	mu   sync.Mutex
	last []string // last lines it said, oldest first
}

// start runs a Hadoop command; each line it says goes to its log file and to
// heard. The command is killed when ctx ends.
func (c *client) start(ctx context.Context, name string, observed func(line string), class string, args ...string) *tool {
	t := &tool{done: make(chan struct{})}
	go func() {
		defer close(t.done)
		t.err = c.command(ctx, t, name, observed, class, args)
	}()
	return t
}

func (c *client) command(ctx context.Context, t *tool, name string, observed func(string), class string, args []string) error {
	if err := os.MkdirAll(filepath.Join(c.dir, "log"), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(c.dir, "log", name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, c.java, append([]string{"@" + filepath.Join(c.dir, "conf", "tool.opts"), class}, args...)...)
	cmd.Dir = c.dir
	cmd.WaitDelay = time.Second
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	var reader sync.WaitGroup
	reader.Go(func() {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			fmt.Fprintln(log, lines.Text())
			t.say(lines.Text())
			if observed != nil {
				observed(lines.Text())
			}
		}
		_, _ = io.Copy(log, r) // a line that is too long
	})
	err = cmd.Run()
	w.Close()
	reader.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (t *tool) say(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last = append(t.last, line); len(t.last) > 40 {
		t.last = t.last[1:]
	}
}

// why picks, of what the command said last, the line that tells most about a
// failure.
func (t *tool) why() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, mark := range []string{"failed with state", "Exception", "rror", "ailed"} {
		for i := len(t.last) - 1; i >= 0; i-- {
			if strings.Contains(t.last[i], mark) {
				return fmt.Sprintf("%.300s", strings.TrimSpace(t.last[i]))
			}
		}
	}
	if len(t.last) > 0 {
		return fmt.Sprintf("%.300s", t.last[len(t.last)-1])
	}
	return ""
}

// node asks the run to act on a server process: netsplit node VERB PROCESS HOST.
func (c *client) node(ctx context.Context, verb, process, host string) error {
	out, err := exec.CommandContext(ctx, c.netsplit, "node", verb, process, host).CombinedOutput()
	if err != nil {
		return fmt.Errorf("netsplit node %s %s %s: %w: %.200s", verb, process, host, err, out)
	}
	return nil
}

package nodes

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"netsplit/model"
)

// ControlEnv names the environment variable in which workloads find the socket
// that takes node actions.
const ControlEnv = "NETSPLIT_CONTROL"

// control takes node actions from workloads over a Unix socket: one line
// "verb process host", answered by one line, "ok" or what is wrong.
type control struct {
	p    *Processes
	dir  string
	held *os.File // dir, locked while its process lives
	l    net.Listener
	wg   sync.WaitGroup
}

func (p *Processes) listen() (*control, error) {
	removeDead(os.TempDir(), time.Minute)
	// Socket paths hold 107 bytes (unix(7)): too few for most run directories.
	dir, err := os.MkdirTemp("", controlPrefix)
	if err != nil {
		return nil, fmt.Errorf("folder of the control socket: %w", err)
	}
	c := &control{p: p, dir: dir}
	if c.held, err = lockDir(dir); err == nil {
		c.l, err = net.Listen("unix", c.path())
	}
	if err == nil { // workloads speak to it
		err = p.give(p.c.Kit.Target.Rights, dir, c.path())
	}
	if err != nil {
		if c.held != nil {
			c.held.Close()
		}
		os.RemoveAll(dir)
		return nil, fmt.Errorf("control socket: %w", err)
	}
	c.wg.Go(c.serve)
	return c, nil
}

// controlPrefix begins the names of the sockets' folders.
const controlPrefix = "netsplit-control-"

// removeDead removes the sockets of processes that were killed: nobody holds
// the lock of their folder. A process number would not do, since others have
// process namespaces of their own. Folders younger than grace may be about to
// be locked.
func removeDead(tmp string, grace time.Duration) {
	dirs, _ := filepath.Glob(filepath.Join(tmp, controlPrefix+"*"))
	for _, dir := range dirs {
		if time.Since(modified(dir)) < grace {
			continue
		}
		if held, err := lockDir(dir); err == nil {
			os.RemoveAll(dir)
			held.Close()
		}
	}
}

// lockDir locks a folder until the file is closed, or the process ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (c *control) path() string { return filepath.Join(c.dir, "control") }

func (c *control) close() {
	c.l.Close()
	c.wg.Wait()
	os.RemoveAll(c.dir)
	c.held.Close()
}

func (c *control) serve() {
	for {
		conn, err := c.l.Accept()
		if err != nil {
			return
		}
		c.wg.Go(func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(2*actionLimit + 10*time.Second)) // one may wait for another
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil {
				return
			}
			answer := "ok"
			if err := c.act(strings.Fields(line)); err != nil {
				answer = err.Error()
			}
			fmt.Fprintln(conn, strings.ReplaceAll(answer, "\n", " "))
		})
	}
}

func (c *control) act(words []string) error {
	if len(words) != 3 {
		return fmt.Errorf("want three words, such as: stop redis n1")
	}
	a := model.NodeAction{Verb: model.NodeVerb(words[0]), Process: words[1], Host: model.NodeID(words[2])}
	if err := c.p.Act(a); err != nil {
		return fmt.Errorf("%s %s on %s: %w", a.Verb, a.Process, a.Host, err)
	}
	return nil
}

// AskRun asks the run whose control socket is named for a node action.
func AskRun(socket string, a model.NodeAction) error {
	conn, err := net.DialTimeout("unix", socket, 5*time.Second)
	if err != nil {
		return fmt.Errorf("the run does not listen any more: %w", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2*actionLimit + 15*time.Second))
	if _, err := fmt.Fprintf(conn, "%s %s %s\n", a.Verb, a.Process, a.Host); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return fmt.Errorf("no answer from the run: %w", err)
	}
	if answer = strings.TrimSpace(answer); answer != "ok" {
		return fmt.Errorf("%s", answer)
	}
	return nil
}

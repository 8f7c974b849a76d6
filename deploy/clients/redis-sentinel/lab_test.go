package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"netsplit/e2e/need"
	"netsplit/internal/labtest"
	"netsplit/model"
	"netsplit/sut"
)

// TestMain has the labs in a sandbox: a test that is killed leaves nothing.
func TestMain(m *testing.M) { os.Exit(labtest.Some(m.Run, buildOnce)) }

// buildOnce builds the client where there is a network, so that its modules are there.
func buildOnce() error {
	dir, err := os.MkdirTemp("", "client-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return build(dir)
}

func build(dir string) error {
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "redis-sentinel-client"), ".").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build client: %w\n%s", err, out)
	}
	return nil
}

// lab runs the target in network namespaces on one Linux bridge: enough to
// see that the target file and the client are right, without a switch.
type lab struct {
	t      *testing.T
	base   *model.Target
	prefix string
	in     sut.ExpandInput
	dir    string
	start  time.Time

	mu    sync.Mutex
	procs map[*exec.Cmd]string
}

// labs counts the labs of this process: their namespaces have names of their
// own.
var labs atomic.Int32

func newLab(t *testing.T, args map[string]string) *lab {
	t.Helper()
	need.Root(t, "make network namespaces")
	base, _, err := sut.Load("redis-sentinel")
	if err != nil {
		t.Fatal(err)
	}
	if err := sut.CheckNeeds(base); err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, base: base, prefix: fmt.Sprintf("nsc%d-%d", os.Getpid(), labs.Add(1)), dir: t.TempDir(), start: time.Now(), procs: map[*exec.Cmd]string{}}
	bin := filepath.Join(l.dir, "bin")
	if err := build(bin); err != nil {
		t.Fatal(err)
	}
	l.in = sut.ExpandInput{Bin: bin, Hosts: map[model.NodeID]netip.Addr{}, Args: args, Seed: 7, RunStart: l.start}
	l.sh("ip", "netns", "add", l.ns("br"))
	t.Cleanup(l.down)
	l.sh("ip", "-n", l.ns("br"), "link", "add", "name", "br0", "type", "bridge")
	l.sh("ip", "-n", l.ns("br"), "link", "set", "dev", "br0", "up")
	for i, h := range l.hosts() {
		ip := netip.AddrFrom4([4]byte{10, 77, byte(labs.Load()), byte(i + 1)})
		l.in.Hosts[h] = ip
		l.sh("ip", "netns", "add", l.ns(string(h)))
		l.sh("ip", "link", "add", "eth0", "netns", l.ns(string(h)), "type", "veth", "peer", "name", string(h), "netns", l.ns("br"))
		l.sh("ip", "-n", l.ns(string(h)), "addr", "add", ip.String()+"/24", "dev", "eth0")
		l.sh("ip", "-n", l.ns(string(h)), "link", "set", "eth0", "up")
		l.sh("ip", "-n", l.ns(string(h)), "link", "set", "lo", "up")
		l.sh("ip", "-n", l.ns("br"), "link", "set", string(h), "master", "br0", "up")
	}
	return l
}

func (l *lab) hosts() []model.NodeID { return slices.Concat(l.base.Nodes, l.base.Clients) }

func (l *lab) ns(host string) string { return l.prefix + "-" + host }

func (l *lab) sh(args ...string) {
	l.t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		l.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// cut takes a host off the bridge; heal puts it back.
func (l *lab) cut(h model.NodeID) { l.sh("ip", "-n", l.ns("br"), "link", "set", string(h), "nomaster") }
func (l *lab) heal(h model.NodeID) {
	l.sh("ip", "-n", l.ns("br"), "link", "set", string(h), "master", "br0")
}

func (l *lab) now() time.Duration { return time.Since(l.start) }

func (l *lab) down() {
	l.mu.Lock()
	for c := range l.procs {
		_ = c.Process.Signal(syscall.SIGKILL)
	}
	l.mu.Unlock()
	for range 100 {
		l.mu.Lock()
		n := len(l.procs)
		l.mu.Unlock()
		if n == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, h := range append(l.hosts(), "br") {
		_ = exec.Command("ip", "netns", "del", l.ns(string(h))).Run()
	}
}

func (l *lab) expand(h model.NodeID) *model.Target {
	l.t.Helper()
	in := l.in
	in.Host, in.Dir = h, filepath.Join(l.dir, string(h))
	if err := os.MkdirAll(in.Dir, 0o755); err != nil {
		l.t.Fatal(err)
	}
	tg, err := sut.Expand(l.base, in)
	if err != nil {
		l.t.Fatal(err)
	}
	return tg
}

func (l *lab) command(h model.NodeID, argv []string, env map[string]string, out io.Writer) *exec.Cmd {
	l.t.Helper()
	c := exec.Command("ip", append([]string{"netns", "exec", l.ns(string(h))}, argv...)...)
	c.Dir = filepath.Join(l.dir, string(h))
	c.Env = os.Environ()
	for k, v := range env {
		c.Env = append(c.Env, k+"="+v)
	}
	c.Stdout, c.Stderr = out, os.Stderr
	return c
}

// startTarget starts all processes in order and waits until it is stable.
func (l *lab) startTarget() {
	l.t.Helper()
	for i, p := range l.base.Processes {
		for _, name := range p.After {
			l.wait(name)
		}
		for _, h := range p.Hosts {
			tg := l.expand(h)
			p := tg.Processes[slices.IndexFunc(tg.Processes, func(q model.Process) bool { return q.Name == l.base.Processes[i].Name })]
			for f, text := range p.Files {
				if err := os.WriteFile(filepath.Join(l.dir, string(h), f), []byte(text), 0o644); err != nil {
					l.t.Fatal(err)
				}
			}
			log, err := os.Create(filepath.Join(l.dir, string(h), p.Name+".log"))
			if err != nil {
				l.t.Fatal(err)
			}
			c := l.command(h, p.Command, p.Env, log)
			if err := c.Start(); err != nil {
				l.t.Fatal(err)
			}
			l.mu.Lock()
			l.procs[c] = p.Name
			l.mu.Unlock()
			go func() {
				_ = c.Wait()
				l.mu.Lock()
				delete(l.procs, c)
				l.mu.Unlock()
			}()
		}
	}
	l.wait("")
}

// wait waits until the named condition holds, or all of them.
func (l *lab) wait(name string) {
	l.t.Helper()
	deadline := time.Now().Add(l.base.Timing.Settle)
	for {
		pending := l.pending(name)
		if len(pending) == 0 {
			return
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("not stable after %s: %s", l.base.Timing.Settle, strings.Join(pending, "\n"))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (l *lab) pending(name string) []string {
	var out []string
	same := map[string]string{}
	for _, h := range l.base.Nodes {
		for _, c := range l.expand(h).Stable {
			if name != "" && c.Name != name {
				continue
			}
			text, err := l.probe(h, c.Probe)
			re := regexp.MustCompile(c.Match)
			m := re.FindStringSubmatch(text)
			if err != nil || m == nil {
				out = append(out, fmt.Sprintf("%s on %s: %q %v", c.Name, h, text, err))
				continue
			}
			if i := re.SubexpIndex("same"); i > 0 {
				if v, ok := same[c.Name]; ok && v != m[i] {
					out = append(out, c.Name+" differs between hosts")
				}
				same[c.Name] = m[i]
			}
		}
	}
	return out
}

// probe asks over TCP inside the host's namespace.
func (l *lab) probe(h model.NodeID, p model.Probe) (string, error) {
	type answer struct {
		text string
		err  error
	}
	ch := make(chan answer, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		ns, err := netns.GetFromName(l.ns(string(h)))
		if err == nil {
			err = netns.Set(ns)
			ns.Close()
		}
		if err != nil {
			ch <- answer{"", err}
			return
		}
		text, err := ask(p)
		ch <- answer{text, err}
	}()
	a := <-ch
	return a.text, a.err
}

func ask(p model.Probe) (string, error) {
	c, err := net.DialTimeout("tcp4", p.TCP, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := io.WriteString(c, p.Send); err != nil {
		return "", err
	}
	var until *regexp.Regexp
	if p.Until != "" {
		until = regexp.MustCompile(p.Until)
	}
	var text []byte
	buf := make([]byte, 64<<10)
	silence := time.Second
	for {
		_ = c.SetReadDeadline(time.Now().Add(silence))
		n, err := c.Read(buf)
		text = append(text, buf[:n]...)
		if err != nil || (until != nil && until.Match(text)) {
			if until != nil && !until.Match(text) {
				return string(text), fmt.Errorf("the answer does not end as until says: %w", err)
			}
			return string(text), nil
		}
		if until == nil {
			silence = 20 * time.Millisecond
		}
	}
}

// observe probes every probed variable of a host until the context ends.
func (l *lab) observe(ctx context.Context, add func(model.Observation)) {
	for _, h := range l.base.Nodes {
		tg := l.expand(h)
		for _, v := range tg.Variables {
			for _, s := range v.Sources {
				if s.Probe == nil {
					continue
				}
				re := regexp.MustCompile(s.Regexp)
				go func() {
					for ctx.Err() == nil {
						text, err := l.probe(h, *s.Probe)
						if m := re.FindStringSubmatch(text); err == nil && m != nil {
							val := m[0]
							if i := re.SubexpIndex("value"); i > 0 {
								val = m[i]
							}
							if s.Value == "$self" {
								val = string(h)
							}
							for n, ip := range l.in.Hosts {
								if v.As == "host" && ip.String() == val {
									val = string(n)
								}
							}
							add(model.Observation{At: l.now(), Var: model.VarRef{Name: v.Name, Node: h}, Kind: v.Kind, Value: val, Probe: v.Name})
						}
						time.Sleep(s.Every)
					}
				}()
			}
		}
	}
}

// workload runs one workload of the target to its end and returns its output.
func (l *lab) workload(name string) []byte {
	for _, h := range l.base.Clients {
		tg := l.expand(h)
		for _, w := range slices.Concat(tg.Workloads, tg.Final) {
			if w.Name != name {
				continue
			}
			var out bytes.Buffer
			c := l.command(h, w.Command, w.Env, &out)
			in, err := c.StdinPipe() // kept open: the workload ends by its time
			if err != nil {
				l.t.Error(err)
			}
			if err := c.Run(); err != nil {
				l.t.Errorf("workload %s: %v", name, err)
			}
			in.Close()
			return out.Bytes()
		}
	}
	l.t.Errorf("no workload %q", name)
	return nil
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"netsplit/model"
)

// adminID is the process of the administrator in the history.
const adminID = 100

// toolLog is what the tool that runs says on standard error, in the run's
// shared directory.
const toolLog = "admin.err"

// repairFor is how long beyond the workload the administrator keeps trying to
// bring back what a failover left down.
const repairFor = 20 * time.Second

// retryFor is how long beyond the workload a failover that failed is tried again; the
// last one takes up to 17 s, by its limits, of the target's 30 s (timing.hang).
const retryFor = 10 * time.Second

// goneFor and backFor bound the waits for a NameNode that misses a DataNode,
// which it does after 12 s here, and for one that lists it again.
const (
	goneFor = 20 * time.Second
	backFor = 10 * time.Second
)

// admin is the administrator: one command after the other, each of Hadoop's
// tools in a JVM of its own, as the command line starts them.
type admin struct {
	*cluster
	rng *rand.Rand
}

// tool runs a tool of Hadoop: what it printed, or why it failed.
func (a *admin) tool(ctx context.Context, class string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", append([]string{a.script, "admin", class}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	// What it says goes to a file, for its fencing method to read meanwhile.
	log, err := os.OpenFile(filepath.Join(a.work, toolLog), os.O_CREATE|os.O_TRUNC|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return "", err
	}
	defer log.Close()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, log
	err = cmd.Run()
	msg, rerr := os.ReadFile(log.Name())
	if rerr != nil {
		return "", rerr
	}
	os.Stderr.Write(msg)
	if ctx.Err() != nil {
		return "", fmt.Errorf("%w of %s", errTimeout, strings.Join(args, " "))
	}
	if err != nil {
		return "", errors.New(reason(answer{status: cmd.ProcessState.ExitCode(), err: string(msg)}))
	}
	return strings.TrimSpace(out.String()), nil
}

// node acts on a server process through the run that this is part of.
func (a *admin) node(ctx context.Context, verb, process string, host model.NodeID) error {
	f := strings.ReplaceAll(verb+"-"+process, " ", "-")
	return a.out.do(model.Operation{Process: adminID, F: f, Node: host}, func() (string, error) {
		b, err := exec.CommandContext(context.WithoutCancel(ctx), a.netsplit, "node", verb, process, string(host)).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("netsplit: %s", bytes.TrimSpace(b))
		}
		return "", nil
	})
}

// jmx asks a NameNode's web server for an attribute of one of its beans.
func (c *cluster) jmx(ctx context.Context, nn model.NodeID, attribute string, v any, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	url := fmt.Sprintf("http://%s:%d/jmx?get=Hadoop:service=NameNode,name=%s", nn, c.httpPort, attribute)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var list struct{ Beans []json.RawMessage }
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&list); err != nil {
		return fmt.Errorf("%s of %s: %w", attribute, nn, err)
	}
	if len(list.Beans) == 0 {
		return fmt.Errorf("%s of %s: it has none", attribute, nn)
	}
	return json.Unmarshal(list.Beans[0], v)
}

// state asks a NameNode's web server for its state: active, standby, observer.
func (c *cluster) state(ctx context.Context, nn model.NodeID, limit time.Duration) (string, error) {
	var v struct{ State string }
	if err := c.jmx(ctx, nn, "NameNodeStatus::State", &v, limit); err != nil {
		return "", err
	}
	if v.State == "" {
		return "", fmt.Errorf("state of %s: it names none", nn)
	}
	return v.State, nil
}

// failovers moves the service to the other NameNode, and later back. One that
// failed is tried again at once, also when the time is over, but not for ever: that
// is what it was asked for.
func (a *admin) failovers(ctx context.Context) {
	deadline := time.Now().Add(a.dur + repairFor)
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.dur+retryFor)
	defer cancel()
	from, again := a.nns[0], ctx
	rest := func() time.Duration { return 1500*time.Millisecond + time.Duration(a.rng.IntN(1000))*time.Millisecond }
	for pause := rest(); wait(again, pause); {
		to := a.other(from)
		needs := []model.Need{{Via: a.me, From: []model.NodeID{to}, Count: 1}, {Via: to, From: a.jns, Count: len(a.jns)/2 + 1}}
		a.active.Store(nil)
		op := model.Operation{Process: adminID, F: "failover", Key: string(from + "-" + to), Node: to, Needs: needs}
		err := a.out.do(op, func() (string, error) {
			return a.tool(ctx, "org.apache.hadoop.hdfs.tools.DFSHAAdmin", "-failover", nn(a.nns, from), nn(a.nns, to))
		})
		a.repair(ctx, deadline)
		now := from
		again, pause = longer, 500*time.Millisecond
		if err == nil {
			now, again, pause = to, ctx, rest()
		}
		if s := a.serving(ctx); s != "" {
			now = s
		}
		a.active.Store(&now)
		from = now
		if err == nil {
			wait(longer, 1500*time.Millisecond) // the users look at what became of it
		}
	}
}

// nn is the name of a NameNode in the configuration.
func nn(all []model.NodeID, host model.NodeID) string {
	return fmt.Sprintf("nn%d", slices.Index(all, host)+1)
}

func (a *admin) other(host model.NodeID) model.NodeID {
	return a.nns[1-slices.Index(a.nns, host)]
}

// serving is the NameNode that says it is active; "" if none does.
func (a *admin) serving(ctx context.Context) model.NodeID {
	for _, host := range a.nns {
		if s, err := a.state(context.WithoutCancel(ctx), host, time.Second); err == nil && s == "active" {
			return host
		}
	}
	return ""
}

// repair does what an administrator does after a failover: a NameNode that was
// fenced is started again, and if none is active, one is made so.
func (a *admin) repair(ctx context.Context, deadline time.Time) {
	fenced := a.fencedHosts()
	for _, host := range fenced {
		_ = a.node(ctx, "start", "namenode", host)
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	for ctx.Err() == nil {
		active, up := 0, 0
		for _, host := range a.nns {
			s, err := a.state(ctx, host, time.Second)
			if err == nil {
				up++
			}
			if s == "active" {
				active++
			}
		}
		switch {
		case up == len(a.nns) && active > 0:
			return
		case up == len(a.nns):
			host := a.nns[0]
			needs := append([]model.Need{{Via: a.me, From: a.nns, Count: len(a.nns)}}, model.Need{Via: host, From: a.jns, Count: len(a.jns)/2 + 1})
			_ = a.out.do(model.Operation{Process: adminID, F: "activate", Node: host, Needs: needs}, func() (string, error) {
				return a.tool(ctx, "org.apache.hadoop.hdfs.tools.DFSHAAdmin", "-transitionToActive", nn(a.nns, host))
			})
		case active > 0 && len(fenced) == 0:
			return // the other one is cut off: nothing to repair
		}
		wait(ctx, 300*time.Millisecond)
	}
}

// datanode stops a DataNode until the NameNode no longer lists it, and brings
// it back until the NameNode does: an outage that nobody noticed tests nothing.
func (a *admin) datanode(ctx context.Context) {
	host := a.dns[0]
	for wait(ctx, time.Second) {
		_ = a.node(ctx, "stop", "datanode", host)
		within(goneFor, func() bool { listed, err := a.lists(ctx, host); return err == nil && !listed })
		wait(ctx, time.Duration(a.rng.IntN(1000))*time.Millisecond)
		// Also when the time is over: what was stopped is started.
		_ = a.node(context.WithoutCancel(ctx), "start", "datanode", host)
		within(backFor, func() bool { return a.listed(ctx, host) })
	}
}

// shutdown adds a DataNode with an empty disk, waits until it is up and then
// until the NameNode lists it, but not for ever, and shuts it down by its
// administration command (the operation of HDFS-14372); and once more.
func (a *admin) shutdown(ctx context.Context) {
	// Both times, also on a busy machine.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.dur+repairFor)
	defer cancel()
	host := a.newcomer
	address := net.JoinHostPort(string(host), strconv.Itoa(a.ipcPort))
	for range 2 {
		if !wait(ctx, time.Second) {
			return
		}
		// Right after its end the run may still hold the one before.
		for end := time.Now().Add(5 * time.Second); a.node(ctx, "start", "newcomer", host) != nil; {
			if time.Now().After(end) || !wait(ctx, 500*time.Millisecond) {
				return
			}
		}
		within(20*time.Second, func() bool { return dial(address) == nil })
		within(4*time.Second, func() bool { return a.listed(ctx, host) })
		wait(ctx, time.Duration(a.rng.IntN(1000))*time.Millisecond)
		needs := []model.Need{{Via: a.me, From: []model.NodeID{host}, Count: 1}}
		_ = a.out.do(model.Operation{Process: adminID, F: "shutdown-datanode", Node: host, Needs: needs}, func() (string, error) {
			return a.tool(ctx, "org.apache.hadoop.hdfs.tools.DFSAdmin", "-shutdownDatanode", address)
		})
		within(5*time.Second, func() bool { return dial(address) != nil })
	}
}

// within asks until the answer is yes or the time is over.
func within(limit time.Duration, ask func() bool) {
	for end := time.Now().Add(limit); !ask() && time.Now().Before(end); {
		time.Sleep(200 * time.Millisecond)
	}
}

func dial(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err == nil {
		err = c.Close()
	}
	return err
}

// listed says whether the NameNode lists a DataNode as live and has heard from
// it in the last second: one that was shut down stays listed for a while.
func (c *cluster) listed(ctx context.Context, host model.NodeID) bool {
	contact, err := c.lastContact(ctx, host)
	return err == nil && contact >= 0 && contact < 2
}

// lists says whether the NameNode lists a DataNode as live, as long as it
// takes it for that.
func (c *cluster) lists(ctx context.Context, host model.NodeID) (bool, error) {
	contact, err := c.lastContact(ctx, host)
	return contact >= 0, err
}

// lastContact is how many seconds ago the NameNode has heard from a DataNode
// that it lists as live, -1 if it does not list it.
func (c *cluster) lastContact(ctx context.Context, host model.NodeID) (int, error) {
	var v struct{ LiveNodes string }
	if err := c.jmx(context.WithoutCancel(ctx), c.nns[0], "NameNodeInfo::LiveNodes", &v, time.Second); err != nil {
		return -1, err
	}
	var nodes map[string]struct{ LastContact int }
	if err := json.Unmarshal([]byte(v.LiveNodes), &nodes); err != nil {
		return -1, err
	}
	for name, n := range nodes {
		if h, _, _ := strings.Cut(name, ":"); h == string(host) {
			return n.LastContact, nil
		}
	}
	return -1, nil
}

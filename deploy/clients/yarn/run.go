package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"netsplit/model"
)

// client is one session of a user or administrator.
type client struct {
	settings
	h   history
	web *web

	limits limits

	mu      sync.Mutex
	misled  map[string]int // how often in a row an application was told a wrong cause; -1: reported
	started int            // applications launched
}

// workloads by name: the ones of CoFI §5.1.2, one with two users, and the one of
// YARN-4288.
var workloads = map[string]func(*client, context.Context){
	"app":         (*client).applications,
	"two":         (*client).twoUsers,
	"nm-failover": (*client).nmFailover,
	"rm-failover": (*client).rmFailover,
	"start":       (*client).startCluster,
}

// Operations run side by side are of different processes of the history.
const (
	userProcess  = 0
	adminProcess = 1
	watchProcess = 2
	otherProcess = 3 // the second user
)

// limits are how long things may take.
type limits struct {
	poll   time.Duration // between two questions
	stop   time.Duration // for an application to end that was told to
	launch time.Duration // for an application to have containers
	agree  time.Duration // for both sides to say the same: a master that has finished stays for 5 s
	last   time.Duration // to launch and stop another application: what must be left of the workload
	admin  time.Duration // between stop and start of a server
	tell   time.Duration // kept at the end for saying how things stand
}

func usual() limits {
	return limits{poll: time.Second, stop: 15 * time.Second, launch: 25 * time.Second, agree: 12 * time.Second, last: 14 * time.Second, admin: 2 * time.Second, tell: 8 * time.Second}
}

// reach is what every use of the cluster needs: the client a ResourceManager,
// and HDFS where files are on it.
func (c *client) reach() []model.Need {
	out := []model.Need{via(c.self, c.rms, 1)}
	if c.storage != "" {
		out = append(out, via(c.storage, c.rms, 1), via(c.self, []string{c.storage}, 1))
	}
	return out
}

// reachAll is what an application needs besides: its master's node reaches a
// ResourceManager and the client, which asks it for progress.
func (c *client) reachAll() []model.Need {
	out := append(c.reach(), via(c.self, c.nms, 1))
	if len(c.nms) == 1 {
		out = append(out, via(c.nms[0], c.rms, 1))
	} else {
		for _, rm := range c.rms {
			if len(c.rms) == 1 {
				out = append(out, via(rm, c.nms, 1))
			}
		}
	}
	if c.storage != "" {
		out = append(out, via(c.storage, c.nms, 1))
	}
	return out
}

// job is an application that was launched.
type job struct {
	name string
	id   chan string // its id, once it is known; closed when the command ended
	tool *tool
}

var submitted = regexp.MustCompile(`Submitted application (application_\d+_\d+)`)

// launch starts the user's command that submits an application and waits for
// its end; task is how long each map task sleeps.
func (c *client) launch(ctx context.Context, task time.Duration) *job {
	c.started++
	j := &job{name: fmt.Sprintf("%s-%d", c.app, c.started), id: make(chan string, 1)}
	var once sync.Once
	observed := func(line string) {
		if m := submitted.FindStringSubmatch(line); m != nil {
			once.Do(func() { j.id <- m[1] })
		}
	}
	args := []string{"-m", fmt.Sprint(c.maps), "-r", "1", "-mt", fmt.Sprint(task.Milliseconds()), "-rt", "500"}
	class := sleepJob
	if c.app == "pi" {
		class, args = examples, []string{"pi", fmt.Sprint(c.maps), "100"}
	}
	j.tool = c.start(ctx, j.name, observed, class, args...)
	go func() {
		<-j.tool.done
		once.Do(func() { close(j.id) })
	}()
	return j
}

// submit launches an application and waits until it was accepted. Without an
// id it failed.
func (c *client) submit(ctx context.Context, process int, task time.Duration) (*job, string) {
	var j *job
	o := c.h.do(model.Operation{Process: process, F: "submit", Value: fmt.Sprintf("%s-%d", c.app, c.started+1), Needs: c.reach()}, func() outcome {
		j = c.launch(ctx, task)
		select {
		case id, is := <-j.id:
			switch {
			case is:
				return accepted(c.dir, id)
			case ctx.Err() != nil:
				return unknown("interrupted", "the workload is over")
			}
			return failed("rejected", "%s", j.tool.why())
		case <-ctx.Done():
			return unknown("interrupted", "the workload is over")
		}
	})
	return j, o.key
}

// idsFile lists the applications that were accepted, one a line, for final.
const idsFile = "applications"

func accepted(dir, id string) outcome {
	f, err := os.OpenFile(filepath.Join(dir, idsFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return unknown("internal", "%v", err)
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, id); err != nil {
		return unknown("internal", "%v", err)
	}
	return outcome{key: id}
}

// finish waits for the end of the command, which is that of the application of a
// user.
func (c *client) finish(ctx context.Context, process int, j *job, id string) {
	c.h.do(model.Operation{Process: process, F: "run", Key: id, Value: j.name, Needs: c.reachAll()}, func() outcome {
		c.watch(ctx, id, func(app) bool { return ended(j.tool) })
		<-j.tool.done
		switch {
		case ctx.Err() != nil:
			return unknown("interrupted", "the workload is over")
		case j.tool.err != nil:
			return failed("unsuccessful", "%s", j.tool.why())
		}
		return ok("")
	})
}

func ended(t *tool) bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// watch asks for an application until it is as wanted or ctx ends. What it
// reads on the way is judged: see misleading.
func (c *client) watch(ctx context.Context, id string, wanted func(app) bool) (app, bool) {
	for {
		a, err := c.web.app(ctx, id)
		if err == nil {
			c.misleading(ctx, a)
		}
		if wanted(a) {
			return a, true
		}
		select {
		case <-ctx.Done():
			return a, false
		case <-time.After(c.limits.poll):
		}
	}
}

// misleading reports an application whose diagnostics blame the limit of its
// queue for masters while it waits for nodes that are gone: no master could start
// within any limit where none is left, and with all of them this one would fit.
// They have to say so twice in a row: what was true a moment ago is no wrong cause.
func (c *client) misleading(ctx context.Context, a app) {
	blamed := strings.Contains(a.Diagnostics, "AM resource limit exceeded") && !a.over()
	rm := ""
	if blamed {
		var nodes []node
		var err error
		if rm, err = c.web.active(ctx); err != nil {
			return
		}
		if nodes, err = c.web.nodes(ctx, rm); err != nil {
			return
		}
		running := 0
		for _, n := range nodes {
			if n.State == "RUNNING" {
				running++
			}
		}
		blamed = running == 0 || fits(a.Diagnostics, running, len(c.nms)) // else there may be something to the limit
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.misled == nil {
		c.misled = map[string]int{}
	}
	if !blamed {
		c.misled[a.ID] = min(c.misled[a.ID], 0) // it begins anew, unless it was told
		return
	}
	if c.misled[a.ID] < 0 {
		return
	}
	if c.misled[a.ID]++; c.misled[a.ID] < 2 {
		return
	}
	c.misled[a.ID] = -1
	c.h.do(model.Operation{Process: watchProcess, F: "explain", Key: a.ID, Node: model.NodeID(rm), Needs: []model.Need{via(c.self, []string{rm}, 1)}}, func() outcome {
		return failed("wrong-cause", "it waits for nodes that are not RUNNING, and is told: %.400s", a.Diagnostics)
	})
}

// limitOf reads what the ResourceManager adds when it blames the limit
// (FiCaSchedulerApp.updateAMContainerDiagnostics of 2.10 and 3): the memory that the
// master takes, the limit, and what other masters have of it.
var limitOf = regexp.MustCompile(`Queue's AM resource limit exceeded.*AM Resource Request = <memory:(\d+).*Queue Resource Limit for AM = <memory:(\d+).*Queue AM Resource Usage = <memory:(\d+)`)

// step is yarn.scheduler.minimum-allocation-mb of the target files: the limit is
// rounded up to a multiple of it.
const step = 128

// fits says whether a master that is told of the limit would fit into it if all the
// nodes, which are equal, were running: the limit is a part of what they have. It is
// taken for as low as it may be before it was rounded.
func fits(diagnostics string, running, all int) bool {
	g := limitOf.FindStringSubmatch(diagnostics)
	if g == nil || running >= all {
		return false
	}
	var n [3]int
	for i := range n {
		n[i], _ = strconv.Atoi(g[i+1]) // digits
	}
	request, limit, used := n[0], n[1], n[2]
	return request+used <= (limit-step)*all/running
}

// busy waits until the application has a task running.
func (c *client) busy(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, c.limits.launch)
	defer cancel()
	a, _ := c.watch(ctx, id, func(a app) bool { return a.over() || a.State == "RUNNING" && a.Containers > 1 })
	return a.State == "RUNNING"
}

// stop ends an application as a user does and waits until it has ended; it is
// false if it has not.
func (c *client) stop(ctx context.Context, j *job, id string) bool {
	o := c.h.do(model.Operation{Process: userProcess, F: "stop", Key: id, Value: j.name, Needs: c.reach()}, func() outcome {
		t := c.start(ctx, "kill-"+j.name, nil, appCLI, "application", "-kill", id)
		<-t.done
		if ctx.Err() != nil {
			return unknown("interrupted", "the workload is over")
		}
		if t.err != nil {
			return failed("refused", "%s", t.why())
		}
		wait, cancel := context.WithTimeout(ctx, c.limits.stop)
		defer cancel()
		a, over := c.watch(wait, id, app.over)
		switch {
		case over:
			return ok(a.State)
		case ctx.Err() != nil:
			return unknown("interrupted", "the workload is over")
		}
		return failed("not-stopped", "%s after the command is %s", c.limits.stop, a.State)
	})
	return o.err == ""
}

func (c *client) applications(ctx context.Context) {
	if j, id := c.submit(ctx, userProcess, c.task); id != "" {
		c.finish(ctx, userProcess, j, id)
	}
	c.launchAndStop(ctx)
}

// twoUsers has an application run for each of two users, at the same time, and
// then one that is stopped. Both masters have to fit: see am_percent.
func (c *client) twoUsers(ctx context.Context) {
	var both sync.WaitGroup
	for _, process := range []int{userProcess, otherProcess} {
		if j, id := c.submit(ctx, process, 2*c.task); id != "" {
			both.Go(func() { c.finish(ctx, process, j, id) })
		}
	}
	both.Wait()
	c.launchAndStop(ctx)
}

func (c *client) launchAndStop(ctx context.Context) {
	if end, has := ctx.Deadline(); ctx.Err() != nil || has && time.Until(end) < c.limits.last {
		return
	}
	j, id := c.submit(ctx, userProcess, time.Minute)
	if id == "" {
		return
	}
	c.busy(ctx, id)
	if c.stop(ctx, j, id) {
		<-j.tool.done
	}
}

// during runs an application and, while it has tasks, what an administrator
// does.
func (c *client) during(ctx context.Context, admin func(context.Context)) {
	j, id := c.submit(ctx, userProcess, 3*c.task)
	if id == "" {
		admin(ctx)
		return
	}
	var both sync.WaitGroup
	both.Go(func() { c.finish(ctx, userProcess, j, id) })
	c.busy(ctx, id)
	admin(ctx)
	both.Wait()
	c.launchAndStop(ctx)
}

// act is an action of the administrator on a server.
func (c *client) act(ctx context.Context, verb, process, host string) bool {
	o := c.h.do(model.Operation{Process: adminProcess, F: verb + "-" + process, Key: host}, func() outcome {
		if err := c.node(ctx, verb, process, host); err != nil {
			return failed("refused", "%v", err)
		}
		return ok("")
	})
	return o.err == ""
}

// nmFailover restarts a NodeManager while an application runs.
func (c *client) nmFailover(ctx context.Context) {
	c.during(ctx, func(ctx context.Context) {
		c.restart(ctx, "nodemanager", c.nms[rand.New(rand.NewPCG(c.seed, 1)).IntN(len(c.nms))])
	})
}

func (c *client) restart(ctx context.Context, process, host string) {
	if !c.act(ctx, "stop", process, host) {
		return
	}
	pause(ctx, c.limits.admin)
	c.act(ctx, "start", process, host)
}

// rmFailover makes the other ResourceManager the active one while an
// application runs.
func (c *client) rmFailover(ctx context.Context) {
	c.during(ctx, func(ctx context.Context) {
		rm, err := c.web.active(ctx)
		if err != nil {
			return
		}
		if c.act(ctx, c.failover, "resourcemanager", rm) {
			pause(ctx, 2*c.limits.admin)
			c.act(ctx, "start", "resourcemanager", rm)
		}
	})
}

// startCluster stops the cluster in order and starts it again, then runs an
// application: YARN-4288 is about a NodeManager that registers.
func (c *client) startCluster(ctx context.Context) {
	for _, nm := range c.nms {
		c.act(ctx, "stop", "nodemanager", nm)
	}
	for _, rm := range c.rms {
		c.act(ctx, "stop", "resourcemanager", rm)
	}
	for _, rm := range c.rms {
		c.act(ctx, "start", "resourcemanager", rm)
	}
	for _, nm := range c.nms {
		c.act(ctx, "start", "nodemanager", nm)
	}
	for _, nm := range c.nms {
		c.h.do(model.Operation{Process: userProcess, F: "register", Key: nm, Needs: []model.Need{via(c.self, c.rms, 1), via(nm, c.rms, 1)}}, func() outcome {
			if c.registered(ctx, nm, 20*time.Second) {
				return ok("")
			}
			if ctx.Err() != nil {
				return unknown("interrupted", "the workload is over")
			}
			return failed("not-registered", "no ResourceManager lists it as RUNNING")
		})
	}
	if j, id := c.submit(ctx, userProcess, c.task); id != "" {
		c.finish(ctx, userProcess, j, id)
	}
}

func (c *client) registered(ctx context.Context, nm string, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for ctx.Err() == nil {
		if rm, err := c.web.active(ctx); err == nil {
			nodes, _ := c.web.nodes(ctx, rm)
			for _, n := range nodes {
				if n.Host == nm && n.State == "RUNNING" {
					return true
				}
			}
		}
		pause(ctx, c.limits.poll)
	}
	return false
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

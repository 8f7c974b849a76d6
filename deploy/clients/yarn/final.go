package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

// final stops what is left over, runs one more application, and compares what
// the active ResourceManager and the NodeManagers say.
func (c *client) final(ctx context.Context) {
	work, cancel := ctx, context.CancelFunc(func() {})
	if end, limited := ctx.Deadline(); limited { // on a busy machine an application takes all there is
		work, cancel = context.WithDeadline(ctx, end.Add(-c.limits.tell))
	}
	c.stopAll(work)
	c.runOne(work)
	c.agree(work)
	cancel()
	c.states(ctx)
	c.roles(ctx)
}

// stopAll stops every application that is not over: one that can be neither
// finished nor stopped is lost to its user.
func (c *client) stopAll(ctx context.Context) {
	rm, err := c.web.active(ctx)
	if err != nil {
		return // the check recovery tells that
	}
	apps, err := c.web.apps(ctx, rm)
	if err != nil {
		return
	}
	slices.SortFunc(apps, func(a, b app) int { return strings.Compare(a.ID, b.ID) })
	for _, a := range apps {
		if a.over() {
			continue
		}
		c.h.do(model.Operation{F: "final-stop", Key: a.ID, Node: model.NodeID(rm), Needs: c.reach()}, func() outcome {
			if err := c.web.kill(ctx, rm, a.ID); err != nil {
				return failed("refused", "%v", err)
			}
			wait, cancel := context.WithTimeout(ctx, c.limits.stop)
			defer cancel()
			now, over := c.watch(wait, a.ID, app.over)
			switch {
			case over:
				return ok(now.State)
			case ctx.Err() != nil:
				return unknown("interrupted", "the time is over")
			}
			return failed("not-stopped", "%s after the request it is %s", c.limits.stop, now.State)
		})
	}
}

// runOne runs one more application, a short one.
func (c *client) runOne(ctx context.Context) {
	c.app, c.maps = "sleep", 1
	c.h.do(model.Operation{F: "final-run", Needs: c.reachAll()}, func() outcome {
		j := c.launch(ctx, 200*time.Millisecond)
		id, is := <-j.id
		if !is && ctx.Err() == nil {
			return failed("rejected", "%s", j.tool.why())
		}
		<-j.tool.done
		switch {
		case ctx.Err() != nil:
			return unknown("interrupted", "the time is over")
		case j.tool.err != nil:
			return failed("unsuccessful", "%s", j.tool.why())
		}
		return accepted(c.dir, id)
	})
}

// states tells how each application that was ever accepted ended.
func (c *client) states(ctx context.Context) {
	b, err := os.ReadFile(filepath.Join(c.dir, idsFile))
	if err != nil {
		return // none was
	}
	for id := range strings.FieldsSeq(string(b)) {
		c.h.do(model.Operation{F: "final-status", Key: id}, func() outcome {
			a, err := c.web.app(ctx, id)
			switch {
			case errors.Is(err, errNotFound):
				return ok("NOTFOUND")
			case err != nil:
				return unknown("unreadable", "%v", err)
			}
			return ok(a.State)
		})
	}
}

// roles tells what each ResourceManager is.
func (c *client) roles(ctx context.Context) {
	for _, rm := range c.rms {
		c.h.do(model.Operation{F: "final-role", Key: rm, Node: model.NodeID(rm)}, func() outcome {
			s, err := c.web.state(ctx, rm)
			if err != nil {
				return unknown("unreadable", "%v", err)
			}
			return ok(s)
		})
	}
}

// agree compares the containers of each node that the active ResourceManager
// has as RUNNING with those the NodeManager holds.
func (c *client) agree(ctx context.Context) {
	rm, err := c.web.active(ctx)
	if err != nil {
		return
	}
	nodes, err := c.web.nodes(ctx, rm)
	if err != nil {
		return
	}
	slices.SortFunc(nodes, func(a, b node) int { return strings.Compare(a.ID, b.ID) })
	for _, n := range nodes {
		if n.State != "RUNNING" {
			continue
		}
		needs := []model.Need{via(c.self, []string{rm}, 1), via(c.self, []string{n.Host}, 1), via(rm, []string{n.Host}, 1)}
		c.h.do(model.Operation{F: "final-agree", Key: n.Host, Node: model.NodeID(rm), Needs: needs}, func() outcome {
			wait, cancel := context.WithTimeout(ctx, c.limits.agree)
			defer cancel()
			said := "nothing was read"
			for {
				d, err := c.differ(wait, rm, n.Host)
				switch {
				case err == nil && d == "":
					return ok("")
				case err == nil:
					said = d
				}
				pause(wait, c.limits.poll)
				if ctx.Err() != nil {
					return unknown("interrupted", "the time is over: %s", said)
				}
				if wait.Err() != nil {
					return failed("differ", "%s", said)
				}
			}
		})
	}
}

// differ says how a ResourceManager and a NodeManager differ about the
// containers of the node; "" if they do not.
func (c *client) differ(ctx context.Context, rm, nm string) (string, error) {
	nodes, err := c.web.nodes(ctx, rm)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(nodes, func(n node) bool { return n.Host == nm && n.State == "RUNNING" })
	if i < 0 {
		return fmt.Sprintf("%s no longer has %s as RUNNING", rm, nm), nil
	}
	cs, err := c.web.containers(ctx, nm)
	if err != nil {
		return "", err
	}
	var live []string
	for _, k := range cs {
		if k.State != "DONE" {
			live = append(live, k.ID+" "+k.State)
		}
	}
	if len(live) == nodes[i].Containers {
		return "", nil
	}
	return fmt.Sprintf("the ResourceManager counts %d containers on %s, the NodeManager has %d: %s", nodes[i].Containers, nm, len(live), strings.Join(live, ", ")), nil
}

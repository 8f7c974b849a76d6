package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"netsplit/model"
)

type operateOptions struct {
	failovers               int
	down                    time.Duration
	netsplit, verb, process string
}

// runOperate restarts the server that leads, as an operator does who changes
// its configuration or its Java.
func runOperate(ctx context.Context, c *common, o operateOptions) error {
	if o.verb != "stop" && o.verb != "kill" {
		return fmt.Errorf("--verb %q: want stop or kill", o.verb)
	}
	begin := time.Now()
	for _, m := range plan(c.seed, o.failovers, c.dur) {
		if !sleep(ctx, time.Until(begin.Add(m))) {
			return nil
		}
		op := model.Operation{Type: model.OpInvoke, F: "find-leader"}
		c.out.Add(op)
		leader, err := findLeader(ctx, c)
		op.Type, op.Node = model.OpOK, leader
		if err != nil {
			op.Type, op.Error = model.OpFail, err.Error()
		}
		c.out.Add(op)
		if err != nil {
			continue
		}
		if err := act(c, o, o.verb, leader); err != nil {
			continue
		}
		sleep(ctx, o.down)
		_ = act(c, o, "start", leader)
	}
	<-ctx.Done()
	return nil
}

// plan draws the moments, one in the first third of each equal share of the
// time, so that the restart's end is seen too.
func plan(seed uint64, failovers int, dur time.Duration) []time.Duration {
	rng := rand.New(rand.NewPCG(seed, 0x0b5))
	var out []time.Duration
	for i := range failovers {
		share := dur / time.Duration(failovers)
		out = append(out, time.Duration(i)*share+share/5+time.Duration(rng.Int64N(int64(share)/5+1)))
	}
	return out
}

// act lets netsplit act on a server. It is not bound to the context: a server
// that was stopped is started again.
func act(c *common, o operateOptions, verb string, host model.NodeID) error {
	op := model.Operation{Type: model.OpInvoke, F: verb, Node: host}
	c.out.Add(op)
	var stderr bytes.Buffer
	cmd := exec.Command(o.netsplit, "node", verb, o.process, string(host))
	cmd.Stderr = &stderr
	err := cmd.Run()
	op.Type = model.OpOK
	if err != nil {
		op.Type, op.Error = model.OpFail, strings.TrimSpace(fmt.Sprintf("%v %s", err, stderr.String()))
	}
	c.out.Add(op)
	return err
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

var modePattern = regexp.MustCompile(`(?m)^Mode: (\w+)$`)

// mode asks a server for its role with the four letter word srvr.
func mode(n node) (string, error) {
	conn, err := net.DialTimeout("tcp", n.addr, 500*time.Millisecond)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, "srvr\n"); err != nil {
		return "", err
	}
	b, err := io.ReadAll(conn)
	if m := modePattern.FindSubmatch(b); m != nil {
		return string(m[1]), nil
	}
	if err == nil {
		err = fmt.Errorf("not serving")
	}
	return "", err
}

func findLeader(ctx context.Context, c *common) (model.NodeID, error) {
	for range 10 {
		for _, n := range c.nodes {
			if m, err := mode(n); err == nil && m == "leader" {
				return n.name, nil
			}
		}
		if !sleep(ctx, 200*time.Millisecond) {
			break
		}
	}
	return "", fmt.Errorf("none: no server that can be reached says that it leads")
}

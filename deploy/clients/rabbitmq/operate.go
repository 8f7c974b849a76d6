package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// orderFor is how long an operator waits for rabbitmqctl, which starts an Erlang of its own.
const orderFor = 15 * time.Second

// ctl is how an operator asks the node of its host.
type ctl struct {
	program, cookie string
}

// operateAll has another node lead the queue, so many times, through the node of this host.
func operateAll(ctx context.Context, c *common, t ctl, seed uint64, moves int) error {
	if moves < 0 {
		return fmt.Errorf("--moves %d: must be at least 0", moves)
	}
	own := workload.Node{}
	for _, n := range c.nodes {
		if n.Name == model.NodeID(c.host) {
			own = n
		}
	}
	if own.Name == "" {
		return fmt.Errorf("--host %s: an operator works on the host of a node: one of %s", c.host, c.spec)
	}
	start := time.Now()
	moments, picks := workload.Plan(seed, moves, c.dur, len(c.nodes))
	for i, m := range moments {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(start.Add(m))):
		}
		to := c.nodes[picks[i]]
		op := model.Operation{Type: model.OpInvoke, F: "move", Key: string(to.Name), Node: own.Name}
		c.out.Add(op)
		op.Type, op.Error = t.move(ctx, own, to)
		c.out.Add(op)
	}
	return nil
}

// move asks that a node lead the queue.
func (t ctl) move(ctx context.Context, via, to workload.Node) (model.OpType, string) {
	home, err := os.MkdirTemp("", "rabbitmqctl-")
	if err != nil {
		return model.OpFail, "stopped " + err.Error()
	}
	defer os.RemoveAll(home)
	ctx, cancel := context.WithTimeout(ctx, orderFor)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.program, "--longnames", "--erlang-cookie", t.cookie, "-n", "rabbit@"+via.IP.String(), "eval",
		fmt.Sprintf("{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<\"/\">>, queue, <<\"%s\">>)), rabbit_quorum_queue:transfer_leadership(Q, 'rabbit@%s').", queueName, to.IP))
	cmd.Env = append(os.Environ(), "HOME="+home, "RABBITMQ_CONF_ENV_FILE=/dev/null")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return moved(string(out), err, ctx.Err())
}

// moved reads what rabbitmqctl said.
func moved(out string, err, over error) (model.OpType, string) {
	last := out[strings.LastIndexByte(strings.TrimSpace(out), '\n')+1:]
	last = strings.TrimSpace(last)
	switch {
	case errors.Is(over, context.Canceled):
		return model.OpInfo, "stopped"
	case over != nil:
		return model.OpInfo, "timeout no answer of rabbitmqctl"
	case err != nil:
		return model.OpInfo, "refused " + last
	case strings.HasPrefix(last, "{migrated,"):
		return model.OpOK, ""
	}
	return model.OpFail, "refused " + last
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/redis/go-redis/v9"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// Ports and name of the target's configuration (target.yaml).
const (
	redisPort    = 6379
	sentinelPort = 26379
	masterName   = "m"
)

// quiet drops the library's own log: every failure stands in the history.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// dial returns a client of one address that never repeats a command by itself
// and holds one connection: who answered is who was asked, once.
func dial(ip netip.Addr, port uint16, timeout time.Duration) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:            netip.AddrPortFrom(ip, port).String(),
		Protocol:        2,
		DisableIdentity: true,
		MaxRetries:      -1,
		PoolSize:        1,
		DialerRetries:   1,
		DialTimeout:     timeout,
		ReadTimeout:     timeout,
		WriteTimeout:    timeout,
		PoolTimeout:     timeout,
	})
}

func masterBySentinel(ctx context.Context, s workload.Node, nodes []workload.Node, timeout time.Duration) (workload.Node, error) {
	c := dial(s.IP, sentinelPort, timeout)
	defer c.Close()
	got, err := c.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName).StringSlice()
	if err != nil {
		return workload.Node{}, err
	}
	if len(got) != 2 {
		return workload.Node{}, fmt.Errorf("unexpected answer %q", got)
	}
	for _, n := range nodes {
		if n.IP.String() == got[0] {
			return n, nil
		}
	}
	return workload.Node{}, fmt.Errorf("unknown address %s", got[0])
}

// role asks a Redis for its role: "master", or "slave of <host>".
func role(ctx context.Context, c *redis.Client, nodes []workload.Node) (string, error) {
	got, err := c.Do(ctx, "ROLE").Slice()
	if err != nil {
		return "", err
	}
	if len(got) == 0 {
		return "", errors.New("empty answer to ROLE")
	}
	r := fmt.Sprint(got[0])
	if r == "slave" && len(got) > 1 {
		of := fmt.Sprint(got[1])
		for _, n := range nodes {
			if n.IP.String() == of {
				of = string(n.Name)
			}
		}
		return "slave of " + of, nil
	}
	return r, nil
}

// errNotMaster: the node that a Sentinel named does not call itself master.
var errNotMaster = errors.New("not-master")

// failure says whether an error means that the operation did not happen
// (fail) or that nobody knows (info), and gives it a stable first word.
func failure(err error) (model.OpType, string) {
	var op *net.OpError
	var re redis.Error
	switch {
	case errors.Is(err, errNotMaster):
		return model.OpFail, err.Error()
	case errors.As(err, &re):
		// Redis answered with an error: it did not do it.
		return model.OpFail, re.Error()
	case errors.As(err, &op) && op.Op == "dial":
		return model.OpFail, "connect " + err.Error()
	case errors.Is(err, context.DeadlineExceeded) || isTimeout(err):
		return model.OpInfo, "timeout " + err.Error()
	case errors.Is(err, context.Canceled):
		return model.OpInfo, "stopped " + err.Error()
	}
	return model.OpInfo, "closed " + err.Error()
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/gomodule/redigo/redis"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// Ports and name of the target's configuration (target.yaml).
const (
	redisPort    = 6379
	sentinelPort = 26379
	masterName   = "m"
)

// dial connects to one address: who answers is who was asked, and nothing is sent twice.
func dial(ip netip.Addr, port uint16, timeout time.Duration) (redis.Conn, error) {
	return redis.Dial("tcp", netip.AddrPortFrom(ip, port).String(), redis.DialConnectTimeout(timeout), redis.DialReadTimeout(timeout), redis.DialWriteTimeout(timeout))
}

func sentinel(s workload.Node, timeout time.Duration, command string) (any, error) {
	c, err := dial(s.IP, sentinelPort, timeout)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Do("SENTINEL", command, masterName)
}

func masterBySentinel(s workload.Node, nodes []workload.Node, timeout time.Duration) (workload.Node, error) {
	got, err := redis.Strings(sentinel(s, timeout, "GET-MASTER-ADDR-BY-NAME"))
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
func role(c redis.Conn, nodes []workload.Node) (string, error) {
	var r, of string
	got, err := redis.Values(c.Do("ROLE"))
	if err == nil {
		_, err = redis.Scan(got, &r)
	}
	if err != nil || r != "slave" {
		return r, err
	}
	if _, err = redis.Scan(got, &r, &of); err != nil {
		return "", err
	}
	for _, n := range nodes {
		if n.IP.String() == of {
			of = string(n.Name)
		}
	}
	return "slave of " + of, nil
}

func roleOf(n workload.Node, nodes []workload.Node, timeout time.Duration) (string, error) {
	c, err := dial(n.IP, redisPort, timeout)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return role(c, nodes)
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

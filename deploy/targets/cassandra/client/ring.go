package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

// storageService is the MBean of the node's place in the ring
// (org.apache.cassandra.service.StorageServiceMBean).
const storageService = "org.apache.cassandra.db:type=StorageService"

// jolokia asks the agent in this node's JVM: JMX over HTTP on the loopback
// interface, which is what nodetool asks for in a JVM of its own.
type jolokia struct {
	base string
	http http.Client
}

// errJolokia is an exception that the node answered with.
var errJolokia = errors.New("node-error")

func (j *jolokia) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, j.base+"/"+path, nil)
	if err != nil {
		return err
	}
	res, err := j.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	if err != nil {
		return err
	}
	var answer struct {
		Status int
		Value  json.RawMessage
		Error  string
		Kind   string `json:"error_type"`
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return fmt.Errorf("answer of Jolokia at %s is no JSON: %w", j.base, err)
	}
	if answer.Status != http.StatusOK {
		return fmt.Errorf("%w: %s", errJolokia, strings.ReplaceAll(answer.Error, "\n", " "))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer.Value, into)
}

func (j *jolokia) read(ctx context.Context, attributes string, into any) error {
	return j.get(ctx, "read/"+storageService+"/"+attributes, into)
}

// ring is what one node thinks of all.
type ring struct {
	OperationMode      string
	TokenToEndpointMap map[string]string
	LeavingNodes       []string
	JoiningNodes       []string
	UnreachableNodes   []string
	SchemaVersion      string
	Keyspaces          []string
}

const ringAttributes = "OperationMode,TokenToEndpointMap,LeavingNodes,JoiningNodes,UnreachableNodes,SchemaVersion,Keyspaces"

// members is the ring as nodetool shows it: "n1=NORMAL n2=LEAVING", sorted. A
// node that owns no token is no member.
func (c *common) members(r *ring) string {
	state := map[string]string{}
	for _, a := range r.TokenToEndpointMap {
		state[c.nameOf(address(a))] = "NORMAL"
	}
	for _, a := range r.JoiningNodes {
		state[c.nameOf(address(a))] = "JOINING"
	}
	for _, a := range r.LeavingNodes {
		state[c.nameOf(address(a))] = "LEAVING"
	}
	var out []string
	for _, n := range slices.Sorted(maps.Keys(state)) {
		out = append(out, n+"="+state[n])
	}
	return strings.Join(out, " ")
}

// address takes the host name and the port away: "name/10.0.0.1:7000".
func address(s string) string {
	_, after, ok := strings.Cut(s, "/")
	if ok {
		s = after
	}
	if host, _, ok := strings.Cut(s, ":"); ok {
		return host
	}
	return s
}

// watchNode reports the ring as this node sees it, about once a second and
// whenever it changed, and takes the node out of it if it is the one to leave.
func watchNode(ctx context.Context, c *common) error {
	j := &jolokia{base: c.jolokia}
	left := make(chan struct{})
	if c.workload == "decommission" && c.self == c.leaver {
		go func() {
			defer close(left)
			c.leave(ctx, j)
		}()
	} else {
		close(left)
	}
	if c.workload == "decommission" {
		for pause(ctx, time.Second) {
			c.status(ctx, j, "status")
		}
	}
	<-left // an operation that was begun gets its answer
	return nil
}

func (c *common) status(ctx context.Context, j *jolokia, f string) {
	octx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var r ring
	err := j.read(octx, ringAttributes, &r)
	if ctx.Err() != nil {
		return
	}
	op := model.Operation{Process: statusProcess, Type: model.OpOK, F: f, Node: c.self, Value: c.members(&r)}
	if err != nil {
		op.Type, op.Value, op.Error = model.OpFail, "", "jolokia "+err.Error()
	}
	c.out.add(op)
}

// Processes of the history of a node's administrator.
const (
	statusProcess = 0
	adminProcess  = 1
)

// leave takes this node out of the ring at a moment that the seed chooses:
// nodetool decommission, which is StorageServiceMBean.decommission. What
// Cassandra streams goes to the others, so it needs them all.
func (c *common) leave(ctx context.Context, j *jolokia) {
	rng := rand.New(rand.NewPCG(c.seed, 0x1eaf))
	if !pause(ctx, leaveAfter+time.Duration(rng.Int64N(int64(leaveWithin)))) {
		return
	}
	op := model.Operation{Process: adminProcess, Type: model.OpInvoke, F: "decommission", Key: string(c.self), Node: c.self,
		Needs: []model.Need{{Via: c.self, From: c.names(), Count: len(c.nodes)}}}
	c.out.add(op)
	// What was begun is waited for, longer than the workload goes on: nodetool
	// has no limit, but a run has.
	octx, cancel := context.WithTimeout(context.Background(), leaveLimit)
	defer cancel()
	err := j.get(octx, "exec/"+storageService+"/"+c.decommission(octx, j), nil)
	op.Type, op.Needs = model.OpOK, nil
	switch {
	case errors.Is(err, errJolokia):
		op.Type, op.Error = model.OpFail, err.Error()
	case err != nil:
		op.Type, op.Error = model.OpInfo, "no-answer "+err.Error()
	}
	c.out.add(op)
}

const (
	leaveAfter  = 5 * time.Second
	leaveWithin = 4 * time.Second
	leaveLimit  = 100 * time.Second
)

// decommission is the operation by its signature: from 4.0 on it takes
// "force", without which it refuses to leave fewer nodes than replicas
// (nodetool decommission --force).
func (c *common) decommission(ctx context.Context, j *jolokia) string {
	var version string
	if err := j.read(ctx, "ReleaseVersion", &version); err == nil && strings.HasPrefix(version, "3.") {
		return url.PathEscape("decommission()")
	}
	return url.PathEscape("decommission(boolean)") + "/true"
}

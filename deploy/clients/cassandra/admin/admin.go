package admin

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// Admin is the administrator at one node.
type Admin struct {
	Self  model.NodeID
	Nodes []workload.Node
	Seed  uint64
	At    *Jolokia
	Out   *workload.History
}

// ring is what one node thinks of all. An attribute that a release does not
// have stays empty.
type ring struct {
	OperationMode      string
	TokenToEndpointMap map[string]string
	LeavingNodes       []string
	JoiningNodes       []string
	SchemaVersion      string
	Keyspaces          []string
}

// Attributes of ring, since 0.7; SchemaVersion came later.
const ringAttributes = "OperationMode,TokenToEndpointMap,LeavingNodes,JoiningNodes,Keyspaces"

// members is the ring as nodetool shows it: "n1=NORMAL n2=LEAVING", sorted. A
// node that owns no token is no member.
func (a *Admin) members(r *ring) string {
	state := map[string]string{}
	for _, e := range r.TokenToEndpointMap {
		state[a.nameOf(e)] = "NORMAL"
	}
	for _, e := range r.JoiningNodes {
		state[a.nameOf(e)] = "JOINING"
	}
	for _, e := range r.LeavingNodes {
		state[a.nameOf(e)] = "LEAVING"
	}
	var out []string
	for _, n := range slices.Sorted(maps.Keys(state)) {
		out = append(out, n+"="+state[n])
	}
	return strings.Join(out, " ")
}

// nameOf gives the host that owns an endpoint, such as "10.0.0.1",
// "/10.0.0.1" or "name/10.0.0.1:7000"; otherwise the address.
func (a *Admin) nameOf(endpoint string) string {
	if _, after, ok := strings.Cut(endpoint, "/"); ok {
		endpoint = after
	}
	endpoint, _, _ = strings.Cut(endpoint, ":")
	for _, n := range a.Nodes {
		if n.IP.String() == endpoint {
			return string(n.Name)
		}
	}
	return endpoint
}

// Watch reports the ring as this node sees it once a second: "status". It ends
// with the context, or from the given moment on when this node no longer has
// the leaver in its ring.
func (a *Admin) Watch(ctx context.Context, leaver model.NodeID, from time.Time) {
	left := Left{From: from}
	for Pause(ctx, time.Second) {
		octx, cancel := context.WithTimeout(ctx, 3*time.Second)
		var r ring
		err := a.At.Read(octx, ringAttributes, &r)
		cancel()
		if ctx.Err() != nil {
			return
		}
		op := model.Operation{Type: model.OpOK, F: "status", Node: a.Self, Value: a.members(&r)}
		if err != nil {
			op.Type, op.Value, op.Error = model.OpFail, "", "jolokia "+err.Error()
		}
		a.Out.Add(op)
		if left.Over(err == nil && !strings.Contains(" "+op.Value, " "+string(leaver)+"=")) {
			return
		}
	}
}

// linger is how long the work goes on behind a node that has left: what comes
// back comes back then.
const linger = 10 * time.Second

// Left says when the work with a node that leaves is over: it is gone for a
// while, and the work has lasted long enough.
type Left struct {
	From time.Time // not before
	gone time.Time
}

// Over is told, from time to time, whether the node is gone now.
func (l *Left) Over(gone bool) bool {
	switch {
	case !gone:
		l.gone = time.Time{}
	case l.gone.IsZero():
		l.gone = time.Now()
	}
	return gone && time.Since(l.gone) >= linger && time.Now().After(l.From)
}

const (
	adminProcess = 1 // in the history; Watch is 0

	leaveAfter  = 5 * time.Second
	leaveWithin = 4 * time.Second
	leaveLimit  = 85 * time.Second
)

// Leave takes this node out of the ring, at a moment that the seed chooses:
// nodetool decommission, which is StorageServiceMBean.decommission. It waits
// for the end, also when the context ended meanwhile. What the node owns is
// streamed to the others, so it needs them all.
func (a *Admin) Leave(ctx context.Context) {
	rng := rand.New(rand.NewPCG(a.Seed, 0x1eaf))
	if !Pause(ctx, leaveAfter+time.Duration(rng.Int64N(int64(leaveWithin)))) {
		return
	}
	var all []model.NodeID
	for _, n := range a.Nodes {
		all = append(all, n.Name)
	}
	op := model.Operation{Process: adminProcess, Type: model.OpInvoke, F: "decommission", Key: string(a.Self), Node: a.Self,
		Needs: []model.Need{{Via: a.Self, From: all, Count: len(all)}}}
	a.Out.Add(op)
	octx, cancel := context.WithTimeout(context.Background(), leaveLimit)
	defer cancel()
	err := a.At.Get(octx, "exec/"+StorageService+"/"+a.decommission(octx), nil)
	op.Type, op.Needs = model.OpOK, nil
	switch {
	case errors.Is(err, ErrNode):
		op.Type, op.Error = model.OpFail, err.Error()
	case err != nil:
		op.Type, op.Error = model.OpInfo, "no-answer "+err.Error()
	}
	a.Out.Add(op)
}

// decommission is the operation by its signature: from 4.0 on it takes
// "force", without which it refuses to leave fewer nodes than replicas
// (nodetool decommission --force).
func (a *Admin) decommission(ctx context.Context) string {
	var version string
	if err := a.At.Read(ctx, "ReleaseVersion", &version); err == nil {
		major, _, _ := strings.Cut(version, ".")
		if n, err := strconv.Atoi(major); err == nil && n >= 4 {
			return url.PathEscape("decommission(boolean)") + "/true"
		}
	}
	return url.PathEscape("decommission()")
}

// Final reports, once, what this node thinks when recovery is over:
// "final-status" (the ring), "final-mode", and, of a node that is in the ring,
// "final-state" of what all nodes must have in common: ring, schema,
// keyspaces.
func (a *Admin) Final(ctx context.Context) {
	for {
		octx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		var r ring
		err := a.At.Read(octx, ringAttributes, &r)
		if err == nil {
			// Older releases do not have it; the others answered just now.
			_ = a.At.Read(octx, "SchemaVersion", &r.SchemaVersion)
		}
		cancel()
		if err == nil {
			a.report(&r)
			return
		}
		if !Pause(ctx, 500*time.Millisecond) {
			a.Out.Add(model.Operation{Type: model.OpFail, F: "final-status", Node: a.Self, Error: "jolokia " + err.Error()})
			return
		}
	}
}

func (a *Admin) report(r *ring) {
	add := func(f, key, value string) {
		a.Out.Add(model.Operation{Type: model.OpOK, F: f, Key: key, Value: value, Node: a.Self})
	}
	add("final-status", "", a.members(r))
	add("final-mode", "", r.OperationMode)
	if !strings.EqualFold(r.OperationMode, "normal") {
		return
	}
	slices.Sort(r.Keyspaces)
	add("final-state", "ring", a.members(r))
	add("final-state", "keyspaces", strings.Join(r.Keyspaces, " "))
	if r.SchemaVersion != "" {
		add("final-state", "schema", r.SchemaVersion)
	}
	add("final-state-done", "", "")
}

// Pause waits; it is false when the context ended.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

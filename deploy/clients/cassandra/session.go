package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/gocql/gocql"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// quiet drops the driver's own log: every failure stands in the history.
type quiet struct{}

func (quiet) Print(...any)          {}
func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

// connect opens a session whose only coordinator is n: a driver that may
// choose would hide which node failed. Nothing is tried twice.
func (c *common) connect(n workload.Node) (*gocql.Session, error) {
	cl := gocql.NewCluster(n.IP.String())
	cl.Port = c.port
	cl.ProtoVersion = 4
	cl.NumConns = 1
	cl.Timeout = c.tmo
	cl.WriteTimeout = c.tmo
	cl.ConnectTimeout = 3 * time.Second
	cl.Consistency = gocql.Quorum
	cl.SerialConsistency = gocql.Serial
	cl.RetryPolicy = &gocql.SimpleRetryPolicy{NumRetries: 0}
	cl.ReconnectionPolicy = &gocql.ConstantReconnectionPolicy{MaxRetries: 3, Interval: 500 * time.Millisecond}
	cl.ReconnectInterval = time.Second
	cl.DisableInitialHostLookup = true
	cl.IgnorePeerAddr = true
	cl.HostFilter = gocql.WhiteListHostFilter(n.IP.String())
	cl.Events.DisableNodeStatusEvents = true
	cl.Events.DisableTopologyEvents = true
	cl.Events.DisableSchemaEvents = true
	cl.MaxWaitSchemaAgreement = time.Millisecond // agreed asks for it
	cl.Logger = quiet{}
	return cl.CreateSession()
}

// user is one client: it has one connection, to one coordinator, and one
// operation at a time.
type user struct {
	*common
	id   int // process in the history
	at   workload.Node
	sess *gocql.Session
}

// reach opens the connection if there is none, until the context ends.
func (u *user) reach(ctx context.Context) bool {
	for u.sess == nil {
		s, err := u.connect(u.at)
		if err == nil {
			u.sess = s
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(300 * time.Millisecond):
		}
	}
	return true
}

func (u *user) close() {
	if u.sess != nil {
		u.sess.Close()
		u.sess = nil
	}
}

// do makes one operation with its invocation and its answer. What do returns
// is the answer's value. It does not end with the run's context: an operation
// that was begun gets its answer or its timeout.
func (u *user) do(f, key, value string, needs []model.Need, write bool, op func(ctx context.Context) (string, error)) (string, error) {
	o := model.Operation{Process: u.id, Type: model.OpInvoke, F: f, Key: key, Value: value, Node: u.at.Name, Needs: needs}
	u.out.Add(o)
	ctx, cancel := context.WithTimeout(context.Background(), u.tmo)
	defer cancel()
	v, err := op(ctx)
	o.Needs, o.Value = nil, v
	o.Type = model.OpOK
	if err != nil {
		o.Value = value
		o.Type, o.Error = failure(err, write)
	}
	u.out.Add(o)
	return v, err
}

// exec is do for a statement without rows.
func (u *user) exec(f, key, value string, needs []model.Need, stmt string, cons gocql.Consistency, args ...any) error {
	_, err := u.do(f, key, value, needs, true, func(ctx context.Context) (string, error) {
		return value, u.sess.Query(stmt, args...).Consistency(cons).WithContext(ctx).Exec()
	})
	return err
}

// needs says what an operation cannot do without: its client reaches the
// coordinator, and the coordinator count of the replicas. Every keyspace has
// a replica on each node here, so all nodes are replicas.
//
// Cassandra, Architecture, Dynamo, "Tunable Consistency": QUORUM is a majority
// (n/2 + 1) of the replicas, ALL is all of them, ONE is one; LWT use SERIAL,
// a quorum too.
//
// A node that leaves promises nothing until it has left: what it answers is not
// judged.
func (u *user) needs(count int) []model.Need {
	if u.leaves() {
		return nil
	}
	out := []model.Need{{Via: u.self, From: []model.NodeID{u.at.Name}, Count: 1}}
	if count > 0 {
		out = append(out, model.Need{Via: u.at.Name, From: u.names(), Count: count})
	}
	return out
}

func (u *user) quorum() int { return len(u.nodes)/2 + 1 }

// errNotApplied is an answer that says the condition of an LWT did not hold
// though nobody else uses the key.
var errNotApplied = errors.New("not-applied")

// errDisagree: nodes have different schema versions.
var errDisagree = errors.New("schema-disagreement")

// failure says whether an error means that the operation did not happen
// (fail) or that nobody knows (info), and gives it a stable first word. A read
// changes nothing: its failure is a fail.
func failure(err error, write bool) (model.OpType, string) {
	maybe := model.OpFail
	if write {
		maybe = model.OpInfo
	}
	var (
		unavailable *gocql.RequestErrUnavailable
		wt          *gocql.RequestErrWriteTimeout
		rt          *gocql.RequestErrReadTimeout
		wf          *gocql.RequestErrWriteFailure
		rf          *gocql.RequestErrReadFailure
		exists      *gocql.RequestErrAlreadyExists
		cas         *gocql.RequestErrCASWriteUnknown
		other       gocql.RequestError
		op          *net.OpError
	)
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	switch {
	case errors.Is(err, errNotApplied), errors.Is(err, errDisagree):
		return model.OpFail, text
	case errors.As(err, &unavailable):
		return model.OpFail, "unavailable " + text
	case errors.As(err, &wt):
		return model.OpInfo, "write-timeout " + wt.WriteType + " " + text
	case errors.As(err, &cas):
		return model.OpInfo, "cas-unknown " + text
	case errors.As(err, &wf):
		return model.OpInfo, "write-failure " + text
	case errors.As(err, &rt):
		return maybe, "read-timeout " + text // an LWT reads before it writes
	case errors.As(err, &rf):
		return maybe, "read-failure " + text
	case errors.As(err, &exists):
		return model.OpFail, "exists " + text
	case errors.As(err, &other):
		switch other.Code() {
		case gocql.ErrCodeServer:
			return maybe, "server-error " + text
		case gocql.ErrCodeOverloaded, gocql.ErrCodeBootstrapping:
			return model.OpFail, "not-ready " + text
		case gocql.ErrCodeInvalid, gocql.ErrCodeSyntax, gocql.ErrCodeConfig, gocql.ErrCodeUnauthorized:
			return model.OpFail, "invalid " + text
		}
		return maybe, fmt.Sprintf("error-%#04x %s", other.Code(), text)
	case errors.Is(err, gocql.ErrNoConnections), errors.Is(err, gocql.ErrNoConnectionsStarted), errors.Is(err, gocql.ErrSessionClosed):
		return model.OpFail, "no-connection " + text
	case errors.As(err, &op) && op.Op == "dial":
		return model.OpFail, "connect " + text
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, gocql.ErrTimeoutNoResponse):
		return maybe, "timeout " + text
	case errors.Is(err, gocql.ErrConnectionClosed), errors.Is(err, io.EOF):
		return maybe, "closed " + text
	}
	return maybe, "error " + text
}

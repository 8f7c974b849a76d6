package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gocql/gocql"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

func TestFailureSaysWhetherItHappened(t *testing.T) {
	for _, c := range []struct {
		err   error
		write bool
		typ   model.OpType
		word  string
	}{
		{&gocql.RequestErrUnavailable{}, true, model.OpFail, "unavailable"},
		{&gocql.RequestErrWriteTimeout{WriteType: "SIMPLE"}, true, model.OpInfo, "write-timeout"},
		{&gocql.RequestErrReadTimeout{}, false, model.OpFail, "read-timeout"},
		{&gocql.RequestErrReadTimeout{}, true, model.OpInfo, "read-timeout"}, // the read phase of an LWT
		{&gocql.RequestErrWriteFailure{}, true, model.OpInfo, "write-failure"},
		{&gocql.RequestErrCASWriteUnknown{}, true, model.OpInfo, "cas-unknown"},
		{&gocql.RequestErrAlreadyExists{}, true, model.OpFail, "exists"},
		{gocql.ErrNoConnections, true, model.OpFail, "no-connection"},
		{gocql.ErrConnectionClosed, true, model.OpInfo, "closed"},
		{io.EOF, false, model.OpFail, "closed"},
		{gocql.ErrTimeoutNoResponse, true, model.OpInfo, "timeout"},
		{context.DeadlineExceeded, false, model.OpFail, "timeout"},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, true, model.OpFail, "connect"},
		{fmt.Errorf("%w: found x", errNotApplied), true, model.OpFail, "not-applied:"},
		{errors.New("something\nnew"), true, model.OpInfo, "error"},
	} {
		typ, text := failure(c.err, c.write)
		word, _, _ := strings.Cut(text, " ")
		if typ != c.typ || word != c.word || strings.Contains(text, "\n") {
			t.Errorf("failure(%v, write %v) = %s %q, want %s %s ..", c.err, c.write, typ, text, c.typ, c.word)
		}
	}
}

func TestNeedsNameCoordinatorAndReplicas(t *testing.T) {
	nodes, err := workload.ParseNodes("n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		workload string
		quorum   int
		factor   int
	}{{"data", 2, 3}, {"paxos", 2, 3}, {"decommission", 3, 2}} {
		u := &user{common: &common{nodes: nodes, self: "c1", workload: c.workload}, at: nodes[1]}
		if got := u.needs(u.replicas()); got[1].Count != 3 {
			t.Errorf("%s: before the nodes agree, only who reaches all must succeed: %+v", c.workload, got)
		}
		u.agreed.Store(true)
		got := u.needs(u.replicas())
		if len(got) != 2 || got[0].Via != "c1" || got[0].From[0] != "n2" || got[1].Via != "n2" || got[1].Count != c.quorum || len(got[1].From) != 3 {
			t.Errorf("%s: needs = %+v", c.workload, got)
		}
		if u.factor() != c.factor {
			t.Errorf("%s: replication factor %d, want %d", c.workload, u.factor(), c.factor)
		}
		if got := u.needs(0); len(got) != 1 {
			t.Errorf("a change of the schema needs its coordinator only, not %+v", got)
		}
	}
	u := &user{common: &common{nodes: nodes, self: "c1", workload: "schema"}, at: nodes[1]}
	if got := u.knows(false); len(got) != 2 || got[1].Count != 3 {
		t.Errorf("a node that nobody said to know a keyspace needs all others, not %+v", got)
	}
	if got := u.knows(true); len(got) != 1 {
		t.Errorf("a node that was said to know a keyspace needs nothing more, not %+v", got)
	}
	leaver := &user{common: &common{nodes: nodes, self: "c1", workload: "decommission", leaver: "n3"}, at: nodes[2]}
	if got := leaver.needs(leaver.replicas()); got != nil {
		t.Errorf("what a leaving node answers is not judged: %+v", got)
	}
	if leaver.workload = "data"; len(leaver.needs(leaver.replicas())) != 2 {
		t.Error("n3 is a coordinator like any other when nobody leaves")
	}
}

func TestNodesAgreeWhenAllAreListed(t *testing.T) {
	nodes, err := workload.ParseNodes("n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3")
	if err != nil {
		t.Fatal(err)
	}
	u := &user{common: &common{nodes: nodes}}
	for versions, want := range map[string]bool{"a a a": true, "a a": false, "a a b": false, "": false} {
		if got := u.agreement(strings.Fields(versions)); got != want {
			t.Errorf("versions %q of three nodes: agreement %v", versions, got)
		}
	}
}

func TestCommandLine(t *testing.T) {
	const nodes = "--nodes=n1=127.0.0.1"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"work"}, "--nodes"},
		{[]string{"work", nodes, "--workload", "dta"}, "no workload"},
		{[]string{"work", nodes, "--rate", "0"}, "--rate"},
	} {
		err := run(context.Background(), c.args, strings.NewReader(""), io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.args, err, c.want)
		}
	}
	// Nobody serves: the work ends at its time, without an operation.
	var out bytes.Buffer
	begin := time.Now()
	in, keep := io.Pipe()
	defer keep.Close()
	if err := run(context.Background(), []string{"work", nodes, "--port", "1", "--for", "700ms"}, in, &out); err != nil || out.Len() > 0 {
		t.Errorf("without servers: %v, %q", err, out.String())
	}
	if d := time.Since(begin); d < 600*time.Millisecond {
		t.Errorf("it ended after %v", d)
	}
}

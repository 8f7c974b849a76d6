// Package clienttest cuts and heals the testbed of a netsplit daemon in Go tests: a partition is
// in force, proved, when Partition returns, and healed, proved, when the test ends.
package clienttest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"netsplit/api/client"
	"netsplit/api/trust"
	"netsplit/api/wire"
	"netsplit/model"
)

// Most is how long a partition lasts if the test's process is killed: the daemon heals it then.
const Most = 10 * time.Minute

// proofTime bounds a cut and a heal, each.
const proofTime = 30 * time.Second

// TB is what is needed of a *testing.T, *testing.B or *testing.F.
type TB interface {
	Helper()
	Cleanup(func())
	Context() context.Context
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Netsplit is a daemon in a test. It may be used by several goroutines.
type Netsplit struct {
	*client.Client
	t TB
}

// Connect connects to a daemon: your own on this machine, or the one that NETSPLIT_API names,
// with NETSPLIT_TOKEN and NETSPLIT_API_FINGERPRINT. The test fails if it does not answer.
func Connect(t TB) *Netsplit {
	t.Helper()
	token, err := trust.LoadToken("")
	if err != nil {
		t.Fatalf("netsplit: %v", err)
	}
	c := client.Config{API: os.Getenv("NETSPLIT_API"), Fingerprint: os.Getenv("NETSPLIT_API_FINGERPRINT")}
	if c.API != "" { // your own daemon needs none
		c.Token = token
	}
	cl, err := client.New(c)
	if err == nil {
		_, err = cl.Version(t.Context())
	}
	if err != nil {
		t.Fatalf("netsplit: %v", err)
	}
	return &Netsplit{cl, t}
}

// Partition cuts groups of hosts off from each other and waits until that is proved. One group
// is isolated from all others, two are cut partially, more completely. The end of the test
// heals, as Heal does before.
func (n *Netsplit) Partition(groups ...[]string) *Partition {
	n.t.Helper()
	shape := string(model.Complete)
	switch len(groups) {
	case 0:
		n.t.Fatalf("netsplit: give groups of hosts")
	case 1:
		shape = string(model.Isolated)
	case 2:
		shape = string(model.Partial)
	}
	return n.Cut(wire.PartitionSpec{Partition: wire.Partition{Shape: shape, Groups: groups}})
}

// Cut is Partition for all that the API can cut. Without For the partition lasts Most.
func (n *Netsplit) Cut(spec wire.PartitionSpec) *Partition {
	n.t.Helper()
	if spec.For == 0 {
		spec.For = wire.Span(Most)
	}
	if spec.Name == "" {
		spec.Name = "go-" + strings.ToLower(rand.Text())
	}
	ctx, stop := context.WithTimeout(n.t.Context(), proofTime)
	defer stop()
	st, err := n.CreatePartition(ctx, spec, proofTime/3)
	p := &Partition{Name: spec.Name, n: n}
	var refused *client.Problem
	if !errors.As(err, &refused) || refused.Status >= http.StatusInternalServerError { // it may have been made
		n.t.Cleanup(p.Heal)
	}
	if err == nil {
		err = n.settles(ctx, &st, model.PartitionRequested)
	}
	if err == nil && st.State != string(model.PartitionInForce) {
		err = fmt.Errorf("partition %s is %s and not in force: %s", st.Name, st.State, st.Reason)
	}
	if err != nil {
		n.t.Fatalf("netsplit: %v", err)
	}
	return p
}

// settles waits until a partition is in none of these states.
func (n *Netsplit) settles(ctx context.Context, st *wire.PartitionStatus, states ...model.PartitionState) (err error) {
	for err == nil && slices.Contains(states, model.PartitionState(st.State)) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("partition %s is %s after %v: %s", st.Name, st.State, proofTime, st.Reason)
		case <-time.After(100 * time.Millisecond):
		}
		*st, err = n.Client.Partition(ctx, st.Name)
	}
	return err
}

// Partition is a cut of a test.
type Partition struct {
	Name string
	n    *Netsplit
	once sync.Once
}

// Heal heals the partition and waits until that is proved. A second call does nothing.
func (p *Partition) Heal() {
	p.n.t.Helper()
	p.once.Do(func() {
		ctx, stop := context.WithTimeout(context.Background(), proofTime) // that of the test has ended
		defer stop()
		st, err := p.n.DeletePartition(ctx, p.Name, proofTime/3)
		if errors.Is(err, model.ErrNotFound) { // somebody healed it long ago
			return
		}
		if err == nil {
			err = p.n.settles(ctx, &st, model.PartitionRequested, model.PartitionInForce, model.PartitionHealing)
		}
		if err == nil && st.State != string(model.PartitionHealed) {
			err = fmt.Errorf("partition %s is %s and not healed: %s", p.Name, st.State, st.Reason)
		}
		if err != nil {
			p.n.t.Errorf("netsplit: %v", err)
		}
	})
}

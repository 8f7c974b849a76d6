package script

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"netsplit/campaign/run"
	"netsplit/model"
)

// fakeRun is a run on which operations end as told, and which keeps what was done.
type fakeRun struct {
	ops  map[string]run.OpResult // by name and arguments; others: ok
	acts int                     // of each message fault

	doing atomic.Int32 // operations

	mu     sync.Mutex
	parted []model.Partition
	cuts   []string
	steps  []model.ScriptStep
	did    []string
}

func (r *fakeRun) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.did = append(r.did, fmt.Sprintf(format, args...))
}

func (r *fakeRun) done() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.did, ", ")
}

func (r *fakeRun) Target() *model.Target {
	return &model.Target{Roles: map[string]model.Role{"master": {}}}
}
func (r *fakeRun) Hosts() []model.NodeID { return []model.NodeID{"n1", "n2", "n3", "c1", "c2"} }
func (r *fakeRun) Now() time.Duration    { return 0 }

func (r *fakeRun) Enter(st model.ScriptStep) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, st)
}

func (r *fakeRun) Do(_ context.Context, host model.NodeID, name string, args ...string) (run.OpResult, error) {
	if r.doing.Add(1) > 1 {
		r.note("two operations at once")
	}
	defer r.doing.Add(-1)
	time.Sleep(50 * time.Microsecond)
	text := strings.Join(append([]string{name}, args...), " ")
	r.note("%s %s", host, text)
	if res, reported := r.ops[text]; reported {
		return res, nil
	}
	return run.OpResult{Type: model.OpOK, Value: "v"}, nil
}

func (r *fakeRun) Holders(context.Context, string) (model.Holders, error) {
	return model.Holders{Have: []model.NodeID{"n2"}}, nil
}

func (r *fakeRun) Period(string) (time.Duration, error) { return time.Millisecond, nil }

func (r *fakeRun) Await(context.Context, time.Duration, []string) ([]string, error) { return nil, nil }

func (r *fakeRun) Sleep(ctx context.Context, d time.Duration) error {
	r.note("slept")
	time.Sleep(d)
	return ctx.Err()
}

func (r *fakeRun) Node(verb model.NodeVerb, host model.NodeID, _ string) ([]string, error) {
	r.note("%s %s", verb, host)
	return nil, nil
}

func (r *fakeRun) Cut(_ context.Context, name string, p model.Partition) (model.CutProof, error) {
	if slices.Contains(r.cuts, name) {
		return model.CutProof{}, errors.New("it is in force")
	}
	r.cuts = append(r.cuts, name)
	r.note("cut %s", name)
	r.parted = append(r.parted, p)
	return model.CutProof{Name: name, Partition: p}, nil
}

func (r *fakeRun) Heal(_ context.Context, name string) (model.CutProof, error) {
	i := slices.Index(r.cuts, name)
	if i < 0 {
		return model.CutProof{}, errors.New("it is not in force")
	}
	r.cuts = slices.Delete(r.cuts, i, i+1)
	r.note("heal %s", name)
	return model.CutProof{Name: name}, nil
}

func (r *fakeRun) Fault(_ context.Context, name string, f model.MessageFault) (model.MessageFault, error) {
	r.note("fault %s: %s", name, &f)
	return f, nil
}

func (r *fakeRun) Acted(_ context.Context, name string, want int, _ time.Duration) (acted, met int, err error) {
	r.note("awaited %s", name)
	return r.acts, 5, nil
}

func (r *fakeRun) End(_ context.Context, name string) (model.FaultProof, error) {
	r.note("end %s", name)
	return model.FaultProof{Met: 5, Acted: r.acts, Known: true, Checked: r.acts}, nil
}

func (r *fakeRun) AwaitMessage(_ context.Context, _ time.Duration, match model.MessageMatch) (m model.Message, ok bool, err error) {
	r.note("awaited message %s", match)
	return model.Message{Num: 7, Type: "A", From: "n2", To: "n1"}, r.acts > 0, nil
}

package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/model"
)

func TestHistoryIsInTheOrderOfItsTimes(t *testing.T) {
	var out bytes.Buffer
	h := NewHistory(&out, time.Now().Add(-time.Hour))
	var wg sync.WaitGroup
	for p := range 8 {
		wg.Go(func() {
			for range 50 {
				h.Add(model.Operation{Process: p, Type: model.OpInvoke, F: "write", Key: "k"})
			}
		})
	}
	wg.Wait()
	h.Put(model.Operation{Type: model.OpInvoke, F: "late", Time: time.Minute})
	if err := h.Err(); err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(&out)
	last := time.Hour
	for i := range 401 {
		var op model.Operation
		if err := dec.Decode(&op); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		if i == 400 {
			if op.F != "late" || op.Time != time.Minute {
				t.Errorf("one that had its time: %+v", op)
			}
			break
		}
		if op.Time < last {
			t.Fatalf("line %d at %s, behind one at %s", i+1, op.Time, last)
		}
		last = op.Time
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestAHistoryThatCannotBePrintedSaysSo(t *testing.T) {
	full := errors.New("no space")
	h := NewHistory(broken{full}, time.Now())
	h.Add(model.Operation{F: "write"})
	h.Add(model.Operation{F: "write"})
	if err := h.Err(); !errors.Is(err, full) {
		t.Errorf("%v, want %v", err, full)
	}
	var none *History
	if err := none.Err(); err != nil {
		t.Error(err)
	}
}

func TestRunStart(t *testing.T) {
	t.Setenv("NETSPLIT_RUN_START", "7000000005")
	if at, err := RunStart(); err != nil || !at.Equal(time.Unix(7, 5)) {
		t.Errorf("%v, %v", at, err)
	}
	t.Setenv("NETSPLIT_RUN_START", "yesterday")
	if _, err := RunStart(); err == nil || !strings.Contains(err.Error(), "NETSPLIT_RUN_START") {
		t.Errorf("%v", err)
	}
	t.Setenv("NETSPLIT_RUN_START", "")
	before := time.Now()
	if at, err := RunStart(); err != nil || at.Before(before) {
		t.Errorf("%v, %v", at, err)
	}
}

func TestTheWorkEndsWithStandardInput(t *testing.T) {
	in, closer := io.Pipe()
	ctx, cancel := Bound(context.Background(), time.Hour, in)
	defer cancel()
	if ctx.Err() != nil {
		t.Fatal("it ended before its input")
	}
	closer.Close()
	<-ctx.Done()

	in, closer = io.Pipe()
	defer closer.Close()
	ctx, cancel = Bound(context.Background(), time.Millisecond, in)
	defer cancel()
	<-ctx.Done()
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Error(ctx.Err())
	}
}

func TestParseNodes(t *testing.T) {
	got, err := ParseNodes("n1=10.0.0.1,n2=fd00::2")
	want := []Node{{"n1", netip.MustParseAddr("10.0.0.1")}, {"n2", netip.MustParseAddr("fd00::2")}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "n1", "=10.0.0.1", "n1=here", "n1=10.0.0.1,"} {
		if _, err := ParseNodes(bad); err == nil || !strings.Contains(err.Error(), "n1=10.0.0.1") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestNodesThatServeComeFirst in their order, before those that do not.
func TestNodesThatServeComeFirst(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.3:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	other, err := net.Listen("tcp", fmt.Sprintf("127.0.0.4:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var nodes []Node
	for i := range 4 {
		nodes = append(nodes, Node{model.NodeID(fmt.Sprintf("n%d", i+1)), netip.AddrFrom4([4]byte{127, 0, 0, byte(i + 1)})})
	}
	got := ServingFirst(nodes, port)
	if want := []Node{nodes[2], nodes[3], nodes[0], nodes[1]}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// An outage is one operation, whatever it consists of; one that lasts too long has
// no answer, and the next failure begins another.
func TestAnOutageIsOneOperation(t *testing.T) {
	var b bytes.Buffer
	o := Outage{Out: NewHistory(&b, time.Now()), Within: 10 * time.Second}
	need := []model.Need{{Via: "c1", From: []model.NodeID{"n1"}, Count: 1}}
	op := model.Operation{Process: 7, Type: model.OpFail, F: "publish", Key: "k", Node: "n1", Error: "timeout", Needs: need}
	at := time.Unix(100, 0)
	o.End(model.OpOK, "") // none has begun
	o.Failed(at, op)
	o.Failed(at.Add(10*time.Second), op)
	o.End(model.OpOK, "")
	o.Failed(at.Add(20*time.Second), op)
	o.Failed(at.Add(31*time.Second), op)
	o.Failed(at.Add(32*time.Second), op)
	o.End(model.OpInfo, "stopped")
	var got []string
	for dec := json.NewDecoder(&b); dec.More(); {
		var op model.Operation
		if err := dec.Decode(&op); err != nil {
			t.Fatal(err)
		}
		if op.Process != 7 || op.F != "resume" || op.Key != "" || op.Node != "n1" || len(op.Needs) != map[model.OpType]int{model.OpInvoke: 1}[op.Type] {
			t.Errorf("%+v", op)
		}
		got = append(got, strings.TrimSpace(string(op.Type)+" "+op.Error))
	}
	want := []string{"invoke", "ok", "invoke", "info timeout no acknowledgement in 10s", "invoke", "info stopped"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPlanIsAFunctionOfTheSeed(t *testing.T) {
	seen := map[time.Duration]bool{}
	for seed := range uint64(50) {
		m, asks := Plan(seed, 3, 24*time.Second, 5)
		m2, asks2 := Plan(seed, 3, 24*time.Second, 5)
		if !slices.Equal(m, m2) || !slices.Equal(asks, asks2) {
			t.Fatalf("seed %d: %v %v, then %v %v", seed, m, asks, m2, asks2)
		}
		for i, x := range m {
			share := 8 * time.Second
			if lo := time.Duration(i) * share; x < lo || x > lo+share/2 || asks[i] < 0 || asks[i] > 4 {
				t.Errorf("seed %d: step-down %d at %s through server %d", seed, i, x, asks[i])
			}
		}
		seen[m[0]] = true
	}
	if len(seen) < 40 {
		t.Errorf("50 seeds give %d different first moments", len(seen))
	}
	if m, _ := Plan(1, 0, 24*time.Second, 5); len(m) != 0 {
		t.Errorf("none asked for, %v planned", m)
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

func TestPlanIsAFunctionOfTheSeed(t *testing.T) {
	seen := map[time.Duration]bool{}
	for seed := range uint64(50) {
		m, asks := plan(seed, 3, 9*time.Second, 3)
		m2, asks2 := plan(seed, 3, 9*time.Second, 3)
		if !cmp.Equal(m, m2) || !cmp.Equal(asks, asks2) {
			t.Fatalf("seed %d: %v %v, then %v %v", seed, m, asks, m2, asks2)
		}
		for i, x := range m {
			share := 3 * time.Second
			if lo := time.Duration(i) * share; x < lo || x > lo+share/2 || asks[i] < 0 || asks[i] > 2 {
				t.Errorf("seed %d: failover %d at %s of Sentinel %d", seed, i, x, asks[i])
			}
		}
		seen[m[0]] = true
	}
	if len(seen) < 40 {
		t.Errorf("50 seeds give %d different first moments", len(seen))
	}
	if m, _ := plan(1, 0, 9*time.Second, 3); len(m) != 0 {
		t.Errorf("no failovers asked for, %v planned", m)
	}
}

// What Redis refused did not happen; what was sent and not answered may have.
func TestFailureTellsFailFromInfo(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	read := &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	for _, c := range []struct {
		err  error
		typ  model.OpType
		word string
	}{
		{redis.Error("READONLY You can't write against a read only replica."), model.OpFail, "READONLY"},
		{redis.Error("NOREPLICAS Not enough good replicas to write."), model.OpFail, "NOREPLICAS"},
		{dial, model.OpFail, "connect"},
		{fmt.Errorf("pool: %w", dial), model.OpFail, "connect"},
		{fmt.Errorf("%w: n1 names n2", errNotMaster), model.OpFail, "not-master:"},
		{read, model.OpInfo, "timeout"},
		{context.DeadlineExceeded, model.OpInfo, "timeout"},
		{context.Canceled, model.OpInfo, "stopped"},
		{io.EOF, model.OpInfo, "closed"},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, model.OpInfo, "closed"},
	} {
		typ, text := failure(c.err)
		if word, _, _ := strings.Cut(text, " "); typ != c.typ || word != c.word {
			t.Errorf("%v: %s %q, want %s %s", c.err, typ, text, c.typ, c.word)
		}
	}
}

// Without any server every mode ends with its standard input, and what it
// printed is a history.
func TestEndsWithItsInput(t *testing.T) {
	for _, mode := range []string{"write", "operate", "read"} {
		t.Run(mode, func(t *testing.T) {
			t.Setenv("NETSPLIT_RUN_START", fmt.Sprint(time.Now().Add(-time.Hour).UnixNano()))
			in, close := io.Pipe()
			var out bytes.Buffer
			done := make(chan error, 1)
			go func() {
				done <- run(t.Context(), []string{mode, "--nodes", "n1=127.0.0.1,n2=127.0.0.2", "--for", "1h"}, in, &out)
			}()
			time.Sleep(300 * time.Millisecond)
			close.Close()
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it goes on after the end of its input")
			}
			var last time.Duration
			dec := json.NewDecoder(&out)
			for dec.More() {
				var op model.Operation
				if err := dec.Decode(&op); err != nil {
					t.Fatal(err)
				}
				if op.Type == model.OpOK {
					t.Errorf("nobody is there, and this was answered: %+v", op)
				}
				if op.Time < time.Hour || op.Time < last {
					t.Errorf("time %s after %s: not since the start of the run, or not in order", op.Time, last)
				}
				last = op.Time
			}
		})
	}
}

func TestBadFlagsSayWhatToDo(t *testing.T) {
	for args, want := range map[string]string{
		"write":                               "--nodes",
		"write --nodes n1=127.0.0.1 --rate 0": "both must be at least 1",
		"wirte":                               `unknown command "wirte"`,
	} {
		err := run(t.Context(), strings.Fields(args), strings.NewReader(""), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	t.Setenv("NETSPLIT_RUN_START", "today")
	err := run(t.Context(), []string{"write", "--nodes", "n1=127.0.0.1"}, strings.NewReader(""), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "Unix nanoseconds") {
		t.Errorf("bad start: %v", err)
	}
}

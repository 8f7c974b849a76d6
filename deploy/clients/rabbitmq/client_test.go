package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// What nobody got did not happen; what was sent and not confirmed may have.
func TestFailureTellsFailFromInfo(t *testing.T) {
	for _, c := range []struct {
		err  error
		typ  model.OpType
		word string
	}{
		{fmt.Errorf("%w n1: %w", errConnect, context.DeadlineExceeded), model.OpFail, "connect"},
		{fmt.Errorf("%w 312 NO_ROUTE", errReturned), model.OpFail, "returned"},
		{errNack, model.OpInfo, "nack"},
		{fmt.Errorf("%w: %w", context.DeadlineExceeded, io.EOF), model.OpInfo, "timeout"},
		{context.Canceled, model.OpInfo, "stopped"},
		{amqp.ErrClosed, model.OpInfo, "closed"},
		{gone(nil), model.OpInfo, "closed"},
		{gone(&amqp.Error{Code: 320, Reason: "CONNECTION_FORCED"}), model.OpInfo, "closed"},
	} {
		typ, text := failure(c.err)
		if word, _, _ := strings.Cut(text, " "); typ != c.typ || strings.TrimSuffix(word, ":") != c.word {
			t.Errorf("%v: %s %q, want %s %s", c.err, typ, text, c.typ, c.word)
		}
	}
}

// Without any node every mode ends with its standard input, and what it printed is a history.
func TestEndsWithItsInput(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	defer func(p int) { amqpPort = p }(amqpPort)
	amqpPort = nobody.Addr().(*net.TCPAddr).Port
	for _, mode := range []string{"publish", "read"} {
		in, closer := io.Pipe()
		var out bytes.Buffer
		done := make(chan error, 1)
		go func() {
			done <- run(t.Context(), []string{mode, "--nodes", "n1=127.0.0.1,n2=127.0.0.2", "--for", "1h"}, in, &out)
		}()
		closer.Close()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s goes on after the end of its input", mode)
		}
		for dec := json.NewDecoder(&out); dec.More(); {
			var op model.Operation
			if err := dec.Decode(&op); err != nil {
				t.Fatal(err)
			}
			if op.Type == model.OpOK {
				t.Errorf("nobody is there, and this was answered: %+v", op)
			}
		}
	}
}

func TestWhatAnOperatorIsTold(t *testing.T) {
	for _, c := range []struct {
		out  string
		err  error
		over error
		want string
	}{
		{"{migrated,'rabbit@10.64.0.2'}\n", nil, nil, "ok "},
		{"{not_migrated,is_leader}\n", nil, nil, "fail refused {not_migrated,is_leader}"},
		{"Error: unable to perform an operation\n\n * rabbit: stopped\n", errors.New("exit status 69"), nil, "info refused * rabbit: stopped"},
		{"", errors.New("signal: killed"), context.DeadlineExceeded, "info timeout no answer of rabbitmqctl"},
		{"", errors.New("signal: killed"), context.Canceled, "info stopped"},
	} {
		typ, text := moved(c.out, c.err, c.over)
		if got := string(typ) + " " + text; got != c.want {
			t.Errorf("%q is %q, want %q", c.out, got, c.want)
		}
	}
	err := run(t.Context(), []string{"operate", "--nodes", "n1=127.0.0.1", "--host", "c1"}, strings.NewReader(""), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "works on the host of a node") {
		t.Error(err)
	}
}

// A node that takes connections and says nothing is not waited for.
func TestANodeThatIsMuteIsLeft(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	defer func(p int) { amqpPort = p }(amqpPort)
	amqpPort = mute.Addr().(*net.TCPAddr).Port
	nodes, err := workload.ParseNodes("n1=127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := dial(t.Context(), nodes[0], 100*time.Millisecond)
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, errConnect) {
			t.Errorf("%v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it still waits")
	}
}

// A queue is gone once all nodes have said so for long enough, without another answer.
func TestAQueueThatNoNodeHasIsGone(t *testing.T) {
	nodes := []workload.Node{{Name: "n1"}, {Name: "n2"}}
	absent, at := map[model.NodeID]time.Time{}, time.Unix(100, 0)
	for _, s := range []struct {
		n     model.NodeID
		err   error
		after time.Duration
		want  bool
	}{
		{"n1", errGone, 0, false},
		{"n2", errGone, time.Second, false},
		{"n1", errGone, goneFor, false},
		{"n2", amqp.ErrClosed, goneFor + time.Second, false}, // it begins anew
		{"n2", errGone, goneFor + 2*time.Second, false},
		{"n1", errGone, 2*goneFor + time.Second, false},
		{"n2", errGone, 2*goneFor + 2*time.Second, true},
	} {
		now := at.Add(s.after)
		saw(absent, s.n, s.err, now)
		if got := sure(absent, nodes, now); got != s.want {
			t.Errorf("%s after %s: %t", s.n, s.after, got)
		}
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
	"netsplit/sut"
)

// What nobody got, or a server refused, did not happen; what was sent and not
// answered, or given up by a server, may have.
func TestFailureTellsFailFromInfo(t *testing.T) {
	for _, c := range []struct {
		err  error
		typ  model.OpType
		word string
	}{
		{fmt.Errorf("%w n1: %w", errConnect, nats.ErrNoServers), model.OpFail, "connect"},
		{fmt.Errorf("%w n1: %w", errConnect, nats.ErrTimeout), model.OpFail, "connect"},
		{nats.ErrNoResponders, model.OpFail, "no-responders"},
		{nats.ErrNoStreamResponse, model.OpFail, "no-responders"},
		{&nats.APIError{Code: 400, Description: "wrong last sequence: 7"}, model.OpFail, "refused"},
		{&nats.APIError{Code: 503, Description: "JetStream system temporarily unavailable"}, model.OpInfo, "unavailable"},
		{nats.ErrTimeout, model.OpInfo, "timeout"},
		{context.DeadlineExceeded, model.OpInfo, "timeout"},
		{context.Canceled, model.OpInfo, "stopped"},
		{nats.ErrConnectionClosed, model.OpInfo, "closed"},
		{io.EOF, model.OpInfo, "closed"},
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
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	defer func(c, s int) { clientPort, statusPort = c, s }(clientPort, statusPort)
	clientPort = nobody.Addr().(*net.TCPAddr).Port
	statusPort = clientPort
	for _, mode := range []string{"publish", "operate", "read"} {
		t.Run(mode, func(t *testing.T) {
			t.Setenv("NETSPLIT_RUN_START", fmt.Sprint(time.Now().Add(-time.Hour).UnixNano()))
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

// TestTheFirstMessageIsNotedOnce: by the publisher that is told.
func TestTheFirstMessageIsNotedOnce(t *testing.T) {
	t.Setenv("NETSPLIT_RUN_START", fmt.Sprint(time.Now().UnixNano()))
	for _, c := range []struct {
		args string
		want int
	}{{"--first", 1}, {"--host c2", 0}} {
		var out bytes.Buffer
		args := append(strings.Fields("publish --nodes n1=127.0.0.1,n2=127.0.0.2 --for 1ms"), strings.Fields(c.args)...)
		if err := run(t.Context(), args, strings.NewReader(""), &out); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), `"type":"ok","f":"publish","key":"first","value":"1"`); got != c.want {
			t.Errorf("%s: noted %d times: %s", c.args, got, &out)
		}
	}
}

func TestBadFlagsSayWhatToDo(t *testing.T) {
	for args, want := range map[string]string{
		"publish":                                          "--nodes",
		"publish --nodes n1=127.0.0.1 --rate 0":            "--rate 0 --within 10s: both must be above 0",
		"create --nodes n1=127.0.0.1 --replicas 6":         "--replicas 6: JetStream has 1 to 5",
		"operate --nodes n1=127.0.0.1 --meta-stepdowns -1": "--stepdowns 2 --meta-stepdowns -1 --moves 0: all must be at least 0",
		"create --nodes n1=127.0.0.1 --for 1ns":            "make stream work",
		"pubilsh":                                          `unknown command "pubilsh"`,
	} {
		err := run(t.Context(), strings.Fields(args), strings.NewReader(""), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	t.Setenv("NETSPLIT_RUN_START", "today")
	err := run(t.Context(), []string{"publish", "--nodes", "n1=127.0.0.1"}, strings.NewReader(""), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "Unix nanoseconds") {
		t.Errorf("bad start: %v", err)
	}
}

// Where replicas move, an acknowledgement is owed only to who reaches a majority of any
// servers that may hold the stream.
func TestNeedsDependOnWhetherReplicasMove(t *testing.T) {
	nodes, err := workload.ParseNodes("n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3,n4=10.0.0.4,n5=10.0.0.5")
	if err != nil {
		t.Fatal(err)
	}
	var holders atomic.Pointer[[]model.NodeID]
	p := publisher{common: &common{nodes: nodes, host: "c1"}, node: nodes[1], holders: &holders, spare: -1}
	if got := p.needs(); got != nil {
		t.Errorf("nobody knows who holds the stream, and it needs %v", got)
	}
	holders.Store(&[]model.NodeID{"n1", "n4", "n5"})
	if got := p.needs(); len(got) != 2 || got[1].Count != 2 || len(got[1].From) != 3 {
		t.Errorf("%v", got)
	}
	p.spare = 1
	if got := p.needs(); len(got) != 2 || got[1].Via != "n2" || got[1].Count != 4 || len(got[1].From) != 5 {
		t.Errorf("%v", got)
	}
}

// A message that is not there yet is asked for again; a read that is over time
// is no hole.
func TestAMissingMessageIsAskedForAgain(t *testing.T) {
	asked := 0
	m, err := get(t.Context(), func() (*nats.RawStreamMsg, error) {
		if asked++; asked < 3 {
			return nil, []error{nats.ErrMsgNotFound, nats.ErrNoResponders}[asked-1]
		}
		return &nats.RawStreamMsg{Data: []byte("k")}, nil
	})
	if err != nil || m == nil || string(m.Data) != "k" || asked != 3 {
		t.Errorf("%v, %v after %d questions", m, err, asked)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if m, err := get(ctx, func() (*nats.RawStreamMsg, error) { return nil, nats.ErrMsgNotFound }); m != nil || !errors.Is(err, nats.ErrMsgNotFound) {
		t.Errorf("over time: %v, %v", m, err)
	}
}

// A stream is gone once all servers have said so for long enough, without another answer.
func TestAStreamThatNoServerHasIsGone(t *testing.T) {
	nodes := []workload.Node{{Name: "n1"}, {Name: "n2"}}
	began := time.Now()
	for name, c := range map[string]struct {
		last error // of n2, in the middle
		also error // of n2, before
		sure bool
	}{
		"both say so":         {last: nats.ErrStreamNotFound, also: nats.ErrStreamNotFound, sure: true},
		"one found it":        {last: nats.ErrStreamNotFound},
		"one does not answer": {last: nats.ErrTimeout, also: nats.ErrStreamNotFound},
	} {
		a := absence{}
		a.saw("n1", nats.ErrStreamNotFound, began)
		a.saw("n2", c.also, began)
		a.saw("n2", c.last, began.Add(goneFor/2))
		if a.sure(nodes, began.Add(goneFor-1)) || a.sure(nodes, began.Add(goneFor)) != c.sure {
			t.Errorf("%s: %v", name, a)
		}
	}
}

func TestPeersAreTheLeaderAndItsReplicas(t *testing.T) {
	info := &nats.StreamInfo{Cluster: &nats.ClusterInfo{Leader: "n4", Replicas: []*nats.PeerInfo{{Name: "n5"}, {Name: "n1"}, {Name: "n4"}}}}
	if got := peers(info); !cmp.Equal(got, []model.NodeID{"n1", "n4", "n5"}) {
		t.Errorf("%v", got)
	}
	if got := peers(&nats.StreamInfo{}); got != nil {
		t.Errorf("a server alone: %v", got)
	}
}

// answers are those of five servers to /jsz?streams=1: one leads the stream, two
// follow, two have no replica.
func answers(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, h := range []string{"n1", "n2", "n3", "n4", "n5"} {
		b, err := os.ReadFile(filepath.Join("testdata", h+".json"))
		if err != nil {
			t.Fatal(err)
		}
		out[h] = string(b)
	}
	return out
}

func TestStateIsThatOfTheServersReplica(t *testing.T) {
	for h, text := range answers(t) {
		s, err := parseState(strings.NewReader(text))
		if holds := !strings.Contains(text, `"streams": 0,`); holds != (err == nil) || holds && s.String() != "310 messages, 1 to 310" {
			t.Errorf("%s: %s, %v", h, s, err)
		}
	}
	other := `{"account_details": [{"stream_detail": [{"name": "other", "state": {"messages": 1}}]}]}`
	if s, err := parseState(strings.NewReader(other)); err == nil {
		t.Errorf("of another stream: %s", s)
	}
	if _, err := parseState(strings.NewReader("{")); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
		t.Errorf("half an answer: %v", err)
	}
}

// The target file's patterns read what servers answer.
func TestTheTargetReadsWhatServersAnswer(t *testing.T) {
	tg, _, err := sut.Load("nats")
	if err != nil {
		t.Fatal(err)
	}
	leads := regexp.MustCompile(tg.Roles["leader"].Match)
	conditions := map[string]string{}
	for _, c := range tg.Stable {
		conditions[c.Name] = c.Match
	}
	match := func(condition, host, text string) []string {
		m := strings.NewReplacer("{{.Host}}", host, "{{slice .Host 1}}", host[1:]).Replace(conditions[condition])
		return regexp.MustCompile(m).FindStringSubmatch(text)
	}
	all := answers(t)
	leader := regexp.MustCompile(`"work",[^\[]*"leader": "(n\d)"`).FindStringSubmatch(all["n1"] + all["n2"] + all["n3"])[1]
	for h, text := range all {
		holds := !strings.Contains(text, `"streams": 0,`)
		for to := range all { // another one could lead as well
			swapped := strings.NewReplacer(`"`+leader+`"`, `"`+to+`"`, `"`+to+`"`, `"`+leader+`"`).Replace(text)
			if leads.MatchString(swapped) != (h == leader) {
				t.Errorf("%s, under the name of %s, leads: %v", h, to, h != leader)
			}
		}
		if m := match("stream-leader", h, text); m == nil || holds && m[1] != leader || !holds && m[1] != "" {
			t.Errorf("%s, whose leader is %s: %v", h, leader, m)
		}
		if m := match("meta-leader", h, text); m == nil || m[1] == "" {
			t.Errorf("%s names no leader of all servers: %v", h, m)
		}
		if match("replicas-current", h, text) == nil {
			t.Errorf("%s: replicas are not current", h)
		}
		behind := strings.Replace(text, `"current": true`, `"current": false`, 1)
		if got := match("replicas-current", h, behind) == nil; got != (h == leader) {
			t.Errorf("%s, of a replica that is behind: condition fails: %v", h, got)
		}
	}
	if match("replicas-current", leader, strings.Replace(all[leader], `"current": true,`, `"current": true, "offline": true,`, 1)) == nil {
		t.Error("an order of keys is asked for")
	}
}

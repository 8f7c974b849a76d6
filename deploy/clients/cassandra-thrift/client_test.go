package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

func TestStructuresSurviveTheWire(t *testing.T) {
	ctx := context.Background()
	mem := thrift.NewTMemoryBuffer()
	p := thrift.NewTBinaryProtocolConf(mem, nil)
	sent := structure{{1, "text"}, {2, []byte{0, 255}}, {3, int32(-7)}, {4, int64(1) << 40}, {5, true},
		{6, structure{{1, "in"}}}, {7, []structure{{{2, "a"}}, {{2, "b"}}}}, {8, [][]byte{{1}}}, {9, map[string]string{"k": "v"}}}
	if err := sent.Write(ctx, p); err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := a.Read(ctx, p); err != nil {
		t.Fatal(err)
	}
	want := object{1: "text", 2: "\x00\xff", 3: int64(-7), 4: int64(1) << 40, 5: true, 6: object{1: "in"},
		7: []any{object{2: "a"}, object{2: "b"}}, 8: []any{"\x01"}, 9: map[string]any{"k": "v"}}
	if !reflect.DeepEqual(a.fields, want) {
		t.Errorf("got %v\nwant %v", a.fields, want)
	}
	if err := (structure{{1, 3.5}}).Write(ctx, p); err == nil {
		t.Error("a value of an unknown type was written")
	}
}

// serve answers one call with a result structure.
func serve(t *testing.T, result structure) *client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		tr := thrift.NewTFramedTransportConf(thrift.NewTSocketFromConnConf(conn, nil), nil)
		p := thrift.NewTBinaryProtocolConf(tr, nil)
		ctx := context.Background()
		for {
			name, _, seq, err := p.ReadMessageBegin(ctx)
			if err != nil {
				return
			}
			var args answer
			if args.Read(ctx, p) != nil || p.ReadMessageEnd(ctx) != nil {
				return
			}
			_ = p.WriteMessageBegin(ctx, name, thrift.REPLY, seq)
			_ = result.Write(ctx, p)
			_ = p.WriteMessageEnd(ctx)
			_ = p.Flush(ctx)
		}
	}()
	c, err := dial(l.Addr().String(), 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.sock.Close() })
	return c
}

func TestCallsReadResultsAndExceptions(t *testing.T) {
	ctx := context.Background()
	cosc := structure{{1, structure{{1, "value"}, {2, "v1"}, {3, int64(9)}}}}
	if v, err := serve(t, structure{{0, cosc}}).get(ctx, "cf", "k", quorum); v != "v1" || err != nil {
		t.Errorf("get = %q, %v", v, err)
	}
	if v, err := serve(t, structure{{2, structure{}}}).get(ctx, "cf", "k", quorum); v != "" || err != nil {
		t.Errorf("get of a row that is not there = %q, %v", v, err)
	}
	err := serve(t, structure{{1, structure{{1, "unconfigured\ncolumnfamily"}}}}).insert(ctx, "cf", "k", "v", quorum)
	if typ, text, broken := failure(err, true); typ != model.OpFail || text != "invalid unconfigured columnfamily" || broken {
		t.Errorf("an invalid request is %s %q %v", typ, text, broken)
	}
	err = serve(t, structure{{3, structure{}}}).insert(ctx, "cf", "k", "v", quorum)
	if typ, text, _ := failure(err, true); typ != model.OpInfo || text != timedOut {
		t.Errorf("a write that timed out is %s %q", typ, text)
	}
	rows := []structure{{{1, "k1"}, {2, []structure{cosc}}}, {{1, "k2"}}} // k2 was deleted
	if got, err := serve(t, structure{{0, rows}}).rows(ctx, "cf", one); err != nil || !reflect.DeepEqual(got, [][2]string{{"k1", "v1"}}) {
		t.Errorf("rows = %v, %v", got, err)
	}
	ranges := []structure{{{3, [][]byte{[]byte("10.0.0.1"), []byte("10.0.0.2")}}}}
	if got, err := serve(t, structure{{0, ranges}}).ring(ctx, "app"); err != nil || !reflect.DeepEqual(got, []string{"10.0.0.1", "10.0.0.2"}) {
		t.Errorf("ring = %v, %v", got, err)
	}
}

func TestFailureSaysWhetherItHappened(t *testing.T) {
	for _, c := range []struct {
		err    error
		writes bool
		typ    model.OpType
		word   string
		broken bool
	}{
		{&exception{unavailable, ""}, true, model.OpFail, "unavailable", false},
		{&exception{timedOut, ""}, false, model.OpFail, "timed-out", false},
		{fmt.Errorf("%w 2 versions", errDisagree), false, model.OpFail, disagree, false},
		{thrift.NewTApplicationException(thrift.INTERNAL_ERROR, "Internal error"), true, model.OpInfo, "server-error", true},
		{thrift.NewTTransportException(thrift.TIMED_OUT, "t"), true, model.OpInfo, "timeout", true},
		{thrift.NewTTransportExceptionFromError(io.EOF), true, model.OpInfo, "closed", true},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, true, model.OpFail, "connect", true},
	} {
		typ, text, broken := failure(c.err, c.writes)
		word, _, _ := strings.Cut(text, " ")
		if typ != c.typ || word != c.word || broken != c.broken {
			t.Errorf("failure(%v) = %s %q %v, want %s %s %v", c.err, typ, text, broken, c.typ, c.word, c.broken)
		}
	}
}

func TestNeeds(t *testing.T) {
	nodes, err := workload.ParseNodes("n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3")
	if err != nil {
		t.Fatal(err)
	}
	for workload, want := range map[string]int{"data": 2, "drop": 2, "decommission": 3} {
		u := &user{common: &common{nodes: nodes, self: "c1", workload: workload}, at: nodes[0]}
		if got := u.needs(false); got[1].Count != want {
			t.Errorf("%s: needs %+v, want %d of the nodes", workload, got, want)
		}
	}
}

func TestAgreementIsThatOfAllNodes(t *testing.T) {
	nodes := func(n ...any) any { return n }
	for _, c := range []struct {
		versions map[string]any
		want     string
	}{
		{map[string]any{"v1": nodes("a", "b", "c")}, "v1"},
		{map[string]any{"v1": nodes("a", "b", "c"), unreachable: nodes()}, "v1"},
		{map[string]any{"v1": nodes("a", "b"), unreachable: nodes("c")}, ""},
		{map[string]any{"v1": nodes("a", "b"), "v2": nodes("c")}, ""},
		{map[string]any{}, ""},
	} {
		if got, ok := agreedVersion(c.versions); got != c.want && ok || ok != (c.want != "") {
			t.Errorf("%v: agreed %q %v, want %q", c.versions, got, ok, c.want)
		}
	}
}

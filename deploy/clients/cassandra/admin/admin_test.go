package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// fake is a node's Jolokia: answers by path.
func fake(t *testing.T, answers map[string]string) (*Jolokia, *[]string) {
	t.Helper()
	var requested []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requested = append(requested, r.URL.Path)
		a, ok := answers[strings.TrimPrefix(r.URL.Path, "/jolokia/")]
		if !ok {
			a = `{"status":404,"error_type":"javax.management.AttributeNotFoundException","error":"No such\nattribute"}`
		}
		_, _ = w.Write([]byte(a))
	}))
	t.Cleanup(s.Close)
	return &Jolokia{Base: s.URL + "/jolokia"}, &requested
}

const ringPath = "read/" + StorageService + "/" + ringAttributes

func testAdmin(t *testing.T, j *Jolokia) (*Admin, *bytes.Buffer) {
	t.Helper()
	nodes, err := workload.ParseNodes("n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	return &Admin{Self: "n1", Nodes: nodes, Seed: 1, At: j, Out: workload.NewHistory(&b, time.Now())}, &b
}

func operations(t *testing.T, b *bytes.Buffer) []model.Operation {
	t.Helper()
	var out []model.Operation
	for d := json.NewDecoder(b); d.More(); {
		var o model.Operation
		if err := d.Decode(&o); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

func TestMembersOfAllReleases(t *testing.T) {
	a, _ := testAdmin(t, nil)
	for _, c := range []struct {
		r    ring
		want string
	}{
		{ring{TokenToEndpointMap: map[string]string{"0": "10.0.0.1", "5": "10.0.0.2"}}, "n1=NORMAL n2=NORMAL"},
		// 0.7 to 4.1 write addresses in four ways.
		{ring{TokenToEndpointMap: map[string]string{"0": "/10.0.0.1", "5": "host/10.0.0.3:7000", "7": "10.0.0.2:7000"}, LeavingNodes: []string{"10.0.0.3"}}, "n1=NORMAL n2=NORMAL n3=LEAVING"},
		{ring{JoiningNodes: []string{"10.0.0.9"}}, "10.0.0.9=JOINING"},
		{ring{}, ""},
	} {
		if got := a.members(&c.r); got != c.want {
			t.Errorf("members = %q, want %q", got, c.want)
		}
	}
}

func TestFinalOfMemberAndOfOneThatLeft(t *testing.T) {
	j, _ := fake(t, map[string]string{
		ringPath: `{"status":200,"value":{"OperationMode":"NORMAL","TokenToEndpointMap":{"0":"10.0.0.1"},"Keyspaces":["b","a"],"LeavingNodes":[],"JoiningNodes":[]}}`,
		"read/" + StorageService + "/SchemaVersion": `{"status":200,"value":"u1"}`,
	})
	a, b := testAdmin(t, j)
	a.Final(context.Background())
	var got []string
	for _, o := range operations(t, b) {
		got = append(got, o.F+" "+o.Key+" "+o.Value)
	}
	want := "final-status  n1=NORMAL|final-mode  NORMAL|final-state ring n1=NORMAL|final-state keyspaces a b|final-state schema u1|final-state-done  "
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("final of a member:\n got %s\nwant %s", s, want)
	}

	// An old release has no SchemaVersion; one that left shares no state.
	j, _ = fake(t, map[string]string{ringPath: `{"status":200,"value":{"OperationMode":"Decommissioned","TokenToEndpointMap":{"0":"10.0.0.2"}}}`})
	a, b = testAdmin(t, j)
	a.Final(context.Background())
	for _, o := range operations(t, b) {
		if o.F == "final-state" || o.F == "final-state-done" {
			t.Errorf("a node that left reports %s", o.F)
		}
	}
}

func TestFinalOfASilentNodeIsAFail(t *testing.T) {
	a, b := testAdmin(t, &Jolokia{Base: "http://127.0.0.1:1/jolokia"})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	a.Final(ctx)
	ops := operations(t, b)
	if len(ops) != 1 || ops[0].Type != model.OpFail || !strings.HasPrefix(ops[0].Error, "jolokia ") {
		t.Errorf("got %+v, want one fail", ops)
	}
}

func TestDecommissionBySignature(t *testing.T) {
	for version, want := range map[string]string{
		"0.7.0": "decommission()", "1.0.8": "decommission()", "3.11.5": "decommission()",
		"4.1.7": "decommission(boolean)/true", "5.0.4": "decommission(boolean)/true", "10.1": "decommission(boolean)/true",
	} {
		j, _ := fake(t, map[string]string{"read/" + StorageService + "/ReleaseVersion": `{"status":200,"value":"` + version + `"}`})
		a, _ := testAdmin(t, j)
		if got := a.decommission(context.Background()); strings.ReplaceAll(strings.ReplaceAll(got, "%28", "("), "%29", ")") != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}

func TestJolokiaTellsANodesErrorFromNoAnswer(t *testing.T) {
	j, _ := fake(t, map[string]string{"bad": "<html>"})
	if err := j.Get(context.Background(), "missing", nil); !errors.Is(err, ErrNode) || strings.Contains(err.Error(), "\n") {
		t.Errorf("an exception of the node: %v", err)
	}
	if err := j.Get(context.Background(), "bad", nil); err == nil || errors.Is(err, ErrNode) {
		t.Errorf("no JSON: %v", err)
	}
}

func TestLeftIsOverAfterALinger(t *testing.T) {
	now := time.Now()
	l := Left{From: now.Add(-time.Second)}
	if l.Over(true) {
		t.Error("over at once")
	}
	l.gone = now.Add(-linger - time.Second)
	if l.Over(false) || !l.gone.IsZero() {
		t.Error("a node that is back is not gone")
	}
	l.gone = now.Add(-linger - time.Second)
	if !l.Over(true) {
		t.Error("not over after the linger")
	}
	l = Left{From: now.Add(time.Hour), gone: now.Add(-linger - time.Second)}
	if l.Over(true) {
		t.Error("over before the work has lasted long enough")
	}
}

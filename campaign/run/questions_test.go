package run

import (
	"context"
	"errors"
	"testing"
	"time"

	"netsplit/model"
)

// TestEqualProbesAreAskedOnce: three sources with one URL are one question to each
// host, and each reads the answer; another host, URL or interval is another one.
func TestEqualProbesAreAskedOnce(t *testing.T) {
	actors := &model.Probe{HTTP: "http://127.0.0.1/actors of {{.Host}}"}
	src := func(p *model.Probe, every time.Duration) model.VarSource {
		return model.VarSource{Probe: p, Every: every}
	}
	tg := &model.Target{Nodes: []model.NodeID{"n1", "n2"}, Variables: []model.Variable{
		{Name: "status", Sources: []model.VarSource{{Type: "text *"}, src(actors, 300)}},
		{Name: "up", Sources: []model.VarSource{src(actors, 300), src(&model.Probe{HTTP: actors.HTTP}, 300), src(actors, 500), src(&model.Probe{HTTP: "http://127.0.0.1/blocks"}, 300)}},
	}}
	qs := questions(tg, func(h model.NodeID, name string, i int) (model.VarSource, bool) {
		for _, v := range tg.Variables {
			if v.Name == name {
				out := v.Sources[i]
				p := *out.Probe // expanding makes a copy
				out.Probe = &p
				return out, true
			}
		}
		return model.VarSource{}, false
	})
	if len(qs) != 6 {
		t.Fatalf("%d questions, want 3 to each of 2 hosts", len(qs))
	}
	requested, read := 0, map[string]int{}
	var fail error
	ask := func(_ context.Context, h model.NodeID, p model.Probe) (string, error) {
		requested++
		return string(h) + " " + p.HTTP, fail
	}
	give := func(v string, i int, h model.NodeID, answer string) int {
		read[v+string(rune('0'+i))+string(h)+" of "+answer]++
		return i % 2
	}
	qs[0].ask(context.Background(), ask, give)
	fail = errors.New("refused")
	qs[0].ask(context.Background(), ask, give)
	if requested != 2 || len(read) != 3 {
		t.Errorf("asked %d times, read by %v", requested, read)
	}
	for _, who := range []string{"status1n1", "up0n1", "up1n1"} {
		if read[who+" of n1 "+actors.HTTP] != 1 {
			t.Errorf("%s read nothing: %v", who, read)
		}
	}
	seen := []int{1, 0, 1}
	for i, st := range qs[0].stats {
		if st.Requested != 2 || st.Answered != 1 || st.Seen != seen[i] || st.Error != "refused" || st.Along != (i > 0) || st.Along && st.Cost != 0 {
			t.Errorf("source %d: %+v", i, st)
		}
	}

	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if qs[1].ask(gone, ask, give); qs[1].stats[0].Requested != 0 {
		t.Errorf("a question that was cut short counts: %+v", qs[1].stats[0])
	}
}

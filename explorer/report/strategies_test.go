package report

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"netsplit/model"
)

// beside is a search with two others beside it.
func beside(t testing.TB) CampaignInput {
	in := searched(t)
	random := Search{Campaign: in.Campaign, Judged: 9, Report: "../c-0/report.html", Map: in.Map}
	random.Campaign.ID, random.Campaign.Done, random.Campaign.Spec.Strategy = "c-0", 12, model.StrategyRandom
	random.Campaign.Idle = time.Minute
	sequences := Search{Campaign: random.Campaign, Judged: 3, Findings: in.Findings[:1]}
	sequences.Campaign.ID, sequences.Campaign.Done = "c-9", 5
	sequences.Campaign.Spec = model.CampaignSpec{Strategy: model.StrategySequences, Depth: 2, Faults: []model.PointFaultKind{model.PointCrash}, Effect: model.Drop}
	in.Others = []Search{random, sequences}
	return in
}

// TestStrategiesStandSideBySide, with what each found and met.
func TestStrategiesStandSideBySide(t *testing.T) {
	in := beside(t)
	v := newStrategiesView(&in)
	var got []string
	for _, r := range v.Rows {
		got = append(got, strings.Join([]string{r.Name, r.Runs, r.Judged, r.Broken, r.First, r.Documented, r.Cells, r.Length}, "|"))
	}
	want := []string{"cofi|7|2|2|run 6|1|3 of 4|4 min 0 s", "random|12|9|0|–|0|3 of 4|3 min 0 s", "sequences, depth 2, crash|5|3|0|–|1|0 of 0|3 min 0 s"}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("rows %q, want %q", got, want)
			break
		}
	}
	var b bytes.Buffer
	if err := Campaign(&b, in); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{`id="strategies"`, `href="../c-0/report.html"`, "this one"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for i := range v.Rows { // in the table and in both charts
		if line := fmt.Sprintf(`class="step s%d"`, i); strings.Count(page, line) != 3 {
			t.Errorf("%d lines %s, want 3", strings.Count(page, line), line)
		}
	}
	in.Others = nil
	b.Reset()
	if err := Campaign(&b, in); err != nil || strings.Contains(b.String(), `id="strategies"`) {
		t.Errorf("alone it stands beside nothing: %v", err)
	}
	if dir := os.Getenv("NETSPLIT_LOOK"); dir != "" {
		b.Reset()
		if err := Campaign(&b, beside(t)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/strategies.html", b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

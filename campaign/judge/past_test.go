package judge

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/explorer"
	"netsplit/model"
	"netsplit/record"
)

// TestThePastOfARunIsReadFromItsRecord: its steps, and the messages of its workload.
func TestThePastOfARunIsReadFromItsRecord(t *testing.T) {
	steps := []model.StepResult{{Step: 1, By: model.ReasonMessage, Began: 7}}
	dir := written(t, model.RunMeta{Run: "r1"}, record.Evidence{Result: model.RunResult{Steps: steps}}, `{"n":1,"t":1,"k":"message","msg":{"type":"early","from":"n1","to":"n2"}}
{"n":2,"t":3,"k":"workload"}
{"n":3,"t":5,"k":"message","msg":{"type":"ask","from":"n1","to":"n2"}}
{"n":4,"t":8,"k":"stop"}
{"n":5,"t":9,"k":"message","msg":{"type":"late","from":"n1","to":"n2"}}
`)
	got, err := Past(dir)
	if diff := cmp.Diff(explorer.Past{Start: 3, Steps: steps, Messages: []explorer.Came{{At: 5, Type: "ask", From: "n1", To: "n2"}}}, got); diff != "" || err != nil {
		t.Errorf("%s %v", diff, err)
	}
	if _, err := Past(t.TempDir()); err == nil {
		t.Error("a run without a record has a past")
	}
}

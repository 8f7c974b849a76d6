package nodes

import (
	"strings"
	"testing"

	"netsplit/model"
)

// TestALineThatIsNoOperationIsExplained: whoever writes a workload learns which
// word of the line is wrong, and what to write.
func TestALineThatIsNoOperationIsExplained(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"ok","f":"move","value":{}}`:            `"value" is a JSON object, want a text, in quotes`,
		`{"type":"ok","f":"move","key":7}`:               `"key" is a JSON number, want a text, in quotes`,
		`{"type":"ok","f":"move","time":1.5}`:            `"time" is a JSON number 1.5, want a whole number`,
		`{"type":"ok","f":"move","process":"a"}`:         `"process" is a JSON string, want a whole number`,
		`{"type":"invoke","f":"move","needs":{"a":"b"}}`: `"needs" is a JSON object, want a list`,
		`{"f":"move"}`:                 `"type" is "", want invoke, ok, fail or info`,
		`{"type":"failed","f":"move"}`: `"type" is "failed", want invoke, ok, fail or info`,
		`connected to n1`:              `all else on standard error`,
		`["ok"]`:                       `want a JSON object on each line`,
	} {
		if _, err := readOperation(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	op, err := readOperation(`{"process":1,"type":"ok","f":"write","key":"a","value":"1","time":1201000000,"node":"n1"}`)
	if err != nil || op.Type != model.OpOK || op.Value != "1" {
		t.Errorf("%+v, %v", op, err)
	}
}

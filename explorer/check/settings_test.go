package check

import (
	"strings"
	"testing"

	"netsplit/model"
)

// TestSettingsNameVariablesThatThereAre: a misspelt variable would be judged as
// one that nobody ever showed.
func TestSettingsNameVariablesThatThereAre(t *testing.T) {
	vars := []model.Variable{{Name: "leader"}, {Name: "term"}}
	spec := model.CheckSpec{Name: "leaders", With: map[string]string{"variable": "laeder"}}
	if got := Settings(spec, vars); len(got) != 1 || !strings.Contains(got[0], `no variable "laeder"`) || !strings.Contains(got[0], "leader, term") {
		t.Errorf("%q", got)
	}
	spec.With["variable"] = "leader"
	if got := Settings(spec, vars); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

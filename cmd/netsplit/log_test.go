package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTheLogHasTwoForms(t *testing.T) {
	var text, lines strings.Builder
	logFlags{}.open(&text).Info("a switch", "id", 7)
	if !strings.Contains(text.String(), `msg="a switch" id=7`) {
		t.Error(text.String())
	}
	logFlags{format: logJSON}.open(&lines).Debug("not with this level")
	logFlags{format: logJSON, verbose: true}.open(&lines).Debug("a switch", "id", 7)
	var line struct {
		Msg string `json:"msg"`
		ID  int    `json:"id"`
	}
	if err := json.Unmarshal([]byte(lines.String()), &line); err != nil || line.Msg != "a switch" || line.ID != 7 {
		t.Errorf("%v: %s", err, lines.String())
	}
}

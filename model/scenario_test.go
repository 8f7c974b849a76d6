package model

import (
	"encoding/json"
	"testing"
)

// Records before the word "substituted" load.
func TestEarlierRecordsOfASubstitutionLoad(t *testing.T) {
	for text, want := range map[string]bool{`{"id":"s1","came":true}`: true, `{"id":"s1","substituted":true}`: true, `{"id":"s1"}`: false} {
		var s Scenario
		if err := json.Unmarshal([]byte(text), &s); err != nil || s.ID != "s1" || s.Substituted != want {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
}

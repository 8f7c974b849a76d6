package campaign

import (
	"strings"
	"testing"
)

func TestRemineSaysThatThereIsNothingToMine(t *testing.T) {
	if _, err := Remine(t.TempDir()); err == nil || !strings.Contains(err.Error(), "give the directory of a campaign") {
		t.Errorf("got %v, want an error that says what to give", err)
	}
}

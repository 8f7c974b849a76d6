package nodes

import (
	"fmt"
	"strings"
	"testing"
)

// TestTheLineThatSaysWhy is told in place of what a program prints behind it, if that is near.
func TestTheLineThatSaysWhy(t *testing.T) {
	many := strings.Repeat("at x\n", near+1)
	for printed, want := range map[string]string{
		"":                 "",
		"starting\n\n  \n": "starting",
		"ERROR: 1051 Unknown table\nreport it\nat https://mariadb.org/jira\n": "ERROR: 1051 Unknown table",
		"it failed\nno: Connection refused\nbye\n":                            "no: Connection refused",
		"java.io.IOException: disk\n" + many[:50]:                             "java.io.IOException: disk",
		"it failed\n" + many + "all is well\n":                                "all is well",
		strings.Repeat("a", 400):                                              strings.Repeat("a", 300),
		"terror\nunfailing\n":                                                 "unfailing",
	} {
		var l lastLine
		for _, line := range strings.Split(printed, "\n") {
			l.enter(line)
		}
		if got := fmt.Sprint(&l); got != want {
			t.Errorf("%.60q: %q, want %q", printed, got, want)
		}
	}
}

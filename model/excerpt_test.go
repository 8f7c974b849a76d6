package model

import (
	"strings"
	"testing"
)

// What an author of a target sees of an answer in which nothing was found is what
// the pattern should have matched, not the header before it.
func TestAnExcerptShowsTheBody(t *testing.T) {
	long := strings.Repeat("x", excerptSize-1)
	for answer, want := range map[string]string{
		"HTTP/1.0 200 OK\r\nAccess-Control-Allow-Headers: accept, content-type\r\nDate: now\r\n\r\n{\"leader\":\"7\"}": `HTTP/1.0 200 OK … {"leader":"7"}`,
		"HTTP/1.0 204 No Content\r\nDate: now\r\n\r\n":                                                                 "HTTP/1.0 204 No Content … ",
		"role:master\r\n\r\nx": "role:master\r\n\r\nx",
		long + "x":             long + "x",
		strings.Repeat("x", 2*excerptSize) + "the end":                            strings.Repeat("x", 3*excerptSize/4) + "…" + strings.Repeat("x", excerptSize/4-7) + "the end",
		strings.Repeat("x", 3*excerptSize/4-1) + strings.Repeat("ü", excerptSize): strings.Repeat("x", 3*excerptSize/4-1) + "…" + strings.Repeat("ü", excerptSize/8), // no half of one
	} {
		if got := Excerpt(answer); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
}

package model

import "testing"

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{"": "", "as  it is": "as  it is", "one\ntwo\n": "one; two", "a:\r\n\n\tb c": "a: b c", "a\tb": "a b"} {
		if got := OneLine(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

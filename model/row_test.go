package model

import "testing"

func TestTheNumberOfARun(t *testing.T) {
	for run, want := range map[string]int{"c-20261128-044526-1-r0012": 12, "c-1-r10000": 10000, "": 0, "r": 0, "-r": 0, "c-1": 0, "c-1-rx": 0, "c-1-r-3": 0} {
		if got := RunNumber(run); got != want {
			t.Errorf("%q has number %d, want %d", run, got, want)
		}
	}
}

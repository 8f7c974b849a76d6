package main

import "testing"

func TestParseRSS(t *testing.T) {
	if n, err := parseRSS("Name:\tx\nVmHWM:\t  9000 kB\nVmRSS:\t    1024 kB\nThreads:\t3\n"); n != 1<<20 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, s := range []string{"Name:\tx\n", "VmRSS:\tmuch\n"} { // a process that has ended has none
		if _, err := parseRSS(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}

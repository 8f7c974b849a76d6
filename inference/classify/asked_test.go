package classify

import "testing"

// TestRequestsAreForgotten: those that were not answered, the oldest first; an id that
// is used again is not forgotten with its first use.
func TestRequestsAreForgotten(t *testing.T) {
	var a asked[int]
	for i := range 10 * maxRequested {
		a.put(i, "once")
		a.put(-1, "again")
		if i%3 == 0 && a.take(i) != "once" {
			t.Fatalf("%d was not there", i)
		}
	}
	if n := a.was.Len(); n > maxRequested {
		t.Errorf("%d requests kept", n)
	}
	last := 10*maxRequested - 2 // which was not answered
	for _, want := range []string{"once", ""} {
		if got := a.take(last); got != want {
			t.Errorf("the last %q, want %q", got, want)
		}
	}
	if a.get(1) != "" || a.get(-1) != "again" {
		t.Errorf("one long ago %q, one again and again %q", a.get(1), a.get(-1))
	}
}

package classify

import "testing"

// TestRequestsAreForgotten: those that were not answered, the oldest first; an id that
// is used again is not forgotten with its first use.
func TestRequestsAreForgotten(t *testing.T) {
	var a asked[int]
	for i := range 10 * askedMost {
		a.put(i, "once")
		a.put(-1, "again")
		if i%3 == 0 && a.take(i) != "once" {
			t.Fatalf("%d was not there", i)
		}
	}
	if len(a.was) > askedMost || len(a.ring) != askedMost {
		t.Errorf("%d requests kept, %d in order", len(a.was), len(a.ring))
	}
	last := 10*askedMost - 1
	if a.get(last) != a.take(last) || a.take(last) != "" || a.get(last-askedMost) != "" || a.get(-1) != "again" {
		t.Errorf("the last %q, one long ago %q, one again and again %q", a.get(last), a.get(last-askedMost), a.get(-1))
	}
}

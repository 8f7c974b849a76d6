package api

// Bounds on the label type of netsplit_messages_total.
const (
	// maxTypes have a series of their own.
	maxTypes = 50
	// maxWatched are counted, so that a frequent one is found; the least
	// frequent is forgotten for a new one (Space-Saving, Metwally et al. 2005).
	maxWatched = 500
	// otherType is the type of all the rest.
	otherType = "other"
)

// topTypes counts messages by type and verdict with a bounded number of
// types. A type gets a series of its own while there is room, or in place of
// the least frequent one when it has been seen twice as often. What the loser
// had is added to other, so that no counter ever falls and the sum over the
// types is exact.
type topTypes struct {
	max     int
	watched map[string]uint64            // type -> times seen, roughly
	shown   map[string]map[string]uint64 // type -> verdict -> count since shown
	other   map[string]uint64            // verdict -> count
	floor   uint64                       // no shown type has been seen less often
}

func newTopTypes(n int) *topTypes {
	return &topTypes{max: n, watched: map[string]uint64{}, shown: map[string]map[string]uint64{}, other: map[string]uint64{}}
}

func (t *topTypes) add(messageType, verdict string, n uint64) {
	if s := t.shown[messageType]; s != nil {
		s[verdict] += n
		t.watched[messageType] += n
		return
	}
	if messageType == otherType || !t.admit(messageType, n) {
		t.other[verdict] += n
		return
	}
	t.shown[messageType] = map[string]uint64{verdict: n}
}

func (t *topTypes) admit(messageType string, n uint64) bool {
	if _, ok := t.watched[messageType]; !ok && len(t.watched) >= maxWatched {
		least := t.least(func(k string) bool { return t.shown[k] == nil })
		t.watched[messageType] = t.watched[least]
		delete(t.watched, least)
	}
	t.watched[messageType] += n
	if len(t.shown) < t.max {
		return true
	}
	if t.watched[messageType] <= 2*t.floor {
		return false // counts of shown types only grow: no need to look
	}
	loser := t.least(func(k string) bool { return t.shown[k] != nil })
	t.floor = t.watched[loser]
	if t.watched[messageType] <= 2*t.floor {
		return false
	}
	for verdict, n := range t.shown[loser] {
		t.other[verdict] += n
	}
	delete(t.shown, loser)
	return true
}

// least returns the least frequent watched type of those wanted, the first in
// order of name among equals.
func (t *topTypes) least(want func(string) bool) string {
	best, found := "", false
	for k, n := range t.watched {
		if want(k) && (!found || n < t.watched[best] || n == t.watched[best] && k < best) {
			best, found = k, true
		}
	}
	return best
}

func (t *topTypes) each(fn func(messageType, verdict string, n uint64)) {
	for k, verdicts := range t.shown {
		for v, n := range verdicts {
			fn(k, v, n)
		}
	}
	for v, n := range t.other {
		fn(otherType, v, n)
	}
}

package classify

import "github.com/hashicorp/golang-lru/v2/simplelru"

// maxRequested is how many requests of a direction are kept, the latest.
const maxRequested = 4096

// asked is what the requests of a direction were, by the id that an answer repeats.
type asked[ID comparable] struct {
	was *simplelru.LRU[ID, string] // nil before the first
}

// put notes a request; one with an id that was there is forgotten.
func (a *asked[ID]) put(id ID, what string) {
	if a.was == nil {
		a.was, _ = simplelru.NewLRU[ID, string](maxRequested, nil) // which errs if it may keep none
	}
	a.was.Add(id, what)
}

// get is what the request with this id was; "" if it was not seen.
func (a *asked[ID]) get(id ID) (what string) {
	if a.was != nil {
		what, _ = a.was.Peek(id) // which makes it no younger
	}
	return what
}

// take is get, and forgets the request.
func (a *asked[ID]) take(id ID) string {
	what := a.get(id)
	if a.was != nil {
		a.was.Remove(id)
	}
	return what
}

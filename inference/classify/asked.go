package classify

// askedMost is how many requests of a direction are kept, the latest.
const askedMost = 4096

// asked is what the requests of a direction were, by the id that an answer repeats.
type asked[ID comparable] struct {
	was  map[ID]request
	ring []put[ID] // in the order in which they came
	old  int       // the oldest, once it is full
	n    int
}

type request struct {
	what string
	n    int
}

type put[ID comparable] struct {
	id ID
	n  int
}

// put notes a request; one with an id that was there is forgotten.
func (a *asked[ID]) put(id ID, what string) {
	if a.was == nil {
		a.was = map[ID]request{}
	}
	a.n++
	one := put[ID]{id, a.n}
	if len(a.ring) < askedMost {
		a.ring = append(a.ring, one)
	} else {
		if old := a.ring[a.old]; a.was[old.id].n == old.n { // else the id was used again
			delete(a.was, old.id)
		}
		a.ring[a.old] = one
		a.old = (a.old + 1) % askedMost
	}
	a.was[id] = request{what, a.n}
}

// get is what the request with this id was; "" if it was not seen.
func (a *asked[ID]) get(id ID) string { return a.was[id].what }

// take is get, and forgets the request.
func (a *asked[ID]) take(id ID) string {
	was := a.was[id]
	delete(a.was, id)
	return was.what
}

package classify

// askedMost is how many requests of a connection are kept, the latest.
const askedMost = 4096

// asked is what the messages of the side that connected were, by the id that an
// answer repeats.
type asked struct {
	typ map[uint64]string // what follows the prefix of their type
	ids []uint64          // a ring, in the order in which they were first there
	old int               // the oldest, once it is full
}

func (a *asked) put(id uint64, typ string) {
	if a.typ == nil {
		a.typ = map[uint64]string{}
	}
	if _, known := a.typ[id]; !known {
		if len(a.ids) < askedMost {
			a.ids = append(a.ids, id)
		} else {
			delete(a.typ, a.ids[a.old])
			a.ids[a.old] = id
			a.old = (a.old + 1) % askedMost
		}
	}
	a.typ[id] = typ
}

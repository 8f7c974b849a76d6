package classify

import "strings"

// vocabularyMost is how many types with words of its own a protocol may have. A
// protocol has some dozens of verbs; what has more has taken data for verbs.
const vocabularyMost = 128

// Vocabulary bounds the types of a protocol whose reader cannot tell verbs from
// data: the first words that appear are verbs. Keep one for all connections
// to a port. The zero value is empty.
type Vocabulary struct{ types, broad map[string]bool }

// Type is the unit's type: Unit.Broad for one more with a word of its own than
// a protocol would have.
func (v *Vocabulary) Type(u *Unit) string {
	switch {
	case u.Broad == "" || u.Broad == u.Type || v.types[u.Type]:
	case len(v.types) >= vocabularyMost:
		return v.without(u.Broad)
	default:
		if v.types == nil {
			v.types, v.broad = map[string]bool{}, map[string]bool{}
		}
		v.types[u.Type] = true
	}
	return u.Type
}

// without is a type without the word that may be data. It may have another one: of
// as many as there may be of those with both, the rest has none.
func (v *Vocabulary) without(broad string) string {
	if !v.broad[broad] && len(v.broad) >= vocabularyMost {
		reader, _, _ := strings.Cut(broad, " ")
		return reader + " other"
	}
	v.broad[broad] = true
	return broad
}

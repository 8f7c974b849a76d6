package check

import (
	"regexp"
	"strings"

	"netsplit/model"
)

// nameKnown gives failures the ids of the described failures whose signature
// they have; the first in the target file wins.
func nameKnown(r *Record, failures []model.Failure) {
	for i := range failures {
		failures[i].Known, failures[i].KnownBy = knownID(r.Target.Known, r.Target.Release, failures[i])
	}
}

// knownID is the id of the first signature that fits a failure of this
// release, and what it was made from; "" if none does. A pattern that does not compile fits nothing: that
// it does not is said where target files are checked.
func knownID(known []model.KnownFailure, release string, f model.Failure) (id, by string) {
	text := strings.Join(append([]string{f.Signature, f.Summary}, f.Detail...), "\n")
	for _, k := range known {
		if k.Check != "" && k.Check != f.Check || !k.DescribedFor(release) {
			continue
		}
		if re, err := regexp.Compile("(?m)" + k.Match); err == nil && k.Match != "" && re.MatchString(text) {
			return k.ID, k.By
		}
	}
	return "", ""
}

package check

import (
	"regexp"
	"strings"

	"netsplit/model"
)

// nameKnown gives failures the ids of the described failures whose signature
// they have; the first in the target file wins. One that is documented for the
// release breaks no promise.
func nameKnown(r *Record, failures []model.Failure) {
	for i := range failures {
		f := &failures[i]
		k := knownAs(r.Target.Known, r.Target.Release, *f)
		if k == nil {
			continue
		}
		f.Known, f.KnownBy = k.ID, k.By
		if k.DocumentedFor(r.Target.Release) && f.Class == model.Broken {
			f.Class, f.Quote = model.Documented, k.ID+": "+k.Title
		}
	}
}

// knownAs is the first described failure whose signature fits a failure of this
// release; nil if none does. A pattern that does not compile fits nothing: that
// it does not is said where target files are checked.
func knownAs(known []model.KnownFailure, release string, f model.Failure) *model.KnownFailure {
	text := strings.Join(append([]string{f.Signature, f.Summary}, f.Detail...), "\n")
	for i := range known {
		k := &known[i]
		if k.Check != "" && k.Check != f.Check || !k.DescribedFor(release) {
			continue
		}
		if re, err := regexp.Compile("(?m)" + k.Match); err == nil && k.Match != "" && re.MatchString(text) {
			return k
		}
	}
	return nil
}

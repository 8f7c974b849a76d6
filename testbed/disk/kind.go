package disk

import (
	"regexp"
	"strings"
)

var (
	uuid  = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`)
	token = regexp.MustCompile(`[0-9A-Za-z]+`)
	digit = regexp.MustCompile(`[0-9]+`)
	hexed = regexp.MustCompile(`^[0-9a-fA-F]{8,}$`)
	mixed = regexp.MustCompile(`[0-9][A-Za-z]`) // as numbers to base 36 are
	// cased are words whose case follows some rule: CommitLog, RocksDBLog, fileID, VERSION.
	cased = regexp.MustCompile(`^(?:[a-z]+|[A-Z]{2,})?(?:[A-Z][a-z]{2,}[A-Z]*)*[A-Z]*[0-9]*$`)
)

// Kind is a path with "#" for each number, hash and UUID in it, so that the third
// log of a run is of the same kind as the second:
//
//	appendonly.aof.1.incr.aof  appendonly.aof.#.incr.aof
//	version-2/log.10000000a    version-#/log.#
//
// A word counts as a hash if it is hexadecimal with a digit and has at least 8 places,
// if it has at least 4 places and letters that follow a digit, or if it has at least 8 and its
// letters are large and small by no rule, as in names to base 62. Of other words only the digits
// are replaced. Numbers, hashes and UUIDs share one sign:
// whether a hexadecimal number has a letter is chance.
func Kind(path string) string {
	path = uuid.ReplaceAllString(path, "#")
	return token.ReplaceAllStringFunc(path, func(w string) string {
		if hexed.MatchString(w) && strings.ContainsAny(w, "0123456789") || len(w) >= 4 && mixed.MatchString(w) || len(w) >= 8 && !cased.MatchString(w) {
			return "#"
		}
		return digit.ReplaceAllString(w, "#")
	})
}

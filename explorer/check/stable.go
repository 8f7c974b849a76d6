package check

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// varying are parts of texts that differ from run to run, in the order in
// which they are taken out.
var varying = []struct {
	re *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`\b\d{4}[-/.]\d{2}[-/.]\d{2}(?:[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?`), "#"},
	{regexp.MustCompile(`\b\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4}`), "#"},
	{regexp.MustCompile(`\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2}\b`), "#"},
	{regexp.MustCompile(`\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b`), "#"},
	{regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b`), "#"}, // IPv4, with a port
	{regexp.MustCompile(`(?:/[\w.@+-]+){2,}/([\w.@+-]+)`), "/…/$1"},
	{regexp.MustCompile(`\b0[xX][0-9a-fA-F]+\b`), "#"},
	{regexp.MustCompile(`@[0-9a-fA-F]{4,}\b`), "@#"}, // identity hash of a Java object
	{regexp.MustCompile(`[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?`), "#"},
	{regexp.MustCompile(`#(?:[.,:/_-]*#)+`), "#"},
	{regexp.MustCompile(`\s+`), " "},
}

// uuid is a UUID (RFC 9562 §4).
var uuid = regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`)

// hexWord is a word of hexadecimal digits; it is an id if a decimal one is
// among them.
var hexWord = regexp.MustCompile(`\b[0-9a-fA-F]{8,}\b`)

// stableRunes bounds a stable text; of what is longer than stableBytes only the
// beginning is read.
const (
	stableRunes = 160
	stableBytes = 2000
)

// stable takes out of a text what differs from run to run: dates, times,
// addresses, ids, numbers, and the folders of paths.
func stable(s string) string {
	if len(s) > stableBytes {
		s = s[:stableBytes]
	}
	s = uuid.ReplaceAllString(s, "0")
	s = hexWord.ReplaceAllStringFunc(s, func(w string) string {
		if strings.ContainsAny(w, "0123456789") {
			return "0"
		}
		return w
	})
	for _, v := range varying {
		s = v.re.ReplaceAllString(s, v.by)
	}
	s = strings.TrimSpace(strings.ToValidUTF8(s, "�"))
	return shorten(s)
}

func shorten(s string) string {
	if utf8.RuneCountInString(s) > stableRunes {
		s = string([]rune(s)[:stableRunes-1]) + "…"
	}
	return s
}

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
	{regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`), "#"}, // UUID, RFC 9562 §4
	{regexp.MustCompile(`\b\d{4}[-/.]\d{2}[-/.]\d{2}(?:[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?`), "#"},
	{regexp.MustCompile(`\b\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4}`), "#"},
	{regexp.MustCompile(`\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2}\b`), "#"},
	{regexp.MustCompile(`\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b`), "#"},
	{regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b`), "#"}, // IPv4, with a port
	{regexp.MustCompile(`(?:/[\w.@+-]+){2,}/([\w.@+-]+)`), "/…/$1"},
	{regexp.MustCompile(`\b0[xX][0-9a-fA-F]+\b`), "#"},
	{regexp.MustCompile(`@[0-9a-fA-F]{4,}\b`), "@#"}, // identity hash of a Java object
	{regexp.MustCompile(`\b(?:[0-9]+[a-fA-F]|[a-fA-F]+[0-9])[0-9a-fA-F]{6,}\b`), "#"},
	{regexp.MustCompile(`[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?`), "#"},
	{regexp.MustCompile(`#(?:[.,:/_-]*#)+`), "#"},
	{regexp.MustCompile(`\s+`), " "},
}

// stableRunes bounds a stable text.
const stableRunes = 160

// stable takes out of a text what differs from run to run: dates, times,
// addresses, ids, numbers, and the folders of paths.
func stable(s string) string {
	for _, v := range varying {
		s = v.re.ReplaceAllString(s, v.by)
	}
	s = strings.TrimSpace(strings.ToValidUTF8(s, "�"))
	if utf8.RuneCountInString(s) > stableRunes {
		s = string([]rune(s)[:stableRunes-1]) + "…"
	}
	return s
}

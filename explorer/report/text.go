package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"netsplit/model"
)

// clean makes text from a target fit to be shown: valid UTF-8, and no control
// or bidirectional formatting character that could make it read as other
// text. It does not escape markup; the writers do.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "�")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
			return '·'
		}
		return r
	}, s)
}

func cleanAll(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = clean(s)
	}
	return out
}

// shorten keeps at most n runes, cutting the middle: names of messages differ
// at both ends.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n || n < 5 {
		return s
	}
	r := []rune(s)
	head := (n - 1) * 2 / 3
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}

// span writes a length of time with the unit that suits it: 340 µs, 13.0 ms,
// 4.20 s, 2 min 5 s.
func span(d time.Duration) string {
	neg := ""
	if d < 0 {
		neg, d = "−", -d
	}
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%s%d µs", neg, d.Microseconds())
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%s%.1f ms", neg, float64(d)/1e6)
	case d < time.Second:
		return fmt.Sprintf("%s%d ms", neg, d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%s%.2f s", neg, d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%s%.1f s", neg, d.Seconds())
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%s%d min %d s", neg, int(d.Minutes()), int(d.Seconds())%60)
}

// at writes a moment of the run.
func at(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

// maxListed is the most that list names.
const maxListed = 20

// list writes hosts as a person does: n1, n2 and n3. Of many it names the first ones, and says
// how many more there are.
func list[T ~string](in []T) string {
	more := max(0, len(in)-maxListed)
	out := make([]string, len(in)-more)
	for i := range out {
		out[i] = clean(string(in[i]))
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	switch len(out) {
	case 0:
		return "nobody"
	case 1:
		return out[0]
	}
	return strings.Join(out[:len(out)-1], ", ") + " and " + out[len(out)-1]
}

// verdictClass is the style class of a verdict; an unknown word is not trusted
// as one. A failure that the documentation admits is not shown as a bug.
func verdictClass(v model.Verdict) string {
	switch v.Value {
	case model.VerdictFail:
		if admitted(v) {
			return "documented"
		}
		return string(v.Value)
	case model.VerdictPass, model.VerdictVacuous:
		return string(v.Value)
	}
	return "unknown"
}

func verdictWord(v model.Verdict) string {
	switch v.Value {
	case model.VerdictPass:
		return "✓ Pass"
	case model.VerdictFail:
		if admitted(v) {
			return "✕ Fail, as documented"
		}
		return "✕ Fail"
	case model.VerdictVacuous:
		return "○ Vacuous"
	case model.VerdictUnknown:
		return "? Unknown"
	}
	return "? Not judged"
}

// admitted says that the target's documentation admits all that failed.
func admitted(v model.Verdict) bool {
	return len(v.Failures) > 0 && !slices.ContainsFunc(v.Failures, func(f model.Failure) bool { return f.Class != model.Documented })
}

func failureClass(c model.FailureClass) (class, word string) {
	switch c {
	case model.Documented:
		return "documented", "documented"
	case model.BrokenBound:
		return "broken", "beyond the stated bound"
	case model.Broken:
		return "broken", "broken promise"
	}
	return "unknown", "class unknown"
}

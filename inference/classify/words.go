package classify

// maxWord is the longest token that can be part of a type.
const maxWord = 32

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// isWord reports whether a token looks like a verb of a protocol rather than
// data: a letter first, then letters, '-', '_' or ':', at most maxWord bytes.
func isWord(s string) bool {
	if s == "" || len(s) > maxWord || !isLetter(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i]; !isLetter(c) && c != '-' && c != '_' && c != ':' {
			return false
		}
	}
	return true
}

// cut shortens a value to at most n bytes plus "…".
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}

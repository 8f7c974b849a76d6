package model

import "strings"

// excerptSize is how many bytes of a text Excerpt keeps.
const excerptSize = 300

// Excerpt is what a message shows of an answer: its beginning, of an answer over
// HTTP the first line and the beginning of the body, since it is the body that
// patterns are written for. Of more than excerptSize bytes the middle is left out,
// since what a pattern waited for may come last.
func Excerpt(answer string) string {
	if top, body, ok := strings.Cut(answer, "\r\n\r\n"); ok && strings.HasPrefix(answer, "HTTP/") {
		line, _, _ := strings.Cut(top, "\r\n")
		answer = line + " … " + body
	}
	if len(answer) <= excerptSize {
		return answer
	}
	const end = excerptSize / 4
	return strings.ToValidUTF8(answer[:excerptSize-end], "") + "…" + strings.ToValidUTF8(answer[len(answer)-end:], "")
}

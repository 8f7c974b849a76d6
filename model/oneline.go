package model

import "strings"

// OneLine is a text on one line, for a row of a table, a log or a status: what its lines
// say has "; " between, or a blank behind a colon.
func OneLine(text string) string {
	if !strings.ContainsAny(text, "\n\r\t") {
		return text
	}
	out := ""
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		switch {
		case line == "":
			continue
		case strings.HasSuffix(out, ":"):
			out += " "
		case out != "":
			out += "; "
		}
		out += line
	}
	return out
}

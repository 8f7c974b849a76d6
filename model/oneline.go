package model

import "strings"

// OneLine is a text on one line, for a row of a table, a log or a status: what its lines
// say has "; " between.
func OneLine(text string) string {
	if !strings.ContainsAny(text, "\n\r\t") {
		return text
	}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

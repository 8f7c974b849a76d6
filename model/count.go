package model

import (
	"strconv"
	"strings"
)

// Count is a number with its noun, as in "1 run" and "2 runs".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// Joined lists words with commas between them.
func Joined[T ~string](words []T) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}

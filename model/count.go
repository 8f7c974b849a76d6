package model

import "strconv"

// Count is a number with its noun, as in "1 run" and "2 runs".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

package model

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// WantLabelling says what Labelling wants.
const WantLabelling = "its name has 1 to 63 characters that can be seen, blanks within them at most"

// Labelling says whether roles and labels can have a name: those that can be asked for.
func Labelling(name string) bool {
	return name != "" && utf8.RuneCountInString(name) <= 63 && strings.TrimSpace(name) == name && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

package classify

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"netsplit/model"
)

// opener is a model.First that was checked: a message of another layout with which
// a direction may begin. Its bytes would be taken for a message of any length.
type opener struct {
	name   string
	begins []byte
	length *place
	whole  int64 // where length is nil
}

// firstName is a name that is told from the numbers of a type.
var firstName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

func newFirst(at string, m model.First, transport string) (opener, error) {
	at = "frames." + at
	f := opener{name: m.Name, whole: int64(m.Size)}
	var errs []error
	say := func(format string, args ...any) { errs = append(errs, fmt.Errorf(at+format, args...)) }
	if transport == "udp" {
		say(": a datagram is one message: leave it out")
	}
	if !firstName.MatchString(m.Name) {
		say(".name %q: want a word, which is in its type", m.Name)
	}
	var err error
	if f.begins, err = hex.DecodeString(strings.ReplaceAll(m.Begins, " ", "")); err != nil || len(f.begins) == 0 || len(f.begins) > framesText {
		say(".begins %q: want the bytes that tell it from other messages, in hex, such as \"50 52 49\"", m.Begins)
	}
	switch {
	case (m.Length == nil) == (m.Size == 0):
		say(": want one of length and size")
	case m.Length != nil:
		p, err := newPlace(at+".length", *m.Length)
		if err == nil && p.As != "number" {
			err = errors.New(at + ".length: want a number")
		}
		errs = append(errs, err)
		f.length = &p
	case m.Size < len(f.begins) || m.Size > framesLong:
		say(".size: want a message that has at least the bytes with which it begins")
	}
	return f, errors.Join(errs...)
}

func (f *opener) behind(i int, before []opener) error {
	for _, b := range before {
		if len(b.begins) > 0 && bytes.HasPrefix(f.begins, b.begins) {
			return fmt.Errorf("frames.first[%d]: a message that begins so matches %q first: put this one before it", i, b.name)
		}
	}
	return nil
}

func (f *opener) size(b []byte) int64 {
	if f.length == nil {
		return f.whole
	}
	if len(b) < f.length.end() {
		return 0
	}
	n := f.length.number(b)
	if n > framesLong || int64(n)+int64(f.length.Plus) < int64(max(f.length.end(), len(f.begins))) {
		return -1
	}
	return int64(n) + int64(f.length.Plus)
}

// opening is the first of the messages that b begins with; nil if it is another
// one, or while more bytes are needed to tell.
func (f *frames) opening(dir int, b []byte) (one *opener, more bool) {
	for i := range f.first[dir] {
		one := &f.first[dir][i]
		switch n := min(len(b), len(one.begins)); {
		case !bytes.Equal(b[:n], one.begins[:n]):
		case n < len(one.begins):
			return nil, true
		default:
			return one, false
		}
	}
	return nil, false
}

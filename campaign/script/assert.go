package script

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
)

// True asserts that something is so. An assertion that does not hold is a
// failure of the run, and the script goes on: what follows may tell more. words
// name the assertion; without them it is named by its line of source.
func (s *Script) True(ok bool, words ...string) {
	s.assert(words, func() error {
		if !ok {
			return errNot("it is not so")
		}
		return nil
	})
}

// Equal asserts that two values are equal.
func (s *Script) Equal(got, want any, words ...string) {
	s.assert(words, func() error {
		if !reflect.DeepEqual(got, want) {
			return errNot(fmt.Sprintf("it is %#v, not %#v", got, want))
		}
		return nil
	})
}

// NotEqual asserts that two values differ.
func (s *Script) NotEqual(a, b any, words ...string) {
	s.assert(words, func() error {
		if reflect.DeepEqual(a, b) {
			return errNot(fmt.Sprintf("both are %#v", a))
		}
		return nil
	})
}

func (s *Script) assert(words []string, holds func() error) {
	text := strings.Join(words, " ")
	if text == "" {
		text = sourceLine()
	}
	s.step("assert", text, func() (string, error) {
		if err := holds(); err != nil {
			return "", err
		}
		return "it holds", nil
	})
}

// where is where the step under way stands.
func (s *Script) where() string {
	if s.line != nil {
		return s.line()
	}
	f := caller()
	if f.Line == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
}

// caller is the first frame outside of this package's methods.
func caller() runtime.Frame {
	pc := make([]uintptr, 32)
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc)])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "netsplit/campaign/script.") {
			return f
		}
		if !more {
			return runtime.Frame{}
		}
	}
}

// sourceLine is the line of source that asserts, so that the assertion can be
// told from others; its place where the source is not at hand.
func sourceLine() string {
	f := caller()
	b, err := os.ReadFile(f.File)
	if lines := strings.Split(string(b), "\n"); err == nil && f.Line > 0 && f.Line <= len(lines) {
		return strings.TrimSpace(lines[f.Line-1])
	}
	return fmt.Sprintf("the assertion at %s:%d", filepath.Base(f.File), f.Line)
}

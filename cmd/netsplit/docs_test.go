package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/pflag"
)

// pages calls f with every Markdown page of the repository.
func pages(t *testing.T, f func(path, text string)) {
	t.Helper()
	found := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		b, err := os.ReadFile(path)
		found++
		f(path, string(b))
		return err
	})
	if err != nil || found < 20 {
		t.Fatalf("%d pages: %v", found, err)
	}
}

var commandLine = regexp.MustCompile(`(?m)^(?:    |.*\x60)(?:bin/)?netsplit ((?:[^\x60\n\\]|\\\n)+)`)

// TestDocumentedCommands: every netsplit command in the documentation exists and
// takes the flags that it is shown with.
func TestDocumentedCommands(t *testing.T) {
	checked := 0
	pages(t, func(path, text string) {
		for _, m := range commandLine.FindAllStringSubmatch(text, -1) {
			words := shellWords(m[1])
			root := rootCommand()
			c, rest, err := root.Find(words)
			switch {
			case err != nil:
				t.Errorf("%s: netsplit %s: %v", path, m[1], err)
			case c == root || c.DisableFlagParsing:
				t.Errorf("%s: netsplit %s: no such command", path, m[1])
			default:
				checked++
				c.InitDefaultHelpFlag()
				if err := c.ParseFlags(rest); err == nil {
					// Prose may leave arguments out; a command that takes none may get none.
					if args := c.Flags().Args(); c.Args != nil && c.Args(c, nil) == nil && c.Args(c, args) != nil {
						t.Errorf("%s: netsplit %s: %v", path, m[1], c.Args(c, args))
					}
				} else if err != pflag.ErrHelp {
					t.Errorf("%s: netsplit %s: %v", path, m[1], err)
				}
			}
		}
	})
	if checked < 60 {
		t.Errorf("%d commands found: what is looked for is not there", checked)
	}
}

// shellWords splits a command as a shell does, up to a remark, a pipe or an elision.
func shellWords(line string) []string {
	var words []string
	line = strings.ReplaceAll(line, "\\\n", " ")
	quote, word := rune(0), ""
	for _, r := range line + " " {
		switch {
		case quote == 0 && unicode.IsSpace(r):
			switch word {
			case "":
				continue
			case "|", "…", "#", ">", "&", "--":
				return words
			}
			words, word = append(words, word), ""
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		default:
			word += string(r)
		}
	}
	return words
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped = regexp.MustCompile("[^a-z0-9 _-]")
)

// TestDocumentedLinks: what a page of the documentation points to is there, headings
// included.
func TestDocumentedLinks(t *testing.T) {
	pages(t, func(path, text string) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			file := path
			if to != "" {
				file = filepath.Join(filepath.Dir(path), to)
			}
			b, err := os.ReadFile(file)
			if info, statErr := os.Stat(file); statErr == nil && info.IsDir() && anchor == "" {
				continue
			}
			if err != nil {
				t.Errorf("%s: %s: %v", path, m[1], err)
				continue
			}
			found := anchor == ""
			for _, h := range heading.FindAllStringSubmatch(string(b), -1) {
				found = found || strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-") == anchor
			}
			if !found {
				t.Errorf("%s: %s has no heading #%s", path, file, anchor)
			}
		}
	})
}

package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netsplit/api/client"
	"netsplit/sut"
)

// flagError says what is wrong with a command's flags. One that only other commands
// have is told with what to use in its place.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		if hint := elsewhere(c, unknown.GetSpecifiedName()); hint != "" {
			return usage("%w: %s; see %s --help", err, hint, c.CommandPath())
		}
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		return usage("%w%s; see %s --help", err, sut.DidYouMean(unknown.GetSpecifiedName(), names), c.CommandPath())
	}
	return usage("%w; see %s --help", err, c.CommandPath())
}

// inFlags words what the API refused of a request in the flags of the command that made it. An
// error of another kind, or about what no flag gives, stays as it is.
func inFlags(c *cobra.Command, err error) error {
	var p *client.Problem
	if !errors.As(err, &p) || p.Status != http.StatusUnprocessableEntity || len(p.Errors) == 0 {
		return err
	}
	var lines []string
	for _, e := range p.Errors {
		flag := flagOf(c, e.Location)
		if flag == nil {
			return err
		}
		text := e.Message
		if list, ok := strings.CutPrefix(text, `expected value to be one of "`); ok {
			known := strings.Split(strings.TrimSuffix(list, `"`), ", ")
			near := ""
			for _, word := range strings.Split(strings.Trim(flag.Value.String(), "[]"), ",") {
				if !slices.Contains(known, word) {
					near = sut.DidYouMean(word, known)
				}
			}
			text = "want one of " + strings.Join(known, ", ") + near
		}
		lines = append(lines, fmt.Sprintf("--%s: %s", flag.Name, text))
	}
	return usage("%s; see %s --help", strings.Join(slices.Compact(lines), "\n  "), c.CommandPath())
}

// flagNames are flags whose names are not those of the API.
var flagNames = map[string]string{"faults": "kinds", "runs": "faults"}

// flagOf is the flag that gives a place in a request's body; nil if none does.
func flagOf(c *cobra.Command, location string) *pflag.Flag {
	name, ok := strings.CutPrefix(location, "body.")
	if !ok {
		return nil
	}
	name, _, _ = strings.Cut(name, "[")
	var kebab strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			kebab.WriteByte('-')
		}
		kebab.WriteRune(unicode.ToLower(r))
	}
	return c.Flags().Lookup(cmp.Or(flagNames[name], kebab.String()))
}

// instead are flags that are mistaken for others, by command and flag.
var instead = map[[2]string]string{
	{"netsplit serve", "api"}:             "the API's address is --listen",
	{"netsplit serve", "api-token-file"}:  "the API's token is in --token-file",
	{"netsplit serve", "api-fingerprint"}: "it prints the fingerprint of its own certificate (--api-cert)",
}

// elsewhere says what to use in place of a flag that the command does not have, or
// which commands have it; "" if none does.
func elsewhere(c *cobra.Command, flag string) string {
	if hint := instead[[2]string{c.CommandPath(), flag}]; hint != "" {
		return hint
	}
	var have []string
	for sub := range commands(c.Root()) {
		if sub.Flags().Lookup(flag) != nil && !slices.Contains(have, sub.CommandPath()) {
			have = append(have, sub.CommandPath())
		}
	}
	if len(have) == 0 {
		return ""
	}
	return c.CommandPath() + " would not use it; it is a flag of " + strings.Join(have, ", ")
}

func commands(c *cobra.Command) func(yield func(*cobra.Command) bool) {
	return func(yield func(*cobra.Command) bool) { walk(c, yield) }
}

func walk(c *cobra.Command, yield func(*cobra.Command) bool) bool {
	if !yield(c) {
		return false
	}
	for _, sub := range c.Commands() {
		if !walk(sub, yield) {
			return false
		}
	}
	return true
}

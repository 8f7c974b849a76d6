package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError says what is wrong with a command's flags. One that only other commands
// have is told with what to use in its place.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		if hint := elsewhere(c, unknown.GetSpecifiedName()); hint != "" {
			return usage("%w: %s; see %s --help", err, hint, c.CommandPath())
		}
	}
	return usage("%w; see %s --help", err, c.CommandPath())
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

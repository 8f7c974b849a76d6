package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the reference of commands")

const commandsReference = "../../docs/commands.md"

// TestCommandsReference: the reference lists all commands with their flags, as the program
// explains them.
func TestCommandsReference(t *testing.T) {
	var shown []*cobra.Command
	for c := range commands(rootCommand()) {
		if c.Runnable() && !c.Hidden && c.HasParent() && c.Name() != "help" && c.Name() != "completion" && c.Parent().Name() != "completion" {
			shown = append(shown, c)
		}
	}
	slices.SortFunc(shown, func(a, b *cobra.Command) int { return strings.Compare(a.CommandPath(), b.CommandPath()) })
	if len(shown) < 40 {
		t.Errorf("only %d commands", len(shown))
	}
	var b strings.Builder
	b.WriteString("# Commands\n\nGenerated from what the program says of them, by `go test ./cmd/netsplit -run CommandsReference -rewrite`.\n" +
		"Commands that ask a daemon take `--api`, `--api-token-file`, `--api-fingerprint` and `--insecure` ([api.md](api.md)); those flags are left out here.\n" +
		"Most commands use your running daemon; without one, they do the work themselves. `target check --run` always does it itself, and so does\n" +
		"`script run`, unless `--api` names a daemon. `export`, `query`, `check`, `judge`, `points` and `policy` read records below `--runs-dir` (default `runs`): give the\n" +
		"daemon's, or `--api` (not for `check`). `target list` and `script list` list what comes with this program, or with `--api` what a daemon has.\n\n| command | |\n|---|---|\n")
	for _, c := range shown {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"), c.Short)
	}
	for _, c := range shown {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n```\n%s\n```\n", c.CommandPath(), capital(c.Short), c.UseLine())
		if c.Long != "" {
			fmt.Fprintf(&b, "\n```text\n%s\n```\n", strings.TrimSpace(c.Long))
		}
		var rows []string
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" || strings.HasPrefix(f.Name, "api") && f.Name != "api-cert" && f.Name != "api-key" || f.Name == "insecure" && c.Name() != "serve" {
				return
			}
			name := "`--" + f.Name + "`"
			if f.Shorthand != "" {
				name = "`-" + f.Shorthand + "`, " + name
			}
			kind, words := pflag.UnquoteUsage(f)
			if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" {
				kind += ", default `" + f.DefValue + "`"
			}
			rows = append(rows, fmt.Sprintf("| %s | %s | %s |", name, strings.TrimPrefix(kind, ", "), strings.NewReplacer("|", `\|`, "\n", " ").Replace(words)))
		})
		if len(rows) > 0 {
			fmt.Fprintf(&b, "\n| flag | value | |\n|---|---|---|\n%s\n", strings.Join(rows, "\n"))
		}
		if c.Example != "" {
			fmt.Fprintf(&b, "\n```sh\n%s\n```\n", strings.Trim(c.Example, "\n"))
		}
	}
	if *rewrite {
		if err := os.WriteFile(commandsReference, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(commandsReference); err != nil || string(have) != b.String() {
		t.Errorf("%s is not what the program says (%v): run go test ./cmd/netsplit -run CommandsReference -rewrite", commandsReference, err)
	}
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

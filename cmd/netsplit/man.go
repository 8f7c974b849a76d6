package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand writes manual pages, for packages. Their date is that of SOURCE_DATE_EPOCH, so
// that equal programs can give equal pages.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "write the manual pages, one for each command, to a folder", Hidden: true,
		Args: exactArgs(1, "a folder"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("manual pages: %w", err)
			}
			root := c.Root()
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "netsplit " + version, Manual: "netsplit"}, args[0])
		},
	}
}

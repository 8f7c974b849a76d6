// Package targets holds the targets that come with netsplit, embedded.
package targets

import "embed"

// FS holds for each built-in target <name>/target.yaml and the files beside it
// whose name has a dot: scripts, catalogues, locks.
//
//go:embed */*.*
var FS embed.FS

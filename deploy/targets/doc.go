// Package targets holds the targets that come with netsplit, embedded.
package targets

import "embed"

// FS holds for each built-in target <name>/target.yaml and the files beside it
// whose name has a dot: scripts, catalogues, locks. Its scripted tests are in
// <name>/scripts.
//
//go:embed */*.* */scripts/*.yaml
var FS embed.FS

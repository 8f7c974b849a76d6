// Package targets holds the target files that come with netsplit, embedded.
package targets

import "embed"

// FS holds <name>/target.yaml for each built-in target.
//
//go:embed */target.yaml
var FS embed.FS

// Package arch holds the architecture as tests: which room may import which,
// and why.
package arch

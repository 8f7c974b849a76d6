// Package scripts tests scripted tests end to end, in Go and as files, on real
// systems and a real Open vSwitch. It holds tests only; listings_test.go has the
// two listings of the NEAT paper.
package scripts

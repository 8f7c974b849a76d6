// Package gossip tests netsplit end to end on the gossip program: the bug is
// found where it is, and nothing is found where it is not. It holds tests
// only.
package gossip

// Package testbed tests netsplit on testbeds that are not its own: bridges that
// somebody else made, with rules of others on them, and hosts that are reached
// by ssh.
package testbed

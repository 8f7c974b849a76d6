// Package redis tests netsplit end to end on a real Redis with Sentinels on a
// real Open vSwitch. It holds tests only.
package redis

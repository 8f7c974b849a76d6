// Package service tests the daemon and its REST API end to end, on labs and on
// an Open vSwitch that was set up by hand. It holds tests only.
package service

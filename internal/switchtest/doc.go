// Package switchtest is a model of an OpenFlow 1.3 switch for tests: it speaks
// the protocol over any net.Conn and answers where a packet goes.
//
// It follows the specification, and Open vSwitch where the specification leaves a choice. It
// has no groups and sees only the outermost VLAN tag. A meter drops everything or nothing.
// Time comes from Config.Now, so that tests decide when rules expire.
package switchtest

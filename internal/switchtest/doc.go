// Package switchtest is a model of an OpenFlow 1.3 switch for tests: it speaks
// the protocol over any net.Conn and answers where a packet goes.
//
// It keeps to the specification where that is definite and to Open vSwitch
// where it is not. It knows no groups, and
// of VLAN tags the outermost. A meter drops all or nothing. Time comes from Config.Now, so that tests decide
// when rules expire.
package switchtest

// Package learn listens to switches and draws the network (package sketch) from what they
// report, to write a first testbed file.
//
// It does not change the traffic, and touches no rules of others. To see packets that tell
// of hosts, such as ARP, it adds a rule one priority above each rule of others: the new
// rule does the same with these packets and also copies them to the controller (plan.go).
// Its rules expire within seconds unless it renews them. It sends nothing but LLDP.
package learn

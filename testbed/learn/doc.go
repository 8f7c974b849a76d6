// Package learn listens to switches and draws the network (package sketch) from
// what they tell: to fill a testbed file that nobody has written.
//
// The switches' traffic stays as it is. Rules of others are not touched; for each
// of them, copies of the packets that tell of hosts are had by a rule one
// priority above that does the same with them, beside (plan.go). What is
// installed expires by itself within seconds if nobody renews it, and nothing is
// sent but LLDP.
package learn

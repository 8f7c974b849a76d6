// Package sketch draws a network from what its switches tell and what is heard
// at their ports, and makes a testbed file of it: ports from port-desc, hosts
// from the senders of ARP, ND and other IP packets, links from LLDP frames that
// left one switch and came to another.
//
// It decides nothing that a person must decide. What is heard twice, or at a
// port that is not one host's, is written as a comment with what was heard.
package sketch

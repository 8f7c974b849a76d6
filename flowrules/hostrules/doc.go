// Package hostrules compiles partitions to the rules by which the hosts of a
// testbed drop packets themselves, where there is no switch to do it.
//
// It is pure: Compile maps hosts and partitions to the rules of one host. What
// the rules are put into is package testbed/nft's business.
//
// Every link is cut at both of its ends, at the network device, outside of all
// that the host's kernel does with a packet:
//
//	hook     at the       drops what
//	egress   sender       goes to the receiver's MAC or address, or is an ARP
//	                      request for that address
//	ingress  receiver     has the sender's MAC or address as its source
//
// What goes to a group is dropped at ingress only, since others may have it.
//
// The MAC stands for everything between hosts of one Ethernet: IPv6, fragments,
// broadcasts, VLANs and unknown types are in it. The address stands for hosts
// behind a router, where MACs do not arrive.
package hostrules

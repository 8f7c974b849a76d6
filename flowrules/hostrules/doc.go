// Package hostrules compiles partitions to the rules by which the hosts of a
// testbed drop packets themselves, where there is no switch to do it.
//
// It is pure: Compile maps hosts and partitions to the rules of one host. Package
// testbed/nft puts them into the kernel.
//
// Every link is cut at both ends, at the network device: after all that the sender's kernel
// does with a packet, and before all that the receiver's kernel does:
//
//	hook     at the       drops what
//	egress   sender       goes to the receiver's MAC or address, or is an ARP
//	                      request for that address
//	ingress  receiver     has the sender's MAC or address as its source
//
// Broadcasts and multicasts are dropped at ingress only, since other hosts may get them.
//
// The MAC stands for everything between hosts of one Ethernet: IPv6, fragments,
// broadcasts, VLANs and unknown types are in it. The address stands for hosts
// behind a router, where MACs do not arrive.
package hostrules

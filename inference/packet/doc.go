// Package packet makes and reads frames: Ethernet with any VLAN tags, ARP, IPv4,
// IPv6, TCP, UDP, ICMP and ICMPv6. Whoever reads only the head of a frame (head.go)
// reads it as the decoder does (packet.go), which makes a model.Packet of it.
//
// Any bytes decode to something. What is wrong with a frame is said in
// model.Packet.Note, and the fields read before the fault are kept. Payload is
// what the IP and UDP length fields cover: the padding of short Ethernet
// frames is never part of it. Checksums are not verified: a capture on the
// sending machine sees them before the network card has filled them in.
//
// TCP and UDP are read, and all layers are made, by gopacket.
package packet

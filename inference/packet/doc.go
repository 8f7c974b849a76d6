// Package packet decodes Ethernet frames into model.Packet: Ethernet with
// any VLAN tags, ARP, IPv4, IPv6, TCP, UDP, ICMP and ICMPv6.
//
// Any bytes decode to something. What is wrong with a frame is said in
// model.Packet.Note, and the fields read before the fault are kept. Payload is
// what the IP and UDP length fields cover: the padding of short Ethernet
// frames is never part of it. Checksums are not verified: a capture on the
// sending machine sees them before the network card has filled them in.
//
// The layers are those of gopacket; where its decoder reads out of bounds or
// mistakes padding for payload (v1.1.19: ARP address sizes, IPv6 hop-by-hop)
// the length is checked here first.
package packet

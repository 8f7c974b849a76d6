// Package inference turns frames into messages and observations: Pipeline.Step
// takes one frame and returns what it brought.
//
// The steps, each a package of its own, in the order in which data flows:
//
//	frame         model.Frame, from either tap or from a capture (pcap, tap)
//	-> packet     Ethernet, IP, TCP, UDP, ARP fields     (packet)
//	-> stream     TCP bytes in order, 64-bit offsets      (stream)
//	-> message    framed and typed by payload bytes       (classify)
//	-> observation  values of node variables              (state)
//	-> invariant  mined offline from clean runs           (invariant)
//
// Nothing here knows which tap a frame came from. Frames must come in the order
// in which they crossed the switch; what comes out is a function of that
// sequence, so a run can be read again from its capture.
//
// A message belongs to the packet that made its type certain, or that
// completed it. Bytes that come again are the same message: Step.Again has its
// number. Transport events are messages too: "tcp syn :6379" (a SYN without
// ACK, with the port it asks for), "tcp fin", "tcp rst", "arp who-has".
// Answers that a kernel gives by itself (SYN-ACK, ARP reply, bare ACK, ICMP)
// are not.
package inference

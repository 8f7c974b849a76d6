// Package flowrules compiles partitions and taps over the hosts of one switch
// to OpenFlow 1.3 rules, and computes the steps that turn what a switch holds
// into what it should hold.
//
// It is pure: Compile maps an Input to a Plan, Diff maps a flow dump and a
// Plan to ordered steps. Nothing here talks to a switch or knows the time.
//
// The pipeline has three tables:
//
//	table      prio  match                          do
//	0 admit     400  in_port=gate port, VLAN n      pop VLAN, output:n
//	            400  in_port=gate port, VLAN 4094   output:IN_PORT
//	            300  in_port=CONTROLLER             goto 2
//	            210  in_port=n, one bit of eth_src  metadata:=n, goto 1
//	            200  in_port=n (host n)             metadata:=n, goto 1
//	1 policy    410  TCP of a→b cut, with reset     output:CONTROLLER
//	            400  a→b cut                        (drop)
//	            391  neighbour discovery of a→b     (drop), or what else is done with a→b
//	            390  some traffic of a→b cut        (drop)
//	            300  a→b gated, packet-in           output:CONTROLLER
//	            300  a→b gated, gate port           push VLAN a, output:gate port
//	            100  a→b mirrored                   output:mirror port, goto 2
//	             80  a→b, neither                   meter a→b, goto 2
//	          60-62  part of a's is cut, group      output: hosts that traffic of a still reaches, taps
//	             50  a is cut or tapped, group      output: hosts a still reaches, taps
//	              0  any                            goto 2
//	2 forward   300  a→b cut behind the gate        (drop)
//	            291  neighbour discovery of it      (drop), or output:port of b
//	            290  some traffic of it             (drop)
//	            200  eth_dst=MAC of host m          output:m
//	            100  metadata=n, group              output: every other host
//
// a→b stands for two matches that share no packet:
//
//   - unicast frames: in_port=a, eth_dst=MAC of b. Any Ethernet type matches, so
//     fragments, IPv6 and addresses that b takes over later are included.
//   - broadcast ARP requests for b's address: in_port=a, eth_dst=ff:ff:ff:ff:ff:ff,
//     arp_tpa=b.
//
// Group means that the I/G bit of the destination is set (IEEE 802-2014 §8.2.2):
// broadcast and multicast.
//
// The rules of priority 210 do what those of 200 do. They match another bit of the
// source address after every change: see KindFresh.
//
// # Gate
//
// A gate has one of two transports. By packet-in, held packets go to the controller
// and return in packet-outs. By a gate port, they leave and return with one more VLAN
// tag on top of their own. On the way out, the tag is the port by which the packet
// came in; on the way back, the port by which it is to leave.
//
// A returning packet meets one rule, which removes the tag and sends the packet to
// that port. It reaches no other table. So it cannot loop, and it cannot reach a host
// that its release did not name, as a broadcast would that the switch flooded again.
// The switch sends VLAN 4094 back to the gate port: its return shows that everything
// written before it has been forwarded.
//
// A packet that a host sends to a group goes at once to the hosts that no gate keeps
// it from. For all other hosts together it goes once to the gate, or to a mirror
// port. Whoever decides releases it to each of them separately.
//
// # Cuts
//
// If the switch has meters, each directed pair that is neither gated nor mirrored has
// a meter of its own and goes through it before anything is cut. Turned down, the
// meter passes 1 kbit/s, in which no frame above 125 bytes fits; the drop rules that
// follow hold back the rest. Rules alone cut flooded packets, except the ARP requests
// above, and some traffic of a pair (priorities 390, 290).
//
// A partition with effect reset that is not behind the gate sends TCP packets that
// want to cross to the controller. The controller answers them, and the switch
// forwards them nowhere else.
//
// Neighbour discovery (ICMPv6 133 to 137) goes with ARP, all other ICMPv6 with ICMP.
// OpenFlow cannot match "all other types". So if ICMP is cut and ARP is not, rules of
// a higher priority (391, 291) let neighbour discovery continue.
//
// Each directed pair has exactly one class, so its rules never compete: cut wins over
// gate, gate over mirror, mirror over meter. Every rule that holds packets back, or
// names a meter that is turned down, has a hard timeout. Unless the controller renews
// it, the switch heals by itself.
package flowrules

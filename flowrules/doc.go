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
//	          60-62  some of a's is cut, group      output: hosts that traffic of a still reaches, taps
//	             50  a is cut or tapped, group      output: hosts a still reaches, taps
//	              0  any                            goto 2
//	2 forward   300  a→b cut behind the gate        (drop)
//	            291  neighbour discovery of it      (drop), or output:port of b
//	            290  some traffic of it             (drop)
//	            200  eth_dst=MAC of host m          output:m
//	            100  metadata=n, group              output: every other host
//
// a→b stands for two matches that share no packet: unicast frames (in_port=a,
// eth_dst=MAC of b; any Ethernet type, so fragments, IPv6 and addresses b takes
// over later are in it) and broadcast ARP requests for b's address (in_port=a,
// eth_dst=ff:ff:ff:ff:ff:ff, arp_tpa=b). Group means the I/G bit of the
// destination is set (IEEE 802-2014 §8.2.2): broadcast and multicast.
//
// The rules of priority 210 do what those of 200 do, and look at another bit after
// every change: see KindFresh.
//
// A gate has one of two transports. By packet-in, held packets go to the
// controller and come back in packet-outs. By a gate port they leave the switch
// with a VLAN tag on top that says the port they came in by, and come back with
// one that says the port they are to leave by; tags of their own stay beneath.
// What a host sends to a group goes at once to the hosts that no gate keeps it from,
// and to the gate, or to a mirror port, once for all the others: who decides lets it go
// to each of them by itself.
//
// What comes back meets one rule, which takes the tag off and sends it to the
// port of a host: it reaches no other table, so it can neither go round in a
// loop nor to a host that its release did not name, as a broadcast would that
// were flooded from there. VLAN 4094 is turned back in the switch: what comes
// back of it shows that everything written before it has been forwarded.
//
// Where the switch has meters, every other directed pair goes through one of its
// own, in tables 0 to 2 before anything is cut. Turned down it lets 1 kbit/s
// pass, in which no frame above 125 bytes fits; the drop rules that follow hold
// back the rest. What is flooded, but for the ARP requests above, and what is cut
// by traffic (priorities 390, 290) is cut by rules alone.
//
// A partition that resets connections and is not behind the gate hands the
// controller what TCP packets want to cross: it answers them, and they go no further.
//
// Neighbour discovery (ICMPv6 133 to 137) goes with ARP, and all other ICMPv6 with
// ICMP. OpenFlow cannot match "all other types", so where ICMP is cut and ARP is not,
// rules above have neighbour discovery go on.
//
// Each directed pair has exactly one class, so its rules never compete: cut
// wins over gate, gate over mirror, mirror over meter. Every rule that holds
// packets back, or names a meter that is turned down, carries a hard timeout:
// unless it is renewed, the switch heals by itself.
package flowrules

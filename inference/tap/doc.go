// Package tap reads the frames that arrive on a network interface, as the far
// end of a switch's mirror port, through an AF_PACKET socket (packet(7)), and
// reads and writes those of a gate port.
//
// Frames come in the order in which the kernel received them, with its time
// stamps, in batches (recvmmsg). Frames that this machine sends on the
// interface are left out. The kernel strips VLAN tags; they are put back from
// PACKET_AUXDATA, so that a frame is what was on the wire. What the kernel had
// to drop because the reader was too slow is counted.
//
// Of the far end of a gate port the outermost VLAN tag is handed over beside
// the frame, and put on what is written (sendmmsg).
//
// Needs CAP_NET_RAW, and CAP_SYS_ADMIN to enter another network namespace.
package tap

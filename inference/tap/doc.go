// Package tap reads frames from the far end of a switch's mirror port, and reads and writes
// frames at the far end of a gate port. The far end is a network interface, which it opens
// as an AF_PACKET socket (packet(7)).
//
// Frames come in batches (recvmmsg), in the order in which the kernel received them, with
// its time stamps. Frames that this machine sends on the interface are left out. The kernel
// strips VLAN tags; package tap puts them back from PACKET_AUXDATA, so that a frame is what
// was on the wire. It counts what the kernel dropped because the reader was too slow.
//
// At a gate port, package tap returns the outermost VLAN tag beside the frame, and puts the
// given tag on a frame that it writes (sendmmsg).
//
// It needs CAP_NET_RAW, and CAP_SYS_ADMIN to enter another network namespace.
package tap

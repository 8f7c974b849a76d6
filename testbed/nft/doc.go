// Package nft holds the rules of flowrules/hostrules in one table of the kernel's
// nftables, in the network namespace that it runs in.
//
// The table is of the netdev family, with a chain at ingress and one at egress of
// the device that has the host's address (Linux 5.16 and later). Nobody else's
// tables are read or touched, and an accept of theirs does not overrule a drop.
//
// The rules never outlive their process, by two means of the kernel. The table belongs to
// the socket that made it (NFT_TABLE_F_OWNER, Linux 5.12): it goes when the process ends,
// however that ends, and until then others cannot change it. And both chains first look for
// the lease, an element of a set with a timeout. When that has run out, everything passes.
//
// The sender must not notice a drop, as it would not notice a loss on the wire. But if a
// packet is dropped at the output or postrouting hook, and in part at egress, the sender
// gets an error (EPERM, ENOBUFS), and TCP takes the packet for not sent. So at egress the
// rules forward packets to a device that does not exist: the kernel frees them and reports
// success. Only at ingress they drop.
package nft

// Package nft holds the rules of flowrules/hostrules in one table of the kernel's
// nftables, in the network namespace that it runs in.
//
// The table is of the netdev family, with a chain at ingress and one at egress of
// the device that has the host's address (Linux 5.16 and later). Nobody else's
// tables are read or touched, and an accept of theirs does not overrule a drop.
//
// Nothing outlives whoever asked for it, by two means of the kernel. The table
// belongs to the socket that made it (NFT_TABLE_F_OWNER, Linux 5.12): it goes when
// the process ends, however it ends, and until then others cannot change it. And
// both chains begin by looking for the lease, an element of a set with a timeout:
// once that has run out, everything passes.
//
// No sender is told. What is dropped at the output and postrouting hooks, and in
// part what is dropped at egress, comes back to the sender as an error (EPERM,
// ENOBUFS), and TCP takes it for not sent; nothing of that is so when a packet is
// lost on the wire. So at egress packets are forwarded to a device that
// does not exist, which frees them and reports success, and only at ingress
// dropped.
package nft

// Package hosts tests netsplit on a testbed without a switch: hosts on an ordinary
// Ethernet that drop packets themselves (backend: nftables). It holds tests only.
package hosts

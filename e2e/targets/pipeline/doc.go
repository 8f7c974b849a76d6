// Command pipeline is a small block store that writes through a chain of data
// nodes, as in Figure 1 of FATE (NSDI 2011), with five bugs that flags switch on:
// they need one, two and three faults of different kinds. See README.md.
//
// With -role name it is the name node, with -role data a data node, with -role
// write the client that writes blocks, with -role read the one that reads them all
// in the end.
package main

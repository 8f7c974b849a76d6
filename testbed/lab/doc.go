// Package lab builds the testbed that netsplit brings along: hosts as network
// namespaces, each on a veth pair, on one Open vSwitch bridge per lab, on one
// Linux machine.
//
// A lab hands the rest of the program nothing but a model.Testbed. Several
// labs live side by side by name, made by several processes at once; bridges,
// namespaces and labs that are not ours are left alone.
//
// What a lab consists of is written to <run directory>/labs/<name>.json
// before the first piece of it exists, with the process that owns it. Every
// Up and Down first removes what dead owners left, so killing netsplit at any
// moment leaves nothing that the next command does not clean.
//
// Facts about Open vSwitch that shape this package (receive buffers, checksum
// offload, reconnect back-off) were measured on OVS 3.1 with its userspace
// datapath.
package lab

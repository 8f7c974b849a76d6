// Package proc starts processes on hosts of a testbed, watches them, and ends
// them with all their children.
//
// A host is reached through its exec prefix (model.TestbedHost.Exec), which is
// expected to replace itself by the command it runs, on this machine, as
// nsenter and ip netns exec do. Working directory, environment and signals
// then reach the command itself. Behind ssh (remote.go) they are brought there.
//
// No process outlives netsplit: the kernel kills it when netsplit dies
// (PR_SET_PDEATHSIG), and what a target has forked by then dies with its lab. On
// a remote host the end of the connection does it.
//
// A process of a target has the rights of an Identity. netsplit starts its own program, which
// takes on these rights (ConfineMain) and then executes the command.
package proc

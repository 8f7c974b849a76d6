// Package trust lets the daemon and a command authenticate each other: by a socket whose
// peer the kernel names, or by a token from a file. A token is never a flag, because
// everybody on the machine can read flags in the process list.
package trust

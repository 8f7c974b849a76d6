// Package trust is what daemon and command believe one another by: sockets
// whose other end the kernel names, and files of tokens. A token is never a
// flag, which everybody on the machine can read in the process list.
package trust

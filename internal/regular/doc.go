// Package regular opens files for somebody else: what a client of the API asked
// for, or what a run left. Such a file is a regular one below its folder. A link
// may lead elsewhere, a FIFO blocks who opens it, a device does something.
package regular

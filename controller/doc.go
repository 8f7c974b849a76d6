// Package controller accepts OpenFlow 1.3 switches over TCP and keeps a
// session with each: handshake, keepalive, requests with their replies,
// barriers, and packet-ins handed on in arrival order.
//
// Controller (controller.go) listens; a session is a Switch (switch.go), which begins
// with a handshake (handshake.go), reads (read.go), writes (outbox.go), asks (ask.go)
// and has a role (role.go).
//
// A session has one goroutine that reads and one that writes. The reader
// answers echo requests and calls the Handler; it never waits for the writer.
// What is sent because of packet-ins that were read together leaves together,
// written by the reader as far as the socket takes it at once. All else, and
// the rest, is the writer's: it sends whatever has been queued since its last
// write in one go.
//
// A switch that sends nonsense loses its own connection and no other.
package controller

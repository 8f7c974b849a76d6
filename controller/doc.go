// Package controller accepts OpenFlow 1.3 switches over TCP and keeps a
// session with each: handshake, keepalive, requests with their replies,
// barriers, and packet-ins handed on in arrival order.
//
// Controller (controller.go) listens; a session is a Switch (switch.go), which begins
// with a handshake (handshake.go), reads (read.go), writes (outbox.go), asks (ask.go)
// and has a role (role.go).
//
// A session has one goroutine that reads and one that writes. The reader answers echo
// requests and calls the Handler; it never waits for the writer. It collects what is sent
// in response to packet-ins that it read together, and then writes as much of it as the
// socket takes without blocking. The writer sends the rest, and everything else. Each time
// it writes all that was queued since its last write.
//
// A switch that sends nonsense loses its own connection and no other.
package controller

// Package doctor examines a testbed and says what will work on it: its switches
// by a session with each, its hosts by an agent on each.
//
// It asks for little and tries instead. Rules of every kind that netsplit needs
// are installed for a moment, with a sender's address in their match that
// nobody has, so that they touch no traffic; what the switch refuses, or keeps
// other than as told, names what will not work. Nothing is changed that is not
// taken back, and trial rules expire by themselves.
package doctor

// Package doctor examines a testbed and says what will work on it: its switches
// by a session with each, its hosts by an agent on each.
//
// It tries things rather than asking the switch about them. For a moment it installs rules
// of every kind that netsplit needs. They match the address of a sender that does not
// exist, so they touch no traffic. If the switch refuses a rule, or stores it differently,
// that will not work. It undoes every change, and trial rules also expire by themselves.
package doctor

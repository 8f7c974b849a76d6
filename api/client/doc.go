// Package client speaks the REST interface of a running netsplit daemon.
//
// Its types are those of package wire. An answer of the daemon that is an
// error is a *Problem, whose text says what to do; errors.Is finds
// model.ErrNotFound and its kin in it. That no daemon is there is
// ErrNoDaemon.
package client

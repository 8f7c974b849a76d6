// Package client speaks the REST interface of a running netsplit daemon.
//
// Its types are those of package wire. If the daemon answers with an error, the error is a
// *Problem, whose text says what to do; errors.Is finds model.ErrNotFound and the like in
// it. If no daemon listens, the error is ErrNoDaemon.
package client

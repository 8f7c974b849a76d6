// Package framing finds out how a binary protocol nobody described tells its
// messages apart: where a message has its length, and where its type. What it
// suggests is a model.Framing, which reader "frames" reads.
//
//   - Port (port.go) keeps the bytes of the connections to a port, and where
//     packets ended.
//   - chain.go tries lengths at fixed places. A length is right when messages
//     chain: each begins where the one before it ends, through whole streams,
//     and packets end where messages do, much more often than by chance.
//   - types.go chooses the numbers that make the type by description length: a
//     type is what makes everything else in a message shorter to tell, and an id,
//     a counter or a node's name does not.
//   - Suggest (suggest.go) joins them and says in words what speaks for it.
//
// The result is a function of the events that were added.
package framing

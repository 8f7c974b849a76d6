// Package framing finds out how a protocol nobody described tells its messages
// apart: where a binary one has the length of a message, and where its type,
// which is a model.Framing that reader "frames" reads; which lines of a text
// protocol count bytes that follow them, which are model.Lines for reader "text".
//
//   - Port (port.go) keeps the bytes of the connections to a port, and where
//     packets ended.
//   - chain.go tries lengths at fixed places. A length is right when messages
//     chain: each begins where the one before it ends, through whole streams,
//     and packets end where messages do, much more often than by chance.
//   - types.go chooses the numbers that make the type by description length: a
//     type is what makes everything else in a message shorter to tell, and an id,
//     a counter or a node's name does not.
//   - correlate.go finds the id by which an answer tells what it answers, which is
//     then its type.
//   - lines.go has the lines with which packets begin vote on how many bytes
//     follow them: as many as which of their words says.
//   - Suggest (suggest.go) joins them and says in words what speaks for it.
//
// The result is a function of the events that were added.
package framing

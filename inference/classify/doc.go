// Package classify frames the bytes of a connection into messages and gives
// each message a type derived from its payload bytes.
//
// A Dissector sees both directions of one connection, as ordered bytes, and
// emits a Unit per message. Names lists those written in Go: readers of one
// system's protocol each, text (lines), json (values) and fallback (direction
// turns, for any other port). The target file chooses one per port; the port only
// chooses the reader, never the type: a reader that does not recognise bytes says
// model.TypeUnknown. TLS is told by its first bytes, whatever reader is chosen:
// a reader that searches ciphertext for its messages finds some by chance.
//
// Rules every dissector keeps, checked by the fuzz tests:
//   - the units of a direction do not overlap and come in stream order; with
//     the gaps they cover every byte, after Close;
//   - how the bytes were cut into segments changes nothing, as long as the
//     order in which the two directions were delivered is the same at message
//     boundaries;
//   - memory is bounded: a long message is not kept, only its head;
//   - types do not grow with data: they never hold keys, values or ids. Where a
//     word may be a verb or data, Unit.Broad is the type without it, and a
//     Vocabulary says how many such words are believed.
package classify

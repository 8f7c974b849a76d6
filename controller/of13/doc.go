// Package of13 turns OpenFlow 1.3 messages into Go values and back; it does no
// I/O of its own and imports only the standard library.
//
// Section numbers in the comments are those of the OpenFlow Switch
// Specification 1.3.4 and 1.3.5 (chapter 7; 1.3.0 to 1.3.3 call it appendix A,
// so that 7.3.4 is A.3.4 there).
//
// # What comes back unchanged
//
// A message that [Parse] accepts is written by [Append] with the same bytes,
// except for padding: section 7.1.2 makes a receiver ignore its content, so
// that it is accepted whatever it holds and always written as zeros. Bytes
// after the terminating NUL of a fixed-size name count as padding. What the
// package does not model survives as raw bytes: messages as [Raw], multipart
// bodies as [RawBody], match fields as an [OXM] of any class, actions as
// [RawAction], instructions as [RawInstruction].
//
// # Tolerance
//
// Parsing checks structure: lengths, alignment, counts. Whether the content
// makes sense (prerequisites, duplicates, masks) is a question for
// [Match.Validate]. A failure to parse is a [*ParseError], which carries the
// type and code that the specification has for it and can be sent back with
// [ParseError.Reply].
//
// # Second opinions
//
// The tests hold every sample and every encoding of Open vSwitch's against
// ovs-ofctl, in both directions, and field by field against tshark. Where one
// of them is of another opinion, the test says who is right and why: see the
// samples that are refused, tsharkDisagrees, ovsErrorNames and validateStricter.
// With the tag vectors they read the test messages of other projects, too, from
// checkouts: make vectors.
//
// # Speed
//
// [PacketIn.Decode] and [AppendPacketOut] do not allocate.
package of13

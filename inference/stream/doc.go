// Package stream puts the TCP segments of each connection in order, one
// direction at a time, and says what was wrong with them.
//
// Table.Step takes one decoded packet and returns events: bytes that are next
// in order (Data), bytes that came before (Again), bytes that came before and
// were different then (Differs), bytes that never came (Gap), and the
// transport's own events (SYN, FIN, RST). Nothing is guessed:
//
//   - a retransmission is reported by the offsets that came once more, never
//     as new bytes; where copies differ the first one stands;
//   - a segment ahead of its turn waits. The hole before it becomes a Gap only
//     when the receiver acknowledges bytes of the hole (the tap missed them) or
//     when more waits than Config allows;
//   - sequence numbers (RFC 9293 §3.4) are compared as int32(b-a) and unfolded
//     to 64-bit offsets: offset 0 is the first payload byte, however often the
//     sequence number wraps;
//   - a SYN with a new initial sequence number on known ports starts a new
//     generation of the connection; one with the number of the generation
//     before is stale.
//
// A connection whose start was not seen begins at the first byte seen. Memory
// is bounded: by a number of connections, of which the longest idle gives
// way, and per direction by what waits and what is kept for comparing.
package stream

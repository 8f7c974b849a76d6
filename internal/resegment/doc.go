// Package resegment splits the TCP streams of a recorded capture into new segments: the same
// bytes in other segments, some swapped and some sent twice. It is the seeded
// test helper behind the rule that segmentation never changes messages.
//
// What stays as it was: the bytes of each direction, the order in which the two
// directions of a connection took turns, and that nobody acknowledges what
// was not sent. The capture must be complete and in order. Read reads one.
package resegment

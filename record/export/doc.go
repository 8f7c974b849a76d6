// Package export writes the record of a run in the formats of other tools: a log for ShiViz
// and a trace for Perfetto and chrome://tracing. Packets are in the record as pcapng.
package export

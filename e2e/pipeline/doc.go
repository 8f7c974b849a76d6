// Package pipeline tests netsplit end to end on the pipeline program, whose bugs
// need one, two and three faults. It holds tests only.
package pipeline

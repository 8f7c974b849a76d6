// Package pipeline tests netsplit end to end on the pipeline program: on its bugs that need one
// fault, and with faults at random times. Those that need two and three are tested beside the
// program; one-report needs a failed read, which netsplit cannot inject. It holds tests only.
package pipeline

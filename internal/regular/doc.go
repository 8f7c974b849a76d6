// Package regular opens files that others name or made: clients of the API, or the programs
// of a run. It opens only regular files below a folder. A link may lead out of the folder, a
// FIFO blocks whoever opens it, and opening a device may have an effect.
package regular

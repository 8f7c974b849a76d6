// Package store keeps campaigns, runs, findings, invariants, explorer inputs
// and manual partitions in one bbolt file.
//
// What is big or only ever appended (packets, event logs, node logs) is a file
// of the run directory and never a value here.
//
// Layout: one bucket per noun, and one bucket per index, written in the same
// transaction. The index of a list holds its rows, so that a page reads these and
// nothing else. Keys are the fields of the question asked, numbers big-endian,
// strings followed by a zero byte, so that keys sort by time and a cursor is a
// key. Values are JSON {"v":1,"d":…}, where v is the version of the layout of
// d. The bucket meta holds the schema number and who created the file. A store of an
// older schema is copied and then changed in place when it is opened.
//
// A commit costs two fsyncs, so put what belongs together into one Update:
// the summary of a run, its findings and the explorer's input, say. What one
// Update wrote is there entirely or not at all, also after kill -9.
//
// Errors wrap model.ErrNotFound, model.ErrInvalid, model.ErrConflict,
// model.ErrFull and model.ErrDamaged; a second opener gets *HeldError.
package store

// Package disk is the gate for file operations: it holds each operation of an
// unmodified program on files below given folders until the run has decided what comes
// of it, as the gate of the switch holds packets.
//
// A Gate starts a program (Gate.Argv) under a seccomp filter with user notification
// (seccomp_unotify(2)). The kernel then stops the program at each call of the filter
// and asks the gate, which finds process, thread and file of the call, and asks
// Config.Decide. The answer lets the call go on, ends it with an error, or makes it a
// short write. A process that is killed before it has an answer does nothing more. Threads and children inherit the filter.
// Static Go programs and JVMs are held like all others. Calls on sockets, pipes and
// files elsewhere are held for the time it takes to see that.
//
// # In a run
//
// The run makes one Gate for each process that the target file names, before it is
// first started, and closes it after it last ended:
//
//	g, err := disk.New(disk.Config{Host: host, Process: "redis", Folders: []string{dataDir}, Decide: r.decide})
//	argv := g.Argv(netsplit, identity.Argv(netsplit, command...)...)
//
// Decide is where the run owns order: under its lock it numbers the event, queues it
// for the record, asks the engine, queues the decision, and returns the Answer. The
// operation begins after that, as a packet passes after its decision. The engine says
// when a model.FileTrigger, "the n-th operation of a kind on a kind of file", has come,
// and what a model.DiskFault makes of it (Answered). A program that the run killed
// meanwhile is left alone. A file is damaged between crash and restart by Corrupt. A run
// whose Gate.Err is not nil is unknown.
//
// For a power cut the gates of one machine share an Unsynced. Before an operation goes
// on, it keeps what the file held there at its last sync. When all processes of the
// machine were killed, Unsynced.PowerCut puts that back, and they start again. Nothing
// that a program was promised is taken: what was synced stays, by fsync, fdatasync,
// O_DSYNC, msync or sync, and so does what mapped memory wrote outside pages that a
// write changed, too. sync_file_range promises nothing (sync_file_range(2)).
//
// # What is not seen
//
// Writes to mapped memory (mmap, msync) make no events. A program that writes its
// files so (indexes of Kafka, Cassandra's commit log without compression) shows opens,
// truncations and syncs only. Reads, opens for reading, sync(2), syncfs,
// sync_file_range, links, folders being made and removed, and changes of mode and
// owner make none either.
//
// io_uring and the kernel's asynchronous I/O (io_submit) are denied with ENOSYS, so
// that programs fall back on calls that are seen; one that cannot fails at its start.
// A program of another architecture (32-bit) is killed with SIGSYS.
//
// Nobody is fooled who wants to be: between the gate's look at a path or descriptor
// and the kernel's, another thread may change what it means. The gate is for programs
// that do not know of it. That what it read belongs to the call, it asks the kernel
// after reading (SECCOMP_IOCTL_NOTIF_ID_VALID).
//
// # What it costs
//
// A held call takes about 12 µs longer, one that is an event about 24 µs: a write of
// 4 KiB 25 µs for 1.1, a write to a socket 14.5 µs for 2.5 (BenchmarkGate on two
// processors, the fastest batches). Calls that are not held pass the filter in less
// than 0.1 µs. A server that writes much to sockets by write(2) is slower; what that
// means for a run, a clean run with and without the gate shows.
//
// # When netsplit dies
//
// The listener of the filter closes with it, and the kernel answers every held call
// of what still runs with ENOSYS, the waiting ones and those that come: no write, to a
// file or by write(2) to a socket, succeeds. A program can neither hang in the gate nor
// go on. testbed/proc kills it in any case.
package disk

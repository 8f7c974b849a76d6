// Package disk is the gate for file operations: it holds each operation of an
// unmodified program on files below given folders until the run has decided what comes
// of it, as the gate of the switch holds packets.
//
// A Gate starts a program (Gate.Argv) under a seccomp filter with user notification
// (seccomp_unotify(2)). The kernel stops the program at each call that the filter selects.
// The gate finds the process, thread and file of the call, and asks Config.Decide. The
// answer lets the call continue, ends it with an error, or makes it a short write. If the
// process is killed before the answer, the call has no effect. Threads and children inherit
// the filter. Static Go programs and JVMs are held like all others. Calls on sockets, pipes
// and files elsewhere are held only until the gate has seen what they are on.
//
// # In a run
//
// The run makes one Gate for each process that the target file names, before it is
// first started, and closes it after it last ended:
//
//	g, err := disk.New(disk.Config{Host: host, Process: "redis", Folders: []string{dataDir}, Decide: r.decide})
//	argv := g.Argv(netsplit, identity.Argv(netsplit, command...)...)
//
// In Decide the run owns the order: under its lock it numbers the event, queues it for the
// record, asks the engine, queues the decision, and returns the Answer. Then the operation
// begins, as a packet passes after its decision. The engine says when a model.FileTrigger
// has come, "the n-th operation of a kind on a kind of file", and what a model.DiskFault
// does to the operation (Answered). The gate does nothing more for a program that the run
// has killed. Corrupt damages a file between crash and restart. If Gate.Err is not nil, the
// run is unknown.
//
// For a power cut the gates of one machine share an Unsynced. Before an operation
// continues, Unsynced saves what the file held there at its last sync. When all processes of
// the machine are dead, Unsynced.PowerCut restores that, and they start again. A power cut
// takes nothing that was synced, by fsync, fdatasync, O_DSYNC, msync or sync. It also takes
// nothing that was written through mapped memory, except in pages that a write changed, too.
// sync_file_range guarantees nothing (sync_file_range(2)).
//
// # What is not seen
//
// Writes to mapped memory (mmap, msync) make no events. Of a program that writes its files
// that way (indexes of Kafka, Cassandra's commit log without compression), only opens,
// truncations and syncs are seen. There are no events either for reads, opens for reading,
// sync(2), syncfs, sync_file_range, links, making and removing folders, and changes of mode
// and owner.
//
// io_uring and the kernel's asynchronous I/O (io_submit) are denied with ENOSYS, so that
// programs fall back on calls that are seen. A program that cannot fall back fails at its
// start. A program of another architecture (32-bit) is killed with SIGSYS.
//
// The gate is no protection against a hostile program: after the gate has read a path or
// descriptor, another thread may change it before the kernel reads it. The gate does make
// sure that what it read belongs to this call: it asks the kernel after reading
// (SECCOMP_IOCTL_NOTIF_ID_VALID).
//
// # What it costs
//
// A held call takes about 12 µs longer, a call that is an event about 24 µs. A write of
// 4 KiB takes 25 µs instead of 1.1, a write to a socket 14.5 µs instead of 2.5
// (BenchmarkGate on two processors, the fastest batches). Calls that are not held pass the
// filter in less than 0.1 µs. A server that writes much to sockets by write(2) becomes
// slower: compare a clean run with the gate to one without.
//
// # When netsplit dies
//
// The filter's listener closes with netsplit. Then the kernel ends every held call with
// ENOSYS, those that wait and those to come. So no write succeeds, to a file or by write(2)
// to a socket, and a program can neither hang in the gate nor continue. testbed/proc kills
// it in any case.
package disk

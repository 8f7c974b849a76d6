// Package cluster hands the runs of campaigns to runners on other machines, over NATS
// JetStream. Work queue, leases, redelivery and storage are JetStream's:
//
//   - items: a work-queue stream, one message for each run to be made, one durable
//     consumer for each campaign. A runner that took an item renews its lease (AckWait)
//     while it works; without that the item goes to another one. After maxTakers
//     deliveries JetStream gives the item up; a stream keeps its advisories.
//   - campaigns: a key-value bucket of what is to be run (Work). Runners watch it.
//   - files: an object store with targets and software that runners ask for by hash.
//   - records: an object store for each runner, which brings the records of runs to the daemon.
//   - results: a stream with a message for each run that was made. The daemon removes it
//     once it has the record.
//
// The daemon's side is Hub and Offer, a runner's is Runner. Neither of them knows what a run is
// or how it is executed. The daemon judges records itself: a runner gives evidence and no verdict.
//
// After an outage that is longer than a lease a run may be made twice. It counts once: the
// first record that comes is kept.
//
// Between machines there is TLS 1.3 with certificates on both sides, which the daemon makes
// (Authority, Invitation). The daemon also signs whatever makes a runner do something.
package cluster

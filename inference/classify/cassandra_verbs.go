package classify

import "strconv"

// Messaging versions (MessagingService.VERSION_* and their predecessors).
const (
	cassVersion07 = 1
	cassVersion40 = 12
)

// cassMaxVerb bounds the verbs before 4.0 that are believed.
const cassMaxVerb = 64

// cassVerbs are the verbs of 1.2 to 3.11 by number (MessagingService.Verb of
// 3.11.5); cassVerbsOld those of 0.7 to 1.1 that have another name
// (StorageService.Verb of 1.0.8).
var (
	cassVerbs = map[int]string{
		0: "MUTATION", 1: "HINT", 2: "READ_REPAIR", 3: "READ", 4: "REQUEST_RESPONSE", 5: "BATCH_STORE",
		6: "BATCH_REMOVE", 7: "STREAM_REPLY", 8: "STREAM_REQUEST", 9: "RANGE_SLICE", 10: "BOOTSTRAP_TOKEN",
		11: "TREE_REQUEST", 12: "TREE_RESPONSE", 13: "JOIN", 14: "GOSSIP_DIGEST_SYN", 15: "GOSSIP_DIGEST_ACK",
		16: "GOSSIP_DIGEST_ACK2", 17: "DEFINITIONS_ANNOUNCE", 18: "DEFINITIONS_UPDATE", 19: "TRUNCATE",
		20: "SCHEMA_CHECK", 21: "INDEX_SCAN", 22: "REPLICATION_FINISHED", 23: "INTERNAL_RESPONSE",
		24: "COUNTER_MUTATION", 25: "STREAMING_REPAIR_REQUEST", 26: "STREAMING_REPAIR_RESPONSE", 27: "SNAPSHOT",
		28: "MIGRATION_REQUEST", 29: "GOSSIP_SHUTDOWN", 30: "_TRACE", 31: "ECHO", 32: "REPAIR_MESSAGE",
		33: "PAXOS_PREPARE", 34: "PAXOS_PROPOSE", 35: "PAXOS_COMMIT", 36: "PAGED_RANGE", 37: "PING",
		38: "UNUSED_2", 39: "UNUSED_3", 40: "UNUSED_4", 41: "UNUSED_5",
	}
	cassVerbsOld = map[int]string{1: "BINARY", 5: "STREAM_INITIATE", 6: "STREAM_INITIATE_DONE"}
)

// cassVerbs40 are the verbs from 4.0 on by number (net.Verb of 5.0.4, which
// are those of 4.1.7).
var cassVerbs40 = map[int]string{
	0: "MUTATION_REQ", 60: "MUTATION_RSP", 1: "HINT_REQ", 61: "HINT_RSP", 2: "READ_REPAIR_REQ", 62: "READ_REPAIR_RSP",
	5: "BATCH_STORE_REQ", 65: "BATCH_STORE_RSP", 6: "BATCH_REMOVE_REQ", 66: "BATCH_REMOVE_RSP",
	33: "PAXOS_PREPARE_REQ", 93: "PAXOS_PREPARE_RSP", 34: "PAXOS_PROPOSE_REQ", 94: "PAXOS_PROPOSE_RSP",
	35: "PAXOS_COMMIT_REQ", 95: "PAXOS_COMMIT_RSP", 19: "TRUNCATE_REQ", 79: "TRUNCATE_RSP",
	24: "COUNTER_MUTATION_REQ", 84: "COUNTER_MUTATION_RSP", 3: "READ_REQ", 63: "READ_RSP", 9: "RANGE_REQ", 69: "RANGE_RSP",
	14: "GOSSIP_DIGEST_SYN", 15: "GOSSIP_DIGEST_ACK", 16: "GOSSIP_DIGEST_ACK2", 29: "GOSSIP_SHUTDOWN",
	31: "ECHO_REQ", 91: "ECHO_RSP", 37: "PING_REQ", 97: "PING_RSP", 18: "SCHEMA_PUSH_REQ", 98: "SCHEMA_PUSH_RSP",
	28: "SCHEMA_PULL_REQ", 88: "SCHEMA_PULL_RSP", 20: "SCHEMA_VERSION_REQ", 80: "SCHEMA_VERSION_RSP",
	100: "REPAIR_RSP", 101: "VALIDATION_REQ", 102: "VALIDATION_RSP", 103: "SYNC_REQ", 104: "SYNC_RSP",
	105: "PREPARE_MSG", 106: "SNAPSHOT_MSG", 107: "CLEANUP_MSG", 108: "PREPARE_CONSISTENT_REQ",
	109: "PREPARE_CONSISTENT_RSP", 110: "FINALIZE_PROPOSE_MSG", 111: "FINALIZE_PROMISE_MSG",
	112: "FINALIZE_COMMIT_MSG", 113: "FAILED_SESSION_MSG", 114: "STATUS_REQ", 115: "STATUS_RSP",
	22: "REPLICATION_DONE_REQ", 82: "REPLICATION_DONE_RSP", 27: "SNAPSHOT_REQ", 87: "SNAPSHOT_RSP",
	38: "PAXOS2_COMMIT_REMOTE_REQ", 39: "PAXOS2_COMMIT_REMOTE_RSP", 40: "PAXOS2_PREPARE_REQ", 50: "PAXOS2_PREPARE_RSP",
	41: "PAXOS2_PREPARE_REFRESH_REQ", 51: "PAXOS2_PREPARE_REFRESH_RSP", 42: "PAXOS2_PROPOSE_REQ", 52: "PAXOS2_PROPOSE_RSP",
	43: "PAXOS2_COMMIT_AND_PREPARE_REQ", 53: "PAXOS2_COMMIT_AND_PREPARE_RSP", 44: "PAXOS2_REPAIR_REQ",
	54: "PAXOS2_REPAIR_RSP", 45: "PAXOS2_CLEANUP_START_PREPARE_REQ", 55: "PAXOS2_CLEANUP_START_PREPARE_RSP",
	46: "PAXOS2_CLEANUP_REQ", 56: "PAXOS2_CLEANUP_RSP", 57: "PAXOS2_CLEANUP_RSP2", 47: "PAXOS2_CLEANUP_FINISH_PREPARE_REQ",
	58: "PAXOS2_CLEANUP_FINISH_PREPARE_RSP", 48: "PAXOS2_CLEANUP_COMPLETE_REQ", 59: "PAXOS2_CLEANUP_COMPLETE_RSP",
	99: "FAILURE_RSP", 30: "_TRACE", 49: "_SAMPLE", 10: "_TEST_1", 11: "_TEST_2", 4: "REQUEST_RSP", 23: "INTERNAL_RSP",
	16383: "UNUSED_CUSTOM_VERB",
}

// cassVerb names a verb. One that is not in the table keeps its number, if it
// is in the range that releases have used; numbers above are of custom verbs.
func cassVerb(verbs map[int]string, n int) string {
	switch name, ok := verbs[n]; {
	case ok:
		return name
	case n < 256:
		return "verb" + strconv.Itoa(n)
	}
	return "custom"
}

// cassVerbName names a verb before 4.0.
func cassVerbName(n, version int, legacy bool) string {
	if legacy {
		if n == 18 && version <= cassVersion07 {
			return "DEFINITIONS_UPDATE_RESPONSE"
		}
		if name, ok := cassVerbsOld[n]; ok {
			return name
		}
	}
	return cassVerb(cassVerbs, n)
}

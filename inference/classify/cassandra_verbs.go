package classify

import "strconv"

// Messaging versions (MessagingService.VERSION_* and their predecessors).
const (
	cassVersion07 = 1
	cassVersion40 = 12
)

// cassMaxVerb bounds the verbs of versions before 4.0 that are believed.
const cassMaxVerb = 64

// cassVerbs are the verbs of 3.11 by number (MessagingService.Verb). Those of
// 0.7 to 2.2 are the same, except that some numbers were named otherwise; see
// cassVerbsOld.
var cassVerbs = map[int]string{
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

// cassVerb names a verb; one that is not in the table keeps its number.
func cassVerb(verbs map[int]string, n int) string {
	if name, ok := verbs[n]; ok {
		return name
	}
	return "verb" + strconv.Itoa(n)
}

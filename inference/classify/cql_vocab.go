package classify

// cqlOpcodes are the opcodes (native_protocol_v5.spec §2.4 of the envelope;
// CREDENTIALS is of version 1).
var cqlOpcodes = map[byte]struct {
	name     string
	response bool
}{
	0x00: {"ERROR", true}, 0x01: {"STARTUP", false}, 0x02: {"READY", true}, 0x03: {"AUTHENTICATE", true},
	0x04: {"CREDENTIALS", false}, 0x05: {"OPTIONS", false}, 0x06: {"SUPPORTED", true}, 0x07: {"QUERY", false},
	0x08: {"RESULT", true}, 0x09: {"PREPARE", false}, 0x0A: {"EXECUTE", false}, 0x0B: {"REGISTER", false},
	0x0C: {"EVENT", true}, 0x0D: {"BATCH", false}, 0x0E: {"AUTH_CHALLENGE", true}, 0x0F: {"AUTH_RESPONSE", false},
	0x10: {"AUTH_SUCCESS", true},
}

// cqlErrors are the error codes (native_protocol_v5.spec §8;
// exceptions.ExceptionCode).
var cqlErrors = map[int]string{
	0x0000: "SERVER_ERROR", 0x000A: "PROTOCOL_ERROR", 0x0100: "BAD_CREDENTIALS", 0x1000: "UNAVAILABLE",
	0x1001: "OVERLOADED", 0x1002: "IS_BOOTSTRAPPING", 0x1003: "TRUNCATE_ERROR", 0x1100: "WRITE_TIMEOUT",
	0x1200: "READ_TIMEOUT", 0x1300: "READ_FAILURE", 0x1400: "FUNCTION_FAILURE", 0x1500: "WRITE_FAILURE",
	0x1600: "CDC_WRITE_FAILURE", 0x1700: "CAS_WRITE_UNKNOWN", 0x2000: "SYNTAX_ERROR", 0x2100: "UNAUTHORIZED",
	0x2200: "INVALID", 0x2300: "CONFIG_ERROR", 0x2400: "ALREADY_EXISTS", 0x2500: "UNPREPARED",
}

// cqlConsistencies are the consistency levels by number (§3, [consistency]).
var cqlConsistencies = []string{"ANY", "ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_QUORUM", "EACH_QUORUM", "SERIAL", "LOCAL_SERIAL", "LOCAL_ONE", "NODE_LOCAL"}

var (
	cqlEvents  = words("TOPOLOGY_CHANGE STATUS_CHANGE SCHEMA_CHANGE TRACE_COMPLETE")
	cqlChanges = words("NEW_NODE REMOVED_NODE MOVED_NODE UP DOWN CREATED UPDATED DROPPED")
	cqlTargets = words("KEYSPACE TABLE TYPE FUNCTION AGGREGATE")
)

// cqlVerbs are the first words of statements, and cqlNouns what CREATE, ALTER,
// DROP and LIST act on (Parser.g of Cassandra 5.0 and before).
var (
	cqlVerbs = words("SELECT INSERT UPDATE DELETE BATCH TRUNCATE USE CREATE ALTER DROP LIST GRANT REVOKE DESCRIBE DESC ADD")
	cqlNouns = words("KEYSPACE TABLE INDEX TYPE FUNCTION AGGREGATE TRIGGER ROLE USER VIEW PERMISSIONS ROLES USERS SUPERUSERS IDENTITY")
	cqlSkips = words("IF NOT EXISTS CUSTOM OR REPLACE MATERIALIZED ALL OF ONLY")
)

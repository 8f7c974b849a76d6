package of13

// ErrorType groups error codes (7.4.4, ofp_error_type).
type ErrorType uint16

// Error types.
const (
	ErrTypeHelloFailed         ErrorType = 0
	ErrTypeBadRequest          ErrorType = 1
	ErrTypeBadAction           ErrorType = 2
	ErrTypeBadInstruction      ErrorType = 3
	ErrTypeBadMatch            ErrorType = 4
	ErrTypeFlowModFailed       ErrorType = 5
	ErrTypeGroupModFailed      ErrorType = 6
	ErrTypePortModFailed       ErrorType = 7
	ErrTypeTableModFailed      ErrorType = 8
	ErrTypeQueueOpFailed       ErrorType = 9
	ErrTypeSwitchConfigFailed  ErrorType = 10
	ErrTypeRoleRequestFailed   ErrorType = 11
	ErrTypeMeterModFailed      ErrorType = 12
	ErrTypeTableFeaturesFailed ErrorType = 13
	ErrTypeExperimenter        ErrorType = 0xffff
)

// ErrorCode is a code within an [ErrorType] (7.4.4).
type ErrorCode uint16

// Codes of ErrTypeHelloFailed.
const (
	HelloFailedIncompatible ErrorCode = iota
	HelloFailedEperm
)

// Codes of ErrTypeBadRequest.
const (
	BadRequestBadVersion ErrorCode = iota
	BadRequestBadType
	BadRequestBadMultipart
	BadRequestBadExperimenter
	BadRequestBadExpType
	BadRequestEperm
	BadRequestBadLen
	BadRequestBufferEmpty
	BadRequestBufferUnknown
	BadRequestBadTableID
	BadRequestIsSlave
	BadRequestBadPort
	BadRequestBadPacket
	BadRequestMultipartBufferOverflow
)

// Codes of ErrTypeBadAction.
const (
	BadActionBadType ErrorCode = iota
	BadActionBadLen
	BadActionBadExperimenter
	BadActionBadExpType
	BadActionBadOutPort
	BadActionBadArgument
	BadActionEperm
	BadActionTooMany
	BadActionBadQueue
	BadActionBadOutGroup
	BadActionMatchInconsistent
	BadActionUnsupportedOrder
	BadActionBadTag
	BadActionBadSetType
	BadActionBadSetLen
	BadActionBadSetArgument
)

// Codes of ErrTypeBadInstruction.
const (
	BadInstructionUnknownInst ErrorCode = iota
	BadInstructionUnsupInst
	BadInstructionBadTableID
	BadInstructionUnsupMetadata
	BadInstructionUnsupMetadataMask
	BadInstructionBadExperimenter
	BadInstructionBadExpType
	BadInstructionBadLen
	BadInstructionEperm
)

// Codes of ErrTypeBadMatch.
const (
	BadMatchBadType ErrorCode = iota
	BadMatchBadLen
	BadMatchBadTag
	BadMatchBadDLAddrMask
	BadMatchBadNWAddrMask
	BadMatchBadWildcards
	BadMatchBadField
	BadMatchBadValue
	BadMatchBadMask
	BadMatchBadPrereq
	BadMatchDupField
	BadMatchEperm
)

// Codes of ErrTypeFlowModFailed.
const (
	FlowModFailedUnknown ErrorCode = iota
	FlowModFailedTableFull
	FlowModFailedBadTableID
	FlowModFailedOverlap
	FlowModFailedEperm
	FlowModFailedBadTimeout
	FlowModFailedBadCommand
	FlowModFailedBadFlags
)

// Codes of ErrTypeGroupModFailed.
const (
	GroupModFailedGroupExists ErrorCode = iota
	GroupModFailedInvalidGroup
	GroupModFailedWeightUnsupported
	GroupModFailedOutOfGroups
	GroupModFailedOutOfBuckets
	GroupModFailedChainingUnsupported
	GroupModFailedWatchUnsupported
	GroupModFailedLoop
	GroupModFailedUnknownGroup
	GroupModFailedChainedGroup
	GroupModFailedBadType
	GroupModFailedBadCommand
	GroupModFailedBadBucket
	GroupModFailedBadWatch
	GroupModFailedEperm
)

// Codes of ErrTypePortModFailed.
const (
	PortModFailedBadPort ErrorCode = iota
	PortModFailedBadHWAddr
	PortModFailedBadConfig
	PortModFailedBadAdvertise
	PortModFailedEperm
)

// Codes of ErrTypeSwitchConfigFailed.
const (
	SwitchConfigFailedBadFlags ErrorCode = iota
	SwitchConfigFailedBadLen
	SwitchConfigFailedEperm
)

// Codes of ErrTypeRoleRequestFailed.
const (
	RoleRequestFailedStale ErrorCode = iota
	RoleRequestFailedUnsup
	RoleRequestFailedBadRole
)

// Codes of ErrTypeMeterModFailed.
const (
	MeterModFailedUnknown ErrorCode = iota
	MeterModFailedMeterExists
	MeterModFailedInvalidMeter
	MeterModFailedUnknownMeter
	MeterModFailedBadCommand
	MeterModFailedBadFlags
	MeterModFailedBadRate
	MeterModFailedBadBurst
	MeterModFailedBadBand
	MeterModFailedBadBandValue
	MeterModFailedOutOfMeters
	MeterModFailedOutOfBands
)

var errorTypeNames = []string{"HELLO_FAILED", "BAD_REQUEST", "BAD_ACTION", "BAD_INSTRUCTION", "BAD_MATCH",
	"FLOW_MOD_FAILED", "GROUP_MOD_FAILED", "PORT_MOD_FAILED", "TABLE_MOD_FAILED", "QUEUE_OP_FAILED",
	"SWITCH_CONFIG_FAILED", "ROLE_REQUEST_FAILED", "METER_MOD_FAILED", "TABLE_FEATURES_FAILED"}

// errorCodeNames holds, by error type, the prefix of the codes' names and the
// names by code.
var errorCodeNames = [...]struct {
	prefix string
	names  []string
}{
	{"OFPHFC_", []string{"INCOMPATIBLE", "EPERM"}},
	{"OFPBRC_", []string{"BAD_VERSION", "BAD_TYPE", "BAD_MULTIPART", "BAD_EXPERIMENTER", "BAD_EXP_TYPE",
		"EPERM", "BAD_LEN", "BUFFER_EMPTY", "BUFFER_UNKNOWN", "BAD_TABLE_ID", "IS_SLAVE", "BAD_PORT",
		"BAD_PACKET", "MULTIPART_BUFFER_OVERFLOW"}},
	{"OFPBAC_", []string{"BAD_TYPE", "BAD_LEN", "BAD_EXPERIMENTER", "BAD_EXP_TYPE", "BAD_OUT_PORT",
		"BAD_ARGUMENT", "EPERM", "TOO_MANY", "BAD_QUEUE", "BAD_OUT_GROUP", "MATCH_INCONSISTENT",
		"UNSUPPORTED_ORDER", "BAD_TAG", "BAD_SET_TYPE", "BAD_SET_LEN", "BAD_SET_ARGUMENT"}},
	{"OFPBIC_", []string{"UNKNOWN_INST", "UNSUP_INST", "BAD_TABLE_ID", "UNSUP_METADATA",
		"UNSUP_METADATA_MASK", "BAD_EXPERIMENTER", "BAD_EXP_TYPE", "BAD_LEN", "EPERM"}},
	{"OFPBMC_", []string{"BAD_TYPE", "BAD_LEN", "BAD_TAG", "BAD_DL_ADDR_MASK", "BAD_NW_ADDR_MASK",
		"BAD_WILDCARDS", "BAD_FIELD", "BAD_VALUE", "BAD_MASK", "BAD_PREREQ", "DUP_FIELD", "EPERM"}},
	{"OFPFMFC_", []string{"UNKNOWN", "TABLE_FULL", "BAD_TABLE_ID", "OVERLAP", "EPERM", "BAD_TIMEOUT",
		"BAD_COMMAND", "BAD_FLAGS"}},
	{"OFPGMFC_", []string{"GROUP_EXISTS", "INVALID_GROUP", "WEIGHT_UNSUPPORTED", "OUT_OF_GROUPS",
		"OUT_OF_BUCKETS", "CHAINING_UNSUPPORTED", "WATCH_UNSUPPORTED", "LOOP", "UNKNOWN_GROUP",
		"CHAINED_GROUP", "BAD_TYPE", "BAD_COMMAND", "BAD_BUCKET", "BAD_WATCH", "EPERM"}},
	{"OFPPMFC_", []string{"BAD_PORT", "BAD_HW_ADDR", "BAD_CONFIG", "BAD_ADVERTISE", "EPERM"}},
	{"OFPTMFC_", []string{"BAD_TABLE", "BAD_CONFIG", "EPERM"}},
	{"OFPQOFC_", []string{"BAD_PORT", "BAD_QUEUE", "EPERM"}},
	{"OFPSCFC_", []string{"BAD_FLAGS", "BAD_LEN", "EPERM"}},
	{"OFPRRFC_", []string{"STALE", "UNSUP", "BAD_ROLE"}},
	{"OFPMMFC_", []string{"UNKNOWN", "METER_EXISTS", "INVALID_METER", "UNKNOWN_METER", "BAD_COMMAND",
		"BAD_FLAGS", "BAD_RATE", "BAD_BURST", "BAD_BAND", "BAD_BAND_VALUE", "OUT_OF_METERS", "OUT_OF_BANDS"}},
	{"OFPTFFC_", []string{"BAD_TABLE", "BAD_METADATA", "BAD_TYPE", "BAD_LEN", "BAD_ARGUMENT", "EPERM"}},
}

// String is the specification's name, e.g. "OFPET_BAD_MATCH".
func (t ErrorType) String() string {
	if t == ErrTypeExperimenter {
		return "OFPET_EXPERIMENTER"
	}
	return "OFPET_" + nameOf(errorTypeNames, t, "TYPE")
}

// errorName is type and code in the specification's words.
func errorName(t ErrorType, c ErrorCode) string {
	if int(t) >= len(errorCodeNames) {
		return t.String() + "/" + nameOf(nil, c, "CODE")
	}
	codes := errorCodeNames[t]
	return t.String() + "/" + codes.prefix + nameOf(codes.names, c, "CODE")
}

// Package reference writes the reference of the files that people write: docs/*-reference.md.
// Its source is the types that the decoders fill: their tags and the comments on them. Its test
// fails when a reference is stale; -rewrite writes it anew:
//
//	go test ./internal/reference -rewrite
//
// The comment on a field is its line in the reference. Its last line may say "Required.",
// "Default: X." and "Example: Y", where Y is the value as it stands in the file.
package reference

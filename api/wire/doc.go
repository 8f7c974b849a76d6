// Package wire holds the JSON types of the REST interface, shared by its
// server and its Go client.
//
// Times are RFC 3339 with up to nine digits of a second, durations strings as
// Go writes them ("1.5s", "250ms"), ids match [a-z0-9-]. A list is never null.
// A field may be added at any time; a field's meaning never changes under /v1.
package wire

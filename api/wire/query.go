package wire

import (
	"bytes"
	"encoding/json"

	"netsplit/model"
)

// Query asks the record of a run.
type Query struct {
	SQL   string `json:"sql" query:"sql" required:"true" minLength:"1" maxLength:"32768" doc:"One SELECT or VALUES of SQLite. docs/relations.md lists the tables" example:"select type, fate, count(*) from message group by 1, 2"`
	Limit int    `json:"limit,omitempty" query:"limit" minimum:"1" maximum:"10000" default:"1000" doc:"Maximum number of rows"`
}

// QueryResult is what a query answers.
type QueryResult struct {
	Columns   []string `json:"columns"`
	Rows      [][]any  `json:"rows" doc:"Numbers, text and null, in the order of columns"`
	Truncated bool     `json:"truncated" doc:"There are more rows than limit, or the rows have more than 8 MiB"`
}

// UnmarshalJSON keeps numbers as they are written: an integer may have more digits than a
// float64.
func (r *QueryResult) UnmarshalJSON(b []byte) error {
	type plain QueryResult
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode((*plain)(r))
}

// FromQueryResult is the answer on the wire.
func FromQueryResult(r model.QueryResult) QueryResult {
	return QueryResult{Columns: r.Columns, Rows: r.Rows, Truncated: r.Truncated}
}

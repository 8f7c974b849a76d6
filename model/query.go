package model

// QueryResult is what a query on the record of a run answers.
type QueryResult struct {
	Columns []string
	// Rows hold int64, float64, string and nil, in the order of Columns.
	Rows [][]any
	// Truncated: there are more rows.
	Truncated bool
}

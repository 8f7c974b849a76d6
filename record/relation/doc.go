// Package relation makes the record of a run something one can ask: it turns the run's
// folder into tables of an SQLite database (schema.go, build.go) and answers queries on
// it that cannot write, leave the database, or go on without end (query.go). Files of
// relations add facts, views and checks (file.go), which see the record as of then
// (then.go, judge.go).
//
// SQLite is github.com/ncruces/go-sqlite3: SQLite's own C code compiled to WebAssembly
// and from there to Go, so there is no cgo, and each connection has a memory of its own
// with a bound.
package relation

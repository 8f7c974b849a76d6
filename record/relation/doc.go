// Package relation answers SQL queries about the record of a run. It turns the run's folder
// into tables of an SQLite database (schema.go, build.go). Queries can neither write nor
// leave the database, and their time is bounded (query.go). Files of relations add facts,
// views and checks (file.go). These see the record as it was at a moment of the run
// (then.go, judge.go).
//
// SQLite is github.com/ncruces/go-sqlite3: SQLite's own C code compiled to WebAssembly
// and from there to Go, so there is no cgo, and each connection has a memory of its own
// with a bound.
package relation

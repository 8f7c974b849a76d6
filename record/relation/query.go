package relation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"netsplit/model"
)

// Limits bound a query. Zero: no bound, except on memory.
type Limits struct {
	Time  time.Duration // of the query, without the making of its database
	Rows  int           // of the answer; it is cut there and says so
	Bytes int           // of the answer's text, about; as Rows
}

// Query asks the record in the folder dir one query, SELECT or VALUES, on a database
// that is made for it. What is wrong with the query, or takes longer than its limits,
// wraps model.ErrInvalid.
func Query(ctx context.Context, dir, sql string, l Limits) (out model.QueryResult, err error) {
	making := ctx
	if l.Time > 0 {
		c, stop := context.WithTimeoutCause(ctx, building, fmt.Errorf("%w: it takes longer than %v: write it to a file with netsplit query --db", model.ErrUnavailable, building))
		defer stop()
		making = c
	}
	db, err := open(making, dir)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	if l.Time > 0 {
		c, stop := context.WithTimeoutCause(ctx, l.Time, errTime(l.Time))
		defer stop()
		ctx = c
	}
	db.SetInterrupt(ctx)
	if err := db.restrict(); err != nil {
		return out, err
	}
	return db.query(ctx, sql, l)
}

// building bounds the time in which the database of a query that has a bound is made.
const building = 2 * time.Minute

// open makes a database of a record, whose file is gone once it is open.
func open(ctx context.Context, dir string) (db *database, err error) {
	tmp, err := os.MkdirTemp("", "netsplit-record-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	file := filepath.Join(tmp, "run.sqlite")
	if err := Write(ctx, dir, file); err != nil {
		return nil, err
	}
	return openConn(ctx, "file:"+file+"?mode=ro&immutable=1&_pragma=temp_store(memory)")
}

func errTime(d time.Duration) error {
	return fmt.Errorf("%w: the query was stopped after %v: ask for less, or ask a copy of the record (netsplit query --db)", model.ErrInvalid, d)
}

const (
	// memory bounds what SQLite takes for one query, in bytes; room is what its instance
	// may take beyond it, so that SQLite reports its own bound.
	memory = 128 << 20
	room   = 32 << 20
	// longestValue bounds a value that a query makes, and with it what a single step of
	// SQLite can take: steps are not interrupted.
	longestValue = 256 << 10
)

// database is a database that was written, open for reading.
type database struct {
	*sqlite3.Conn
	moving bool // the moment is being changed, which is in a table
}

func openConn(ctx context.Context, name string) (*database, error) {
	c, err := sqlite3.OpenContext(sqlite3.WithMaxMemory(ctx, memory+room), name)
	if err != nil {
		return nil, fmt.Errorf("open the database of the record: %w", err)
	}
	c.HardHeapLimit(memory)
	for limit, n := range map[sqlite3.LimitCategory]int{
		sqlite3.LIMIT_LENGTH: longestValue, sqlite3.LIMIT_SQL_LENGTH: MaxQuery, sqlite3.LIMIT_COLUMN: 200, sqlite3.LIMIT_EXPR_DEPTH: 200,
		sqlite3.LIMIT_COMPOUND_SELECT: 100, sqlite3.LIMIT_LIKE_PATTERN_LENGTH: 1000, sqlite3.LIMIT_ATTACHED: 0, sqlite3.LIMIT_WORKER_THREADS: 0,
	} {
		c.Limit(limit, n)
	}
	c.SetInterrupt(ctx)
	return &database{Conn: c}, nil
}

// MaxQuery bounds the text of a query, in bytes.
const MaxQuery = 32 << 10

func (db *database) close() error {
	db.SetInterrupt(context.Background())
	for _, s := range slices.Collect(db.Stmts()) {
		_ = guarded(s.Close) // repeats the error of its last step
	}
	return guarded(db.Close)
}

// guarded is f. The package of SQLite panics where SQLite is out of memory.
func guarded(f func() error) (err error) {
	defer func() {
		p := recover()
		if e, ok := p.(error); ok && e.Error() == errNoMemory {
			err = sqlite3.NOMEM
		} else if p != nil {
			panic(p)
		}
	}()
	return f()
}

// errNoMemory is the text of what it panics with.
const errNoMemory = "sqlite3: out of memory"

// restrict has the connection refuse whatever does more than read.
func (db *database) restrict() error {
	return db.SetAuthorizer(func(action sqlite3.AuthorizerActionCode, table, name, schema, _ string) sqlite3.AuthorizerReturnCode {
		switch action {
		case sqlite3.AUTH_SELECT, sqlite3.AUTH_READ, sqlite3.AUTH_RECURSIVE:
			return sqlite3.AUTH_OK
		case sqlite3.AUTH_UPDATE:
			if db.moving && schema == "temp" && table == "now" {
				return sqlite3.AUTH_OK
			}
		case sqlite3.AUTH_FUNCTION:
			if !strings.EqualFold(name, "load_extension") {
				return sqlite3.AUTH_OK
			}
		}
		return sqlite3.AUTH_DENY
	})
}

// query asks one query.
func (db *database) query(ctx context.Context, sql string, l Limits) (out model.QueryResult, err error) {
	err = guarded(func() error {
		out, err = db.ask(ctx, sql, l)
		return err
	})
	if errors.Is(err, sqlite3.NOMEM) {
		err = failed(ctx, sql, err)
	}
	if err != nil {
		return model.QueryResult{}, err
	}
	return out, nil
}

func (db *database) ask(ctx context.Context, sql string, l Limits) (out model.QueryResult, err error) {
	s, err := db.prepare(ctx, sql)
	if err != nil {
		return out, err
	}
	for i := range s.ColumnCount() {
		out.Columns = append(out.Columns, s.ColumnName(i))
	}
	out.Rows = [][]any{}
	size := 0
	for s.Step() {
		if l.Rows > 0 && len(out.Rows) == l.Rows || l.Bytes > 0 && size > l.Bytes {
			out.Truncated = true
			break
		}
		row := make([]any, s.ColumnCount())
		for i := range row {
			var n int
			row[i], n = value(s, i)
			size += n
		}
		out.Rows = append(out.Rows, row)
	}
	if err := s.Err(); err != nil {
		return out, failed(ctx, sql, err)
	}
	return out, s.Close()
}

// prepare takes one statement that reads.
func (db *database) prepare(ctx context.Context, sql string) (*sqlite3.Stmt, error) {
	s, rest, err := db.Prepare(sql)
	switch {
	case err != nil:
		return nil, failed(ctx, sql, err)
	case s == nil:
		return nil, fmt.Errorf("%w: there is no query: write one, such as select type, count(*) from message group by type", model.ErrInvalid)
	}
	if more, _, err := db.Prepare(rest); err != nil || more != nil {
		return nil, fmt.Errorf("%w: only one statement is taken, and after it comes %q", model.ErrInvalid, model.Excerpt(strings.TrimSpace(rest)))
	}
	if s.BindCount() > 0 {
		return nil, fmt.Errorf("%w: the query has parameters (? or :name), which nobody gives: write the values", model.ErrInvalid)
	}
	return s, nil
}

// value is a value as JSON has it, and about how long it is. Infinities, which JSON
// lacks, and bytes are text.
func value(s *sqlite3.Stmt, i int) (any, int) {
	switch s.ColumnType(i) {
	case sqlite3.INTEGER:
		return s.ColumnInt64(i), 8
	case sqlite3.FLOAT:
		f := s.ColumnFloat(i)
		if math.IsInf(f, 0) {
			return fmt.Sprint(f), 8
		}
		return f, 8
	case sqlite3.TEXT:
		t := strings.ToValidUTF8(s.ColumnText(i), "�")
		return t, len(t)
	case sqlite3.BLOB:
		t := fmt.Sprintf("x'%x'", s.ColumnRawBlob(i))
		return t, len(t)
	}
	return nil, 4
}

// failed says what was wrong with a query, and where.
func failed(ctx context.Context, sql string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	what := strings.TrimPrefix(err.Error(), "sqlite3: ")
	switch {
	case errors.Is(err, sqlite3.AUTH):
		what = "it may only read: " + strings.TrimPrefix(what, "authorization denied: ")
	case errors.Is(err, sqlite3.NOMEM):
		what = fmt.Sprintf("it needs more than %d MiB of memory", memory>>20)
	case errors.Is(err, sqlite3.TOOBIG):
		what = fmt.Sprintf("it makes a value of more than %d KiB, or is longer than %d KiB", longestValue>>10, MaxQuery>>10)
	}
	return &Error{what: what, Line: lineOf(sql, err)}
}

// Error is what is wrong with a query. It wraps model.ErrInvalid.
type Error struct {
	what string
	// Line of the query, from 1; 0: unknown.
	Line int
}

// Error says what and where.
func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%v: line %d of the query: %s", model.ErrInvalid, e.Line, e.what)
	}
	return fmt.Sprintf("%v: the query: %s", model.ErrInvalid, e.what)
}

// Unwrap is model.ErrInvalid.
func (e *Error) Unwrap() error { return model.ErrInvalid }

// lineOf is the line of the token at which SQLite failed, from 1; 0: it does not say.
func lineOf(sql string, err error) int {
	var at *sqlite3.Error
	if !errors.As(err, &at) || at.SQL() == "" || !strings.HasSuffix(sql, at.SQL()) {
		return 0
	}
	return 1 + strings.Count(sql[:len(sql)-len(at.SQL())], "\n")
}

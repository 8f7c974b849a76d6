package relation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"netsplit/model"
)

// Outcome is what a check found in a run.
type Outcome struct {
	File  string
	Check Check
	// Moments is how often it ran: 0 says that it checked nothing.
	Moments    int
	Violations []Violation
	// More counts the violations beyond MaxViolations.
	More int
	// Unsure is why it is not known whether the check holds: a row of Check.Unless. Then
	// there are no violations.
	Unsure string
}

// MaxViolations bounds Outcome.Violations.
const MaxViolations = 100

// Violation is a row that a check returned, the first time that it did.
type Violation struct {
	// Warning: it was gone, or had not come, at each moment of Check.WarnUntil.
	Warning bool
	N       uint64        // moment at which the check ran
	T       time.Duration // of that event, since the run started
	Columns []string
	Row     []any
	// Events and Messages are the numbers that the row links to: those of its columns
	// n and …_n, and num and …_num. Events has N if there are none.
	Events, Messages []uint64
}

// String is the row, with the names of its columns.
func (v Violation) String() string {
	out := make([]string, len(v.Row))
	for i, x := range v.Row {
		if x == nil {
			x = "NULL"
		}
		out[i] = fmt.Sprintf("%s=%v", v.Columns[i], x)
	}
	return model.OneLine(strings.Join(out, " "))
}

// Where is the line of the file that has the check.
func (o Outcome) Where() string { return fmt.Sprintf("%s:%d", o.File, o.Check.Line) }

// Findings are the outcomes of all checks of a file, in their order.
type Findings struct {
	Outcomes []Outcome
	// Remarks are facts of whose messages the run has none.
	Remarks []string
}

// Compile says whether the queries of a file are right: whether they can be asked of a
// record at all. The error lists what is wrong with its lines and wraps
// model.ErrInvalid.
func (f *File) Compile(ctx context.Context) (err error) {
	db, err := openConn(ctx, ":memory:")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	if err := db.Exec(Schema()); err != nil {
		return err
	}
	j := &judge{database: db, ctx: ctx, file: f}
	return guarded(j.prepareAll)
}

// Judge runs the checks of a file on the record in the folder dir. If a query fails, or all
// queries together take longer than limit, Judge returns an error that names the query's
// line and wraps model.ErrInvalid.
func (f *File) Judge(ctx context.Context, dir string, limit time.Duration) (out *Findings, err error) {
	db, err := open(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	ctx, stop := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: stopped after %v, the limit for all checks of a run", model.ErrInvalid, limit))
	defer stop()
	db.SetInterrupt(ctx)
	j := &judge{database: db, ctx: ctx, file: f, out: &Findings{}}
	err = guarded(func() error {
		if err := j.prepareAll(); err != nil {
			return err
		}
		return j.all()
	})
	if errors.Is(err, sqlite3.NOMEM) {
		err = f.errorf(j.line, "it needs more than %d MiB of memory", memory>>20)
	}
	if err != nil {
		return nil, err
	}
	return j.out, nil
}

// judge runs the checks of a file on one database.
type judge struct {
	*database
	ctx  context.Context
	file *File
	out  *Findings
	line int // of what is under way
	now  *sqlite3.Stmt
	time *sqlite3.Stmt
}

const whole = math.MaxInt64 // as a moment: all of the run

// prepareAll makes the tables as of then, the facts and the views, and then has the
// connection only read.
func (j *judge) prepareAll() error {
	if err := j.Exec("CREATE TEMP TABLE now (n INTEGER); INSERT INTO now VALUES (9223372036854775807);" + asOfThen()); err != nil {
		return fmt.Errorf("make the tables of a check: %w", err)
	}
	if err := j.CreateFunction(matchesFunc, 2, sqlite3.DETERMINISTIC|sqlite3.DIRECTONLY, matches); err != nil {
		return fmt.Errorf("make the functions of a fact: %w", err)
	}
	for _, f := range j.file.Facts {
		j.line = f.line
		if err := j.Exec(f.schema()); err != nil {
			return j.wrong("fact "+f.Name, source{line: f.line}, err)
		}
	}
	for _, v := range j.file.Views {
		sql := source{"CREATE TEMP VIEW " + quote(v.Name) + " AS " + v.sql.text, v.sql.line}
		if _, err := j.one("view "+v.Name, sql, true); err != nil {
			return err
		}
	}
	var err error
	if j.now, _, err = j.Prepare("UPDATE temp.now SET n = ?"); err != nil {
		return err
	}
	if j.time, _, err = j.Prepare("SELECT t FROM main.event WHERE n = ?"); err != nil {
		return err
	}
	if err := j.restrict(); err != nil {
		return err
	}
	return j.compile()
}

// compile finds the mistakes of all queries; each stands in its own line.
func (j *judge) compile() error {
	var errs []error
	try := func(what string, sql source) {
		s, err := j.one(what, sql, false)
		if err != nil {
			errs = append(errs, err)
			return
		}
		errs = append(errs, s.Close())
	}
	for _, v := range j.file.Views {
		try("view "+v.Name, v.sql)
	}
	for _, c := range j.file.Checks {
		try("check "+c.Name, c.sql)
		for _, table := range []string{c.At, c.WarnUntil} {
			if table != "" {
				try("check "+c.Name+": "+table, source{momentsOf(table), c.Line})
			}
		}
		if c.Unless != "" {
			try("check "+c.Name+": "+c.Unless, source{reasonOf(c.Unless), c.Line})
		}
	}
	return errors.Join(errs...)
}

// one prepares the one statement of a source, and executes it where that is asked.
func (j *judge) one(what string, sql source, execute bool) (*sqlite3.Stmt, error) {
	j.line = sql.line
	s, err := j.prepare(j.ctx, sql.text)
	if err == nil && execute {
		if err = s.Exec(); err == nil {
			err = s.Close()
		}
	}
	if err != nil {
		return nil, j.wrong(what, sql, err)
	}
	return s, nil
}

// wrong says what is wrong with a query, with file and line.
func (j *judge) wrong(what string, sql source, err error) error {
	if j.ctx.Err() != nil {
		err = context.Cause(j.ctx)
	} else if _, ok := errors.AsType[*Error](err); !ok && !errors.Is(err, model.ErrInvalid) {
		err = failed(j.ctx, sql.text, err)
	}
	line, text := sql.line, err.Error()
	if e, ok := errors.AsType[*Error](err); ok {
		text = e.what
		line += max(e.Line-1, 0)
	}
	return j.file.errorf(line, "%s: %s", what, strings.TrimPrefix(text, model.ErrInvalid.Error()+": "))
}

func (j *judge) all() error {
	for _, f := range j.file.Facts {
		if err := j.known(f); err != nil {
			return err
		}
	}
	for _, c := range j.file.Checks {
		o, err := j.check(c)
		if err != nil {
			return err
		}
		j.out.Outcomes = append(j.out.Outcomes, o)
	}
	return nil
}

// known says whether the messages of a fact have its fields. A run without such messages
// is remarked upon.
func (j *judge) known(f Fact) error {
	names, err := j.column(f.line, "SELECT DISTINCT f.name FROM main.message m LEFT JOIN main.field f USING (num) WHERE "+f.where()+" ORDER BY 1")
	if err != nil {
		return j.wrong("fact "+f.Name, source{line: f.line}, err)
	}
	if len(names) == 0 {
		j.out.Remarks = append(j.out.Remarks, fmt.Sprintf("%s:%d: fact %s: the run has no message of type %q", j.file.Name, f.line, f.Name, f.Message))
		return nil
	}
	have := slices.DeleteFunc(names, func(v any) bool { return v == nil })
	columns := f.Columns
	if f.Each != nil {
		columns = append(slices.Clip(columns), FactColumn{Field: f.Each.Field, line: f.Each.line})
	}
	for _, c := range columns {
		if !c.Optional && !slices.Contains(have, any(c.Field)) {
			return j.file.errorf(c.line, "fact %s: no message of type %q has a field %q; they have %v", f.Name, f.Message, c.Field, have)
		}
	}
	return nil
}

// column is the first column of an answer.
func (j *judge) column(line int, sql string) ([]any, error) {
	j.line = line
	r, err := j.ask(j.ctx, sql, Limits{})
	out := make([]any, len(r.Rows))
	for i, row := range r.Rows {
		out[i] = row[0]
	}
	return out, err
}

func momentsOf(table string) string {
	return "SELECT DISTINCT n FROM " + quote(table) + " WHERE n IS NOT NULL ORDER BY n"
}

func reasonOf(table string) string { return "SELECT * FROM " + quote(table) + " LIMIT 1" }

// unsure asks Check.Unless if there are violations. If that has a row, it drops the violations
// and sets Unsure.
func (j *judge) unsure(o *Outcome) error {
	if o.Check.Unless == "" || !slices.ContainsFunc(o.Violations, func(v Violation) bool { return !v.Warning }) {
		return nil
	}
	err := j.at(whole)
	if err != nil {
		return err
	}
	j.line = o.Check.Line
	r, err := j.ask(j.ctx, reasonOf(o.Check.Unless), Limits{})
	if err != nil {
		return j.wrong("check "+o.Check.Name+": "+o.Check.Unless, source{reasonOf(o.Check.Unless), o.Check.Line}, err)
	}
	if len(r.Rows) > 0 {
		v := Violation{Columns: r.Columns, Row: r.Rows[0]}
		o.Unsure, o.Violations, o.More = o.Check.Unless+": "+v.String(), nil, 0
	}
	return nil
}

// moments are those of a table, seen over the whole run; "": its end.
func (j *judge) moments(c Check, table string) ([]int64, error) {
	sql := momentsOf(table)
	if table == "" {
		sql = "SELECT max(n) FROM main.event"
	}
	if err := j.at(whole); err != nil {
		return nil, err
	}
	all, err := j.column(c.Line, sql)
	if err != nil {
		return nil, j.wrong("check "+c.Name+": "+table, source{sql, c.Line}, err)
	}
	var out []int64
	for _, v := range all {
		n, ok := v.(int64)
		if !ok && v != nil {
			return nil, j.file.errorf(c.Line, "check %s: %s: n is %v, and not the number of an event", c.Name, table, v)
		} else if ok {
			out = append(out, n)
		}
	}
	return out, nil
}

// at moves the moment.
func (j *judge) at(n int64) error {
	j.moving = true
	defer func() { j.moving = false }()
	if err := j.now.BindInt64(1, n); err != nil {
		return err
	}
	return j.now.Exec()
}

func (j *judge) check(c Check) (Outcome, error) {
	o := Outcome{File: j.file.Name, Check: c}
	moments, err := j.moments(c, c.At)
	if err != nil {
		return o, err
	}
	var hard []int64
	if c.WarnUntil != "" {
		if hard, err = j.moments(c, c.WarnUntil); err != nil {
			return o, err
		}
		if c.At == "" {
			moments = nil
		}
		moments = append(moments, hard...)
		slices.Sort(moments)
		moments = slices.Compact(moments)
	}
	s, err := j.one("check "+c.Name, c.sql, false)
	if err != nil {
		return o, err
	}
	seen := map[string]int{} // places in Violations
	for _, n := range moments {
		if err := j.at(n); err != nil {
			return o, j.wrong("check "+c.Name, c.sql, err)
		}
		j.line = c.sql.line
		o.Moments++
		warning := c.WarnUntil != "" && !slices.Contains(hard, n)
		for s.Step() {
			o.add(j.row(s, n), warning, seen)
		}
		if err := errors.Join(s.Err(), s.Reset()); err != nil {
			return o, j.wrong("check "+c.Name, c.sql, err)
		}
	}
	if err := j.unsure(&o); err != nil {
		return o, err
	}
	for i := range o.Violations {
		if o.Violations[i].T, err = j.timeOf(o.Violations[i].N); err != nil {
			return o, j.wrong("check "+c.Name, c.sql, err)
		}
	}
	return o, s.Close()
}

// add enters a row. One that was there before is entered once; a warning becomes an
// error.
func (o *Outcome) add(v Violation, warning bool, seen map[string]int) {
	v.Warning = warning
	key := fmt.Sprintf("%q", v.Row)
	at, known := seen[key]
	switch {
	case !known && len(o.Violations) == MaxViolations:
		o.More++
	case !known:
		seen[key] = len(o.Violations)
		o.Violations = append(o.Violations, v)
	case o.Violations[at].Warning && !warning:
		o.Violations[at] = v
	}
}

func (j *judge) row(s *sqlite3.Stmt, n int64) Violation {
	v := Violation{N: uint64(n)}
	for i := range s.ColumnCount() {
		name := s.ColumnName(i)
		x, _ := value(s, i)
		v.Columns, v.Row = append(v.Columns, name), append(v.Row, x)
		if x, ok := x.(int64); ok && x > 0 {
			switch {
			case name == "n" || strings.HasSuffix(name, "_n"):
				v.Events = append(v.Events, uint64(x))
			case name == "num" || strings.HasSuffix(name, "_num"):
				v.Messages = append(v.Messages, uint64(x))
			}
		}
	}
	if len(v.Events) == 0 && len(v.Messages) == 0 {
		v.Events = []uint64{uint64(n)}
	}
	return v
}

func (j *judge) timeOf(n uint64) (time.Duration, error) {
	if err := j.time.BindInt64(1, int64(n)); err != nil {
		return 0, err
	}
	var t time.Duration
	if j.time.Step() {
		t = time.Duration(j.time.ColumnInt64(0))
	}
	return t, errors.Join(j.time.Err(), j.time.Reset())
}

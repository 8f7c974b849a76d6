package relation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

// longest is how many bytes of a text are kept; what is longer ends in "…".
const longest = 32 << 10

// Write writes the record in the folder dir as an SQLite database to a new file, which
// only its owner can read. It stops when ctx ends.
func Write(ctx context.Context, dir, file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s exists already: it is not overwritten", model.ErrInvalid, file)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), write(ctx, dir, file)); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}

func write(ctx context.Context, dir, file string) (err error) {
	b := &builder{dir: dir, inserts: map[string]*sqlite3.Stmt{}, cuts: map[string]uint64{}, frames: map[uint64]model.Decision{}, held: map[uint64]model.HeldPacket{}, holds: map[uint64]bool{}, messages: map[uint64]uint64{}}
	if b.db, err = sqlite3.OpenFlags(file, sqlite3.OPEN_READWRITE); err != nil {
		return fmt.Errorf("make a database of the record: %w", err)
	}
	defer func() {
		for _, s := range b.inserts {
			err = errors.Join(err, s.Close())
		}
		err = errors.Join(err, b.db.Close())
	}()
	b.db.SetInterrupt(ctx)
	if err = b.fill(); ctx.Err() != nil {
		return fmt.Errorf("make a database of the record: %w", context.Cause(ctx))
	}
	return err
}

// builder fills the tables. The first error stays, and ends what follows.
type builder struct {
	dir     string
	db      *sqlite3.Conn
	inserts map[string]*sqlite3.Stmt
	err     error

	evidence record.Evidence
	scenario model.Scenario
	renaming model.Renaming            // to which nodes the scenario came about
	events   []uint64                  // numbers
	times    []time.Duration           // of the events
	cuts     map[string]uint64         // those that last, by name, with the event at which they began
	frames   map[uint64]model.Decision // the first decision about a frame that is not to hold it
	messages map[uint64]uint64         // events of the messages, by number
	holds    map[uint64]bool
	files    map[uint64]model.FileAnswer // of file operations that did not pass, by event
	kills    []model.Decision
	starts   []model.Event               // that workloads and scripts did
	held     map[uint64]model.HeldPacket // packets about which something was decided
}

func (b *builder) fill() error {
	// The file is new and nobody else has it: there is nothing to roll back to.
	b.exec("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;" + Schema())
	b.meta()
	decisions := lines[model.Decision](b, rundir.DecisionsFile)
	b.decided(decisions)
	each(b, rundir.EventsFile, b.event)
	b.end(decisions)
	b.profile()
	b.processes()
	each(b, rundir.HistoryFile, func(e record.Entry) {
		b.row("op", b.number(e.Num, e.Time, "op"), e.Time, e.Workload, e.Look, e.Process, e.Type, e.F, e.Key, e.Value, e.Node, e.Error)
	})
	fatal := map[uint64]bool{}
	each(b, rundir.LogLinesFile, func(l record.LogLine) {
		fatal[l.Num] = true
		b.row("line", b.number(l.Num, l.At, "line"), l.At, l.Host, l.Process, strings.Join(append([]string{l.Line}, l.Context...), "\n"), l.File, 1)
	})
	each(b, rundir.LinesFile, func(l record.LogLine) {
		if !fatal[l.Num] {
			b.row("line", b.number(l.Num, l.At, "line"), l.At, l.Host, l.Process, l.Line, l.File, 0)
		}
	})
	b.exec("INSERT INTO moment SELECT n, t, 'end' FROM event ORDER BY n DESC LIMIT 1;" + indexes() + "ANALYZE; COMMIT")
	return b.err
}

func (b *builder) exec(sql string) {
	if b.err == nil {
		b.err = b.db.Exec(sql)
	}
}

// lines reads a file of the record whose lines are few.
func lines[T any](b *builder, file string) (out []T) {
	each(b, file, func(v T) { out = append(out, v) })
	return out
}

func each[T any](b *builder, file string, f func(T)) {
	if b.err != nil {
		return
	}
	_, b.err = rundir.EachLine(b.dir, file, func(v T) error {
		f(v)
		return b.err
	})
}

// optional reads a file that a run which ended early, or was not judged, does not have.
func (b *builder) optional(file string, v any) (found bool) {
	if b.err != nil {
		return false
	}
	err := rundir.ReadJSON(filepath.Join(b.dir, file), v)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	b.err = err
	return err == nil
}

func (b *builder) meta() {
	var meta model.RunMeta
	if err := rundir.ReadJSON(filepath.Join(b.dir, rundir.MetaFile), &meta); err != nil {
		b.err = fmt.Errorf("%s is not the record of a run: %w", b.dir, err)
		return
	}
	var verdict, reason any
	var sum model.RunSummary
	if b.optional(rundir.SummaryFile, &sum) {
		verdict, reason = sum.Verdict.Value, sum.Verdict.Reason
	}
	b.optional(rundir.EvidenceFile, &b.evidence)
	if !meta.Scenario.Substituted {
		b.renaming = b.evidence.Result.Or
	}
	for _, p := range b.evidence.Ports {
		var arrived any
		if p.Known {
			arrived = int(p.Arrived)
		}
		b.row("port", p.Port, p.Transport, arrived, int(p.Read))
	}
	var target model.Target
	b.optional(rundir.TargetFile, &target)
	var testbed model.Testbed
	b.optional(rundir.TestbedFile, &testbed)
	b.scenario = meta.Scenario
	b.row("run", meta.Run, meta.Campaign, meta.Target, target.Release, meta.Scenario.ID, meta.Scenario.Strategy, strconv.FormatUint(meta.Scenario.Seed, 10), meta.Tap, verdict, reason)
	for _, h := range testbed.Hosts {
		kind := "client"
		if slices.Contains(target.Nodes, h.Name) {
			kind = "node"
		}
		var rack any
		if l, ok := h.Labels["rack"]; ok {
			rack = l
		}
		b.row("host", h.Name, kind, rack, h.IP)
	}
}

// row adds a row to a table. After an error it does nothing.
func (b *builder) row(name string, values ...any) {
	if b.err != nil {
		return
	}
	s := b.inserts[name]
	if s == nil {
		i := slices.IndexFunc(Tables, func(t Table) bool { return t.Name == name })
		if s, _, b.err = b.db.Prepare(Tables[i].insert()); b.err != nil {
			return
		}
		b.inserts[name] = s
	}
	b.run(s, values)
}

func (b *builder) run(s *sqlite3.Stmt, values []any) {
	for i, v := range values {
		if b.err == nil {
			b.err = bind(s, i+1, v)
		}
	}
	if b.err == nil {
		b.err = s.Exec()
	}
}

// bind gives a parameter its value; numbers and nil as they are, all else as text.
func bind(s *sqlite3.Stmt, i int, v any) error {
	switch v := v.(type) {
	case nil:
		return s.BindNull(i)
	case uint64:
		return s.BindInt64(i, int64(v))
	case int:
		return s.BindInt(i, v)
	case uint16:
		return s.BindInt(i, int(v))
	case time.Duration:
		return s.BindInt64(i, int64(v))
	}
	t := strings.ToValidUTF8(fmt.Sprint(v), "�")
	if len(t) > longest {
		t = strings.ToValidUTF8(t[:longest], "") + "…"
	}
	return s.BindText(i, t)
}

// nullIfZero is v, or NULL for the zero value.
func nullIfZero[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// number returns the event number n of an entry of another file than the event log, and adds
// it to table event. Records of earlier versions have none (0): then it is that of the last
// event before at.
func (b *builder) number(n uint64, at time.Duration, kind string) any {
	if n == 0 {
		return b.before(at)
	}
	b.row("event", n, at, kind, nil)
	return n
}

// before is the number of the last event before a time.
func (b *builder) before(at time.Duration) any {
	i := sort.Search(len(b.times), func(i int) bool { return b.times[i] > at })
	if i == 0 {
		return nil
	}
	return b.events[i-1]
}

func (b *builder) profile() {
	var p model.Profile
	b.optional(rundir.ProfileFile, &p)
	for _, s := range p.Points {
		beyond := 0
		if s.Beyond {
			beyond = 1
		}
		b.row("point", s.Event, s.At, s.Step, s.Side, s.Node, s.Peer, s.Type, s.Port, s.After, s.Nth, s.Stage, beyond)
	}
}

func (b *builder) processes() {
	for _, s := range lines[record.Started](b, rundir.ProcessesFile) {
		if !slices.ContainsFunc(b.starts, func(e model.Event) bool { // an event has it, too
			return e.Node.Host == s.Host && e.Node.Process == s.Process && e.At-e.Node.Took <= s.At && s.At <= e.At
		}) {
			b.row("node", b.before(s.At), s.At, s.Host, s.Process, model.NodeStart, nil)
		}
	}
	for _, x := range b.evidence.Exits {
		b.row("node", b.number(x.Num, x.At, "exit"), x.At, x.Host, x.Process, "exit", x.Status)
	}
}

package relation

import (
	"fmt"
	"strings"
)

// Table is a table of the database, and what it is for.
type Table struct {
	Name    string
	Doc     string
	Columns []Column
	indexes []string // lists of columns
}

// Column is a column of a Table. Type is the declared type of SQLite; "" takes numbers
// and text as they are.
type Column struct {
	Name, Type, Doc string
}

const (
	integer = "INTEGER"
	key     = "INTEGER PRIMARY KEY"
	text    = "TEXT"
)

var (
	num   = Column{"n", integer, "number of the event"}
	near  = Column{"n", integer, "its number on arrival; in records of earlier versions that of the last event before it, by time, or NULL"}
	since = Column{"t", integer, "ns since the run started"}
)

// Tables are all tables of the database. Column n is the number of an event of the run
// (model.Event.Num): it orders the rows of all tables, and "as of then" compares it.
// Operations, exits and log lines have numbers, too, but in records of earlier versions.
var Tables = []Table{
	{"run", "the run itself, one row", []Column{
		{"run", text, "id"}, {"campaign", text, "id of its campaign"}, {"target", text, ""}, {"release", text, "of the target's software"},
		{"scenario", text, "id"}, {"strategy", text, ""}, {"seed", text, "a number of 64 bits"}, {"tap", text, "`mirror` or `gate`"},
		{"verdict", text, "NULL: not judged yet"}, {"reason", text, "of the verdict"},
	}, nil},
	{"event", "all that was numbered on arrival", []Column{
		{"n", key, "its number"}, since, {"kind", text, "as in `events.jsonl`: `message`, `packet`, `observe`, …; `op`, `exit`, `line`"}, {"text", text, "of notes, script steps, roles and rule cuts"},
	}, nil},
	{"moment", "moments with a name", []Column{
		num, since, {"name", text, "`start`, `workload` (it starts), `cut`, `in-force`, `heal`, `stop` (the workload is over), `end` (the last event)"},
	}, []string{"name"}},
	{"message", "application messages and transport events, as they came to the switch", []Column{
		{"n", key, "number of the event"}, {"num", integer, "number among the messages"}, since,
		{"src", text, "host"}, {"dst", text, "host"}, {"src_port", integer, ""}, {"dst_port", integer, ""},
		{"type", text, "message type"}, {"stream", text, "direction of the connection"}, {"bytes", integer, "on the wire, without headers"},
		{"fate", text, "`pass`, `drop`, `reset`, or `hold`: it waits at the gate"}, {"passed_n", integer, "event at which it passed; NULL: it did not"},
	}, []string{"num", "type, n"}},
	{"field", "fields of messages, in the order of the reader", []Column{
		num, {"num", integer, "the message"}, {"name", text, ""}, {"value", text, "long values are cut and end in …"},
	}, []string{"n", "num, name", "name, value"}},
	{"cut", "cuts", []Column{
		num, since, {"name", text, "of a script's cut, or `step` and its place in the scenario; empty in records of earlier versions"}, {"shape", text, ""}, {"effect", text, "`drop` or `reset`"}, {"until_n", integer, "event at which it healed; NULL: it did not"},
	}, nil},
	{"cut_link", "the links that a cut closes", []Column{
		num, {"name", text, "of the cut that begins at n"}, {"src", text, "host"}, {"dst", text, "host"},
	}, []string{"n"}},
	{"decision", "what was decided; of packets that pass while nothing is cut there is none", []Column{
		num, since, {"src", text, "host that sent the packet"}, {"dst", text, "its receiver"}, {"num", integer, "the message that decided, or the first of the packet; NULL: none"},
		{"action", text, "`pass`, `drop`, `hold`, `reset`, …; empty: no packet waited"}, {"what", text, "`cut` or `heal`, what is done to servers, or empty"}, {"step", integer, "its place in the scenario, from 1; 0: none"}, {"reason", text, ""},
	}, []string{"n"}},
	{"fault", "what message faults did to packets", []Column{
		num, since, {"id", integer, "place of its step in the scenario, from 1"}, {"kind", text, "`delay`, `duplicate`, `reorder`, `lose`"},
		{"host", text, "sender"}, {"peer", text, "receiver"}, {"num", integer, "the message; NULL: unknown"}, {"action", text, "`hold`, `pass`, `drop`, `copy`, …"}, {"reason", text, ""},
	}, []string{"n"}},
	{"point", "the profile: where something could fail, each point once after each step; none in records of earlier versions", []Column{
		num, since, {"step", integer, "place in the scenario of the step that had begun last; 0: none"}, {"side", text, "`send`, `receive` or `file`"}, {"host", text, "where it could fail"}, {"peer", text, "the other end of the message"},
		{"type", text, "of the message or of the file operation"}, {"port", integer, "port of the target's protocol"}, {"after", text, "type of the message that the host received last before the point"},
		{"number", integer, "key `nth`: which of equal points it is, from 1; 3 stands for all later ones"}, {"stage", text, "part of the target's protocol"}, {"beyond", integer, "1: no fault began any more"},
	}, []string{"n", "step"}},
	{"node", "what was done to processes, and how they ended", []Column{
		{"n", integer, "number of the event; of first starts, and in records of earlier versions of exits: of the last event before it"}, since, {"host", text, ""}, {"process", text, ""},
		{"verb", text, "`start`, `stop`, `kill` (a crash), `pause`, `resume`; `exit`: it ended"}, {"status", integer, "of an exit: exit status, or 128 + signal"},
	}, []string{"n"}},
	{"file", "operations of servers on files, in runs whose steps ask for files; what a power cut or other damage did to files", []Column{
		num, since, {"host", text, ""}, {"process", text, "server; NULL: it was done while none ran"}, {"thread", text, "its name, cut to 15 bytes"},
		{"op", text, "`create`, `open`, `write`, `copy`, `sync`, `truncate`, `allocate`, `rename`, `unlink`; `power-cut`, `corrupt`, `torn`"},
		{"path", text, "below the host's folder"}, {"new_path", text, "of a rename"}, {"kind", text, "path with `#` for numbers and hashes"},
		{"bytes", integer, "offered, asked for, or new length; lost in a power cut or off the end of a torn file, changed by corruption"},
		{"fate", text, "`pass`, `fail`, `short`, or `kill`: the server was killed before it"}, {"error", "", "`EIO` or `ENOSPC`; of `short` how many bytes were written"},
	}, []string{"n", "path, n"}},
	{"role", "who said to have a role when it was asked", []Column{
		num, since, {"role", text, ""}, {"host", text, "NULL: nobody"},
	}, []string{"n"}},
	{"obs", "observations of variables", []Column{
		num, since, {"host", text, "the node whose variable it is"}, {"var", text, "variable"}, {"about", text, "node or thing that it is about; empty: the node itself"},
		{"kind", text, "of the variable"}, {"value", text, ""}, {"num", integer, "message that showed it; NULL: a probe"}, {"probe", text, "name of the probe"},
	}, []string{"n", "var, host, n"}},
	{"op", "operations of workloads, a row for each line of the history", []Column{
		near, {"t", integer, "ns since the run started, by the clock of the workload's host"}, {"workload", text, ""}, {"look", integer, "1 or 2 for final workloads, else 0"},
		{"process", integer, "thread of the workload"}, {"type", text, "`invoke`, then `ok`, `fail` or `info` (nobody knows)"}, {"f", text, "what was done"},
		{"key", text, ""}, {"value", text, ""}, {"node", text, "host that was asked or answered"}, {"error", text, ""},
	}, []string{"n", "f, key"}},
	{"line", "what the target's processes printed or wrote to log files, a row for each line; records of earlier versions have fatal lines only", []Column{
		near, since, {"host", text, ""}, {"process", text, ""}, {"text", text, "of a fatal line with the lines that belong to it"}, {"file", text, "empty: printed by the process"},
		{"fatal", integer, "1: it matched a fatal pattern of the target file"},
	}, []string{"n"}},
	{"port", "ports of the target's protocols, and how much of their traffic was read; none in records of earlier versions", []Column{
		{"port", integer, ""}, {"transport", text, ""}, {"arrived", integer, "bytes that the hosts received by their own count; NULL: unknown"}, {"read", integer, "bytes that netsplit read"},
	}, nil},
	{"host", "hosts of the testbed", []Column{
		{"host", text, ""}, {"kind", text, "`node` or `client`"}, {"rack", text, "its label `rack`"}, {"ip", text, ""},
	}, nil},
}

// Schema is the SQL that makes the tables.
func Schema() string {
	var b strings.Builder
	for _, t := range Tables {
		cols := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			cols[i] = strings.TrimSpace(quote(c.Name) + " " + c.Type)
		}
		fmt.Fprintf(&b, "CREATE TABLE %s (%s);\n", quote(t.Name), strings.Join(cols, ", "))
	}
	return b.String()
}

func indexes() string {
	var b strings.Builder
	for _, t := range Tables {
		for i, cols := range t.indexes {
			fmt.Fprintf(&b, "CREATE INDEX %s_%d ON %s (%s);\n", t.Name, i+1, quote(t.Name), cols)
		}
	}
	return b.String()
}

func (t *Table) insert() string {
	return fmt.Sprintf("INSERT INTO %s VALUES (%s)", quote(t.Name), strings.Join(strings.Split(strings.Repeat("?", len(t.Columns)), ""), ","))
}

// quote makes a name of SQL that may be a word of the language.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

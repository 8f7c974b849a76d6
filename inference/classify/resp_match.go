package classify

import (
	"strconv"
	"strings"

	"netsplit/model"
)

// respMatch is what the two directions of a connection know of one another.
type respMatch struct {
	pending  []respRequest // requests without a reply, oldest first
	multi    bool          // inside MULTI
	off      bool          // CLIENT REPLY OFF
	skip     int           // CLIENT REPLY SKIP: so many commands without reply
	sub      bool          // a SUBSCRIBE was sent
	monitor  bool          // a MONITOR was sent
	snapshot bool          // the server's next bulk is a snapshot
	repl     bool          // the server's bytes are the replication stream
	unsure   bool          // a request or reply was missed
}

type respRequest struct {
	label  string // name and subcommand
	name   string
	left   int // replies to come; -1: until the count of subscriptions is 0
	queued bool
}

// respFits are the first bytes a reply to these commands can have. After lost
// bytes they decide which request a reply belongs to.
var respFits = map[string]string{
	"PING": "+*$", "INFO": "$=", "PUBLISH": ":", "ROLE": "*", "EXEC": "*_", "MULTI": "+",
	"REPLCONF": "+", "PSYNC": "+", "REPLICAOF": "+", "SLAVEOF": "+", "SET": "+$_", "GET": "$_",
	"HELLO": "*%", "SELECT": "+", "AUTH": "+", "INCR": ":", "DEL": ":", "EXISTS": ":", "WAIT": ":",
	"DBSIZE": ":", "SUBSCRIBE": "*>", "PSUBSCRIBE": "*>",
}

func (m *respMatch) lose() {
	m.pending, m.multi, m.snapshot, m.unsure = nil, false, false, true
}

// request notes a command of the client and whether a reply is due.
func (m *respMatch) request(label, name string, args []respScalar, elems int) {
	arg1 := ""
	if len(args) > 1 {
		arg1 = strings.ToUpper(args[1].val)
	}
	if name == "REPLCONF" && arg1 == "ACK" {
		// Only a replica that is in step says so, and no reply is sent.
		m.repl = m.repl || !m.snapshot
		return
	}
	if m.repl {
		return
	}
	if name == "CLIENT" && arg1 == "REPLY" && len(args) > 2 {
		switch strings.ToUpper(args[2].val) {
		case "ON":
			m.off, m.skip = false, 0
		case "OFF":
			m.off = true
		case "SKIP":
			m.skip = 2
		}
	}
	if m.off {
		return
	}
	if m.skip > 0 {
		m.skip--
		return
	}
	q := respRequest{label: label, name: name, left: 1, queued: m.multi}
	switch name {
	case "MULTI":
		m.multi = true
	case "EXEC", "DISCARD", "RESET":
		m.multi, q.queued = false, false
		if name == "RESET" {
			m.sub, m.monitor = false, false
		}
	case "MONITOR":
		m.monitor = true
	case "SYNC":
		if len(m.pending) == 0 {
			m.snapshot = true
			return
		}
	}
	if respSubscribe[name] && !q.queued {
		m.sub = true
		q.left = elems - 1
		if q.left <= 0 {
			q.left = -1
		}
	}
	if len(m.pending) == respPending {
		m.lose()
	}
	m.pending = append(m.pending, q)
}

// head is the request the next reply answers.
func (m *respMatch) head() (respRequest, bool) {
	if len(m.pending) == 0 {
		return respRequest{}, false
	}
	return m.pending[0], true
}

func (m *respMatch) pop() {
	m.pending = m.pending[1:]
	if len(m.pending) > 0 && m.pending[0].name == "SYNC" {
		m.pending, m.snapshot = m.pending[1:], true
	}
	if len(m.pending) == 0 {
		m.pending, m.unsure = nil, false
	}
}

func (m *respMatch) reply(top byte) (respRequest, bool) {
	for m.unsure && top != '-' && top != '!' {
		q, ok := m.head()
		if fit, known := respFits[q.name]; !ok || !known || q.queued || strings.IndexByte(fit, top) >= 0 {
			break
		}
		m.pop()
	}
	q, ok := m.head()
	if !ok {
		m.unsure = true
		return q, false
	}
	m.pop()
	return q, true
}

// confirm counts one confirmation of a subscription: total is the number of
// subscriptions the connection has then.
func (m *respMatch) confirm(kind, total string) {
	q, ok := m.head()
	for ok && q.left == -1 && q.name != kind { // all confirmations of it have come
		m.pop()
		q, ok = m.head()
	}
	if !ok || q.name != kind {
		return
	}
	if q.left > 0 {
		m.pending[0].left--
	}
	if m.pending[0].left == 0 || q.left == -1 && total == "0" {
		m.pop()
	}
}

// respLabel names a command by its name and, where the protocol knows it, its
// first argument or channel.
func respLabel(args []respScalar) (label, name string) {
	name = strings.ToUpper(args[0].val)
	if args[0].cut || !respCommands[name] && !respWord(name) {
		return "other", ""
	}
	if len(args) < 2 {
		return name, name
	}
	arg := strings.ToUpper(args[1].val)
	switch {
	case name == "PUBLISH" || name == "SPUBLISH" || respSubscribe[name]:
		if ch := respChannel(args[1].val); ch != "" {
			return name + " " + ch, name
		}
	case !respSubcommands[name][arg]:
	case name == "REPLICAOF" || name == "SLAVEOF":
		return name + " NO ONE", name
	default:
		return name + " " + arg, name
	}
	return name, name
}

// respWord accepts commands of modules and of other servers: a letter, then
// letters, '.', '_' and '-', at most maxWord.
func respWord(s string) bool {
	return s != "" && s[0] != '.' && isWord(strings.ReplaceAll(s, ".", "-"))
}

// respChannel is the channel where it is part of a protocol: those of Sentinel
// (sentinel.c: hello messages and events such as +switch-master, -odown) and
// of client tracking. Others are data.
func respChannel(ch string) string {
	switch ch {
	case "__sentinel__:hello", "__redis__:invalidate", "*":
		return ch
	}
	if len(ch) > 1 && (ch[0] == '+' || ch[0] == '-') && isWord(ch[1:]) {
		return ch
	}
	return ""
}

// respErrorCode is the first word of an error where it is a code.
func respErrorCode(line string) string {
	code, _, _ := strings.Cut(line, " ")
	if code == "" || len(code) > maxWord || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
		return "other"
	}
	return code
}

// name gives a message its type and fields. Where complete is true it also
// notes what the message changes on the connection.
func (r *resp) name(d *respDir, complete bool) (string, []model.Field) {
	switch {
	case d.rdb:
		return "resp rdb", nil
	case d.top == '\n' || d.top == '\r':
		return "resp newline", nil
	case d.cmd && len(d.scalars) == 0:
		return "resp newline", nil // "*0" or a line of blanks: ignored by Redis
	}
	if d.dir == r.client && !r.sure && len(d.scalars) > 0 && respPushKinds[strings.ToUpper(d.scalars[0].val)] {
		r.client, r.sure, d.cmd = 1-d.dir, true, false
	}
	if d.cmd {
		return r.command(d, complete)
	}
	return r.answer(d, complete)
}

func (r *resp) command(d *respDir, complete bool) (string, []model.Field) {
	label, name := respLabel(d.scalars)
	fields := respFields("arg", d.scalars, respArgs)
	if (name == "PUBLISH" || name == "SPUBLISH") && len(d.scalars) > 2 {
		fields = append(fields,
			model.Field{Name: "channel", Value: d.scalars[1].text(respArg)},
			model.Field{Name: "payload", Value: d.scalars[2].text(respPayload)})
	}
	if d.dir != r.client {
		return "resp repl " + label, fields
	}
	if complete {
		r.sure = r.sure || respCommands[name]
		r.m.request(label, name, d.scalars, d.elems)
	}
	return "resp " + label, fields
}

// answer names what a server says outside the replication stream.
func (r *resp) answer(d *respDir, complete bool) (string, []model.Field) {
	if typ, fields, ok := r.push(d); ok {
		return typ, fields
	}
	if r.unsolicited(d) {
		label, name := respLabel(d.scalars)
		if label == "REPLCONF ACK" { // a replica says this: it is the client
			r.client, r.sure, r.m.repl = d.dir, true, true
			return "resp " + label, respFields("arg", d.scalars, respArgs)
		}
		if respCommands[name] {
			return "resp repl " + label, respFields("arg", d.scalars, respArgs)
		}
	}
	q, ok := r.m.reply(d.top)
	if !ok {
		q.label = "unmatched"
	}
	first := ""
	if len(d.scalars) > 0 && d.scalars[0].path == "" {
		first = d.scalars[0].val
	}
	if d.top == '-' || d.top == '!' {
		return "resp error " + respErrorCode(first) + " " + q.label, []model.Field{
			{Name: "error", Value: respScalar{val: first}.text(respPayload)}, {Name: "request", Value: q.label}}
	}
	fields := respFields("reply", d.scalars, respScalars)
	if d.top == '+' {
		word, _, _ := strings.Cut(first, " ")
		switch {
		case first == "QUEUED" && (q.queued || !ok):
			return "resp queued " + q.label, fields
		case word == "FULLRESYNC":
			r.m.snapshot = r.m.snapshot || complete
			return "resp reply PSYNC FULLRESYNC", fields
		case word == "CONTINUE" && (!ok || q.name == "PSYNC"):
			r.m.repl = r.m.repl || complete
			return "resp reply PSYNC CONTINUE", fields
		}
	}
	if (d.top == '$' || d.top == '=') && strings.Contains(first, "\n") {
		s := d.scalars[0]
		if d.top == '=' && len(s.val) > 4 && s.val[3] == ':' { // "txt:", "mkd:"
			s.val = s.val[4:]
		}
		fields = append(fields, model.Field{Name: "text", Value: s.text(respText)})
	}
	return "resp reply " + q.label, fields
}

// unsolicited reports whether a list of strings came without a request: it may be
// a command of a replication stream whose start was not seen.
func (r *resp) unsolicited(d *respDir) bool {
	if _, requested := r.m.head(); requested || d.top != '*' || len(d.scalars) == 0 {
		return false
	}
	for i, s := range d.scalars {
		if s.kind != '$' || s.path != strconv.Itoa(i) {
			return false
		}
	}
	return true
}

// push recognises what a server says on its own, and the confirmations of
// subscriptions, which have the same shape.
func (r *resp) push(d *respDir) (string, []model.Field, bool) {
	q, requested := r.m.head()
	if d.top == '+' && r.m.monitor && !requested && len(d.scalars) > 0 && respMonitorLine(d.scalars[0].val) {
		return "resp push monitor", nil, true
	}
	if d.top != '*' && d.top != '>' || len(d.scalars) == 0 || d.scalars[0].path != "0" {
		return "", nil, false
	}
	s := d.scalars
	kind := strings.ToUpper(s[0].val)
	if respSubscribe[kind] && len(s) >= 3 && s[2].kind == ':' && (d.top == '>' || !requested || respSubscribe[q.name]) {
		r.m.confirm(kind, s[2].val)
		typ := "resp reply " + kind
		if ch := respChannel(s[1].val); ch != "" {
			typ += " " + ch
		}
		return typ, respFields("reply", s, respScalars), true
	}
	pubsub := kind == "MESSAGE" && d.elems == 3 || kind == "SMESSAGE" && d.elems == 3 || kind == "PMESSAGE" && d.elems == 4
	switch {
	case d.top == '>' && !pubsub:
		typ := "resp push other"
		if isWord(s[0].val) {
			typ = "resp push " + strings.ToLower(s[0].val)
		}
		return typ, respFields("reply", s, respScalars), true
	case !pubsub || len(s) < 2 || d.top == '*' && requested && !r.m.sub:
		return "", nil, false
	}
	typ := "resp push " + strings.ToLower(kind)
	var fields []model.Field
	rest := s[1:]
	if kind == "PMESSAGE" {
		fields = append(fields, model.Field{Name: "pattern", Value: rest[0].text(respArg)})
		rest = rest[1:]
	}
	if len(rest) > 0 {
		fields = append(fields, model.Field{Name: "channel", Value: rest[0].text(respArg)})
		if ch := respChannel(rest[0].val); ch != "" {
			typ += " " + ch
		}
	}
	if len(rest) > 1 {
		fields = append(fields, model.Field{Name: "payload", Value: rest[1].text(respPayload)})
	}
	return typ, fields, true
}

// respMonitorLine recognises "1700000000.123456 [0 127.0.0.1:5000] ...".
func respMonitorLine(s string) bool {
	at, rest, ok := strings.Cut(s, " [")
	return ok && rest != "" && at != "" && strings.Trim(at, "0123456789.") == ""
}

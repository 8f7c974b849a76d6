package classify

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"netsplit/model"
)

const (
	jsonDepth   = 6   // steps of the longest path that is a field
	jsonFields  = 64  // fields of a message: those with the shortest paths
	jsonName    = 64  // longest name of a member in a path, longest id
	jsonDigits  = 4   // most digits of a word or number in a type: more are an id
	jsonMembers = 100 // longest list of members in a type
)

const jsonOther = "json (other)" // Unit.Broad of what has a word in its type

// jsonNames are the members that name a message: the first of them that it has.
var jsonNames = []string{"method", "type", "op", "event", "action", "cmd", "command", "kind", "msg_type", "messageType", "execute"}

// jsonMessage is what is read of a value. Types:
//
//	json NAME              of an object: what one of jsonNames says in it, or in an object in it
//	                       ("body"), if that is a word, or MEMBER:N for a small number
//	json reply METHOD      an answer of JSON-RPC, that is an id and a result or an error without
//	json error METHOD      such a name; METHOD is that of the request, if it was seen
//	json {a,b}             any other object: its members, sorted; "…" for those that are no words
//	json [NAME]            an array that begins with a word or a small number
//	json []                any other array
//	json (string)          a value by itself; (number), (boolean), (null)
//	json (other)           an object of which there is too little to tell
//
// Fields are the texts, numbers, true, false and null in it, by their paths
// ("params.0.term"); "value" of a value by itself; "request" of an answer.
type jsonMessage struct {
	kind  byte // its first byte; 0 if it has none
	whole bool
	wrong bool // no JSON begins so

	name   string // what it is called
	rank   int    // of the member that says so: its place in jsonNames, and behind all for an object in it
	first  string // of an array: what it begins with, if that is a word or a small number
	method string // what member method says, if that is a word
	id     string // as it is written; "" for null
	result bool   // there is a result, or an error member
	failed bool   // the error is not null

	names  []string // members that are words
	more   bool     // and others
	fields [jsonDepth + 1][]model.Field
}

// jsonLevel is an object or an array that is open.
type jsonLevel struct {
	path  string // "" of what is in no path
	key   string // of the member that is read
	keyed bool   // key was read
	index int    // of the next element; -1 in an object
}

// jsonRead reads a value, or as much of it as b has. Blanks and record separators
// may stand around it.
func jsonRead(b []byte) *jsonMessage {
	m := &jsonMessage{rank: 2 * len(jsonNames)}
	b = bytes.Trim(b, " \t\r\n\x1e")
	if len(b) == 0 {
		return m
	}
	m.kind = b[0]
	in := json.NewDecoder(bytes.NewReader(b))
	in.UseNumber()
	var open []jsonLevel
	for {
		t, err := in.Token()
		if err != nil {
			m.wrong = !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)
			return m
		}
		at := len(open) - 1
		if at >= 0 && in.InputOffset() == int64(len(b)) {
			if _, ends := t.(json.Delim); !ends {
				return m // may go on
			}
		}
		switch t {
		case json.Delim('}'), json.Delim(']'):
			open = open[:at]
		default:
			if at >= 0 && open[at].index < 0 && !open[at].keyed {
				open[at].key, open[at].keyed = t.(string), true
				if at == 0 {
					m.member(open[at].key)
				}
				continue
			}
			path := jsonPath(open)
			if d, opens := t.(json.Delim); opens {
				l := jsonLevel{path: path, index: -1}
				if d == '[' {
					l.index = 0
				}
				open = append(open, l)
				break
			}
			m.scalar(open, path, t)
		}
		if at = len(open) - 1; at >= 0 {
			open[at].keyed = false
			continue
		}
		m.whole = in.InputOffset() == int64(len(b))
		m.wrong = !m.whole
		return m
	}
}

// jsonPath is where the next value stands, "" if that is shown in no path; the
// place in the array is counted.
func jsonPath(open []jsonLevel) string {
	if len(open) == 0 {
		return ""
	}
	l := &open[len(open)-1]
	name := l.key
	if l.index >= 0 {
		name = strconv.Itoa(l.index)
		l.index++
	}
	switch {
	case len(open) > jsonDepth || name == "" || len(name) > jsonName || !printable(name):
		return ""
	case len(open) == 1:
		return name
	case l.path == "":
		return ""
	}
	return l.path + "." + name
}

// member notes a member of the object.
func (m *jsonMessage) member(key string) {
	if isWord(key) {
		m.names = append(m.names, key)
	} else {
		m.more = true
	}
	switch key {
	case "result":
		m.result = true
	case "error":
		m.result, m.failed = true, true // unless it is null
	}
}

// scalar notes a text, a number, true, false or null.
func (m *jsonMessage) scalar(open []jsonLevel, path string, t json.Token) {
	var text, word string
	switch t := t.(type) {
	case string:
		if text = t; jsonWord(t) {
			word = t
		}
	case json.Number:
		text = t.String()
		if len(text) <= jsonDigits && !strings.ContainsAny(text, ".eE-") {
			word = ":" + text
		}
	case bool:
		text = strconv.FormatBool(t)
	case nil:
		text = "null"
	}
	deep := len(open)
	if deep == 0 {
		path = "value"
	}
	if path != "" && len(m.fields[deep]) < jsonFields {
		m.fields[deep] = append(m.fields[deep], model.Field{Name: path, Value: httpText(text)})
	}
	if deep == 0 || deep > 2 {
		return
	}
	l := &open[deep-1]
	if l.index >= 0 {
		if deep == 1 && l.index == 1 {
			m.first = strings.TrimPrefix(word, ":")
		}
		return
	}
	if deep == 1 {
		switch {
		case l.key == "id" && t != nil && len(text) <= jsonName:
			m.id = text
			if s, is := t.(string); is {
				m.id = strconv.Quote(s)
			}
		case l.key == "error" && t == nil:
			m.failed = false
		case l.key == "method" && word != "" && word[0] != ':':
			m.method = word
		}
	}
	rank := slices.Index(jsonNames, l.key)
	if rank < 0 || word == "" || deep == 2 && open[0].index >= 0 {
		return
	}
	if rank += (deep - 1) * len(jsonNames); rank < m.rank {
		if m.name, m.rank = word, rank; word[0] == ':' {
			m.name = l.key + word
		}
	}
}

// jsonWord reports whether a text looks like the name of a message.
func jsonWord(s string) bool {
	digits := 0
	for i := range len(s) {
		switch c := s[i]; {
		case isLetter(c) || c == '_' || c == '$' || c == '/':
		case c >= '0' && c <= '9' && i > 0 && digits < jsonDigits:
			digits++
		case i > 0 && (c == '-' || c == ':' || c == '.' || c == '@'):
		default:
			return false
		}
	}
	return s != "" && len(s) <= jsonName
}

func (m *jsonMessage) answers() bool {
	return m.kind == '{' && m.rank >= len(jsonNames) && m.id != "" && m.result
}

// typed is the type of what was read, and its fields; request is the method that
// it answers.
func (m *jsonMessage) typed(request string) (typ, broad string, fields []model.Field) {
	if request != "" {
		fields = append(fields, model.Field{Name: "request", Value: request})
	}
	for _, of := range m.fields {
		fields = append(fields, of[:min(len(of), jsonFields-len(fields))]...)
	}
	switch {
	case m.kind == '[' && m.first != "":
		return "json [" + m.first + "]", "json []", fields
	case m.kind == '[':
		return "json []", "", fields
	case m.kind == '"':
		return "json (string)", "", fields
	case m.kind == 't' || m.kind == 'f':
		return "json (boolean)", "", fields
	case m.kind == 'n':
		return "json (null)", "", fields
	case m.kind != '{':
		return "json (number)", "", fields
	case m.answers():
		broad = "json reply"
		if m.failed {
			broad = "json error"
		}
		if request == "" {
			return broad, "", fields
		}
		return broad + " " + request, broad, fields
	case m.name != "":
		return "json " + m.name, jsonOther, fields
	case !m.whole:
		return jsonOther, "", fields
	}
	return "json {" + m.members() + "}", jsonOther, fields
}

func (m *jsonMessage) members() string {
	slices.Sort(m.names)
	m.names = slices.Compact(m.names)
	list, more := "", m.more
	for _, name := range m.names {
		if len(list)+len(name) > jsonMembers {
			more = true
			break
		}
		list += "," + name
	}
	if more {
		list += ",…"
	}
	return strings.TrimPrefix(list, ",")
}

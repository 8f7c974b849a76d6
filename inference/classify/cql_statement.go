package classify

import "strings"

// cqlStmt is what is read of a statement. keyspace and table are of the first
// table it names.
type cqlStmt struct {
	kind            string
	keyspace, table string
}

// cqlStatement reads a statement's kind: its verb, with what is created,
// altered, dropped or listed ("CREATE TABLE"), "IF" where it is conditional
// ("INSERT IF"), "BATCH" for BEGIN .. BATCH, "other" where the verb is none of
// CQL's.
func cqlStatement(s string) cqlStmt {
	l := cqlLexer{s: s}
	verb := strings.ToUpper(l.next())
	if verb == "BEGIN" {
		return cqlStmt{kind: "BATCH"}
	}
	if !cqlVerbs[verb] {
		return cqlStmt{kind: "other"}
	}
	st := cqlStmt{kind: verb}
	switch verb {
	case "CREATE", "ALTER", "DROP", "LIST", "TRUNCATE":
		w := l.next()
		for cqlSkips[strings.ToUpper(w)] {
			w = l.next()
		}
		noun := strings.ToUpper(w)
		switch noun {
		case "SCHEMA":
			noun = "KEYSPACE"
		case "COLUMNFAMILY":
			noun = "TABLE"
		}
		if verb != "TRUNCATE" {
			if !cqlNouns[noun] {
				return st
			}
			st.kind += " " + noun
			if noun == "INDEX" {
				for w = l.next(); w != "" && !strings.EqualFold(w, "ON"); {
					w = l.next()
				}
			}
			w = l.next()
		} else if noun == "TABLE" {
			w = l.next()
		}
		for cqlSkips[strings.ToUpper(w)] {
			w = l.next()
		}
		if noun == "KEYSPACE" {
			st.keyspace = cqlName(w)
			return st
		}
		if noun == "TABLE" || noun == "INDEX" || verb == "TRUNCATE" {
			l.table(&st, w)
		}
	case "USE":
		st.keyspace = cqlName(l.next())
	case "UPDATE":
		l.table(&st, l.next())
	case "SELECT", "DELETE", "INSERT":
		before := "FROM"
		if verb == "INSERT" {
			before = "INTO"
		}
		w := l.next()
		for w != "" && !strings.EqualFold(w, before) {
			w = l.next()
		}
		if w != "" {
			l.table(&st, l.next())
		}
	}
	switch verb {
	case "INSERT", "UPDATE", "DELETE":
		for w := l.next(); w != ""; w = l.next() {
			if strings.EqualFold(w, "IF") {
				st.kind += " IF"
				break
			}
		}
	}
	return st
}

// cqlLexer yields the words, quoted names and single signs of a statement.
// Strings come as "'".
type cqlLexer struct {
	s string
}

func (l *cqlLexer) table(st *cqlStmt, w string) {
	st.table = cqlName(w)
	if strings.HasPrefix(l.s, ".") {
		l.s = l.s[1:]
		st.keyspace, st.table = st.table, cqlName(l.next())
	}
}

func cqlName(w string) string {
	if len(w) >= 2 && w[0] == '"' {
		return strings.ReplaceAll(w[1:len(w)-1], `""`, `"`)
	}
	if w == "" || !cqlWordByte(w[0]) {
		return ""
	}
	return strings.ToLower(w)
}

func cqlWordByte(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' || c == '_' }

// next returns the next word, "" at the end.
func (l *cqlLexer) next() string {
	l.blank()
	if l.s == "" {
		return ""
	}
	n := 1
	switch c := l.s[0]; {
	case c == '\'' || c == '"':
		for n < len(l.s) && l.s[n] != c {
			n++
		}
		n = min(n+1, len(l.s))
		for n < len(l.s) && l.s[n] == c { // doubled: goes on
			for n++; n < len(l.s) && l.s[n] != c; {
				n++
			}
			n = min(n+1, len(l.s))
		}
		if c == '\'' || n < 2 || l.s[n-1] != '"' {
			l.s = l.s[n:]
			return "'"
		}
	case strings.HasPrefix(l.s, "$$"):
		if i := strings.Index(l.s[2:], "$$"); i >= 0 {
			n = i + 4
		} else {
			n = len(l.s)
		}
		l.s = l.s[n:]
		return "'"
	case cqlWordByte(c):
		for n < len(l.s) && cqlWordByte(l.s[n]) {
			n++
		}
	}
	w := l.s[:n]
	l.s = l.s[n:]
	return w
}

// blank skips spaces and comments.
func (l *cqlLexer) blank() {
	for {
		l.s = strings.TrimLeft(l.s, " \t\r\n\f")
		end := ""
		switch {
		case strings.HasPrefix(l.s, "--"), strings.HasPrefix(l.s, "//"):
			end = "\n"
		case strings.HasPrefix(l.s, "/*"):
			end = "*/"
		default:
			return
		}
		_, rest, ok := strings.Cut(l.s[2:], end)
		if !ok {
			rest = ""
		}
		l.s = rest
	}
}

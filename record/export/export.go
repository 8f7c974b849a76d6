package export

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/record/relation"
)

// Write writes the record in the folder dir. An unknown format wraps model.ErrInvalid, and so
// does a record with more rows than most; 0: no bound.
func Write(ctx context.Context, w io.Writer, dir string, f model.ExportFormat, most int) error {
	write := map[model.ExportFormat]func(io.Writer, []happening) error{model.ExportShiViz: writeShiViz, model.ExportTrace: writeTrace}[f]
	if write == nil {
		return fmt.Errorf("%w: unknown format %q: use one of %v", model.ErrInvalid, f, model.ExportFormats())
	}
	all, err := read(ctx, dir, most)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	if err := write(out, all); err != nil {
		return err
	}
	return out.Flush()
}

// happening is a row of the query.
type happening struct {
	n          int64
	at         time.Duration
	kind       string // message, cut, node, obs, op
	host, peer string
	text       string
	fate       string        // of a message; type of a line of the history
	end        time.Duration // a message passed, a cut healed; 0: never
	group      string        // of lines of the history that belong together
}

// query reads what happened in the order of events. Of variables only changes count.
const query = `
SELECT m.n, m.t, 'message', m.src, m.dst,
	substr(m.type || coalesce((SELECT ' ' || group_concat(f.name || '=' || substr(f.value, 1, 400), ' ') FROM field f WHERE f.n = m.n), ''), 1, 400), m.fate, e.t, NULL
	FROM message m LEFT JOIN event e ON e.n = m.passed_n
UNION ALL SELECT c.n, c.t, 'cut', NULL, NULL, c.shape || ' cut ' || c.name || ': ' ||
	substr((SELECT group_concat(l.src || '→' || l.dst, ' ') FROM cut_link l WHERE l.n = c.n AND l.name = c.name), 1, 400), NULL, e.t, NULL
	FROM cut c LEFT JOIN event e ON e.n = c.until_n
UNION ALL SELECT n, t, 'node', host, NULL, verb || ' ' || process || coalesce(' (status ' || status || ')', ''), NULL, NULL, NULL FROM node
UNION ALL SELECT n, t, 'obs', host, NULL, var || iif(about = '', '', ' of ' || about) || ' = ' || substr(value, 1, 400), NULL, NULL, NULL
	FROM (SELECT *, lag(value) OVER (PARTITION BY host, var, about ORDER BY n) AS was FROM obs) WHERE was IS NULL OR was <> value
UNION ALL SELECT n, t, 'op', NULL, node, substr(f || coalesce(' ' || nullif(key, ''), '') || coalesce(' ' || nullif(value, ''), '') || coalesce(': ' || nullif(error, ''), ''), 1, 400), type, NULL,
	workload || ' ' || look || ' thread ' || process FROM op
ORDER BY 2, 1`

// readTime bounds the query of a record whose rows are bounded, too.
const readTime = time.Minute

func read(ctx context.Context, dir string, most int) ([]happening, error) {
	l := relation.Limits{Rows: most}
	if most > 0 {
		l.Time = readTime
	}
	res, err := relation.Query(ctx, dir, query, l)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	if res.Truncated {
		return nil, fmt.Errorf("%w: the record has more than %d messages, faults, changes and operations: export it from its folder (netsplit export FOLDER)", model.ErrInvalid, most)
	}
	all := make([]happening, 0, len(res.Rows))
	for _, row := range res.Rows {
		h := happening{n: number(row[0]), at: time.Duration(number(row[1])), kind: word(row[2]), host: word(row[3]), peer: word(row[4]),
			text: line(word(row[5])), fate: word(row[6]), end: time.Duration(number(row[7])), group: word(row[8])}
		all = append(all, h)
	}
	return all, nil
}

func number(v any) int64 {
	n, _ := v.(int64) // NULL: 0
	return n
}

func word(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// longest bounds a text, in runes.
const longest = 300

// line is text on one line: what comes from payload bytes may hold anything.
func line(s string) string {
	s = model.OneLine(strings.ToValidUTF8(s, "�"))
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest]) + "…"
	}
	return s
}

// hosts lists the hosts of happenings, sorted.
func hosts(all []happening) []string {
	var out []string
	for _, h := range all {
		out = append(out, h.host)
		if h.kind == "message" {
			out = append(out, h.peer)
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(s string) bool { return s == "" })
}

// step is something that a host did, or that was done to it.
type step struct {
	at      time.Duration
	n       int64
	host    string
	text    string
	message int64 // that left here or arrived; 0: none
	send    bool
}

func byTime(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n)) }

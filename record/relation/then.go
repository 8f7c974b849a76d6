package relation

import (
	"fmt"
	"slices"
	"strings"
)

// then lists columns whose value came later than their row. Before that, a view shows the
// value given here instead.
var then = map[string]string{
	"message.fate":     "iif(passed_n > (SELECT n FROM temp.now), 'hold', fate)",
	"message.passed_n": "iif(passed_n <= (SELECT n FROM temp.now), passed_n, NULL)",
	"cut.until_n":      "iif(until_n <= (SELECT n FROM temp.now), until_n, NULL)",
	"run.verdict":      "NULL",
	"run.reason":       "NULL",
}

// asOfThen makes views that hide the tables and have only the rows up to the moment.
func asOfThen() string {
	var b strings.Builder
	for _, t := range Tables {
		cols := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			cols[i] = quote(c.Name)
			if sql := then[t.Name+"."+c.Name]; sql != "" {
				cols[i] = sql + " AS " + quote(c.Name)
			}
		}
		fmt.Fprintf(&b, "CREATE TEMP VIEW %s AS SELECT %s FROM main.%[1]s", quote(t.Name), strings.Join(cols, ", "))
		if slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Name == "n" }) {
			b.WriteString(" WHERE n <= (SELECT n FROM temp.now)")
			if slices.Contains(t.Columns, near) || t.Name == "node" {
				b.WriteString(" OR n IS NULL")
			}
		}
		b.WriteString(";\n")
	}
	return b.String()
}

// schema makes the table of a fact, and the view of its rows up to the moment.
func (f Fact) schema() string {
	var cols, joins, shown []string
	for _, c := range FactColumns {
		cols = append(cols, "m."+c)
		if sql := then["message."+c]; sql != "" {
			c = sql + " AS " + c
		}
		shown = append(shown, c)
	}
	for i, c := range f.Columns {
		v := fmt.Sprintf("f%d.value", i)
		if c.Int {
			v = fmt.Sprintf("iif(CAST(CAST(%s AS INTEGER) AS TEXT) = %[1]s, CAST(%[1]s AS INTEGER), %[1]s)", v)
		}
		cols, shown = append(cols, v+" AS "+quote(c.Name)), append(shown, quote(c.Name))
		joins = append(joins, fmt.Sprintf(" LEFT JOIN main.field f%d ON f%[1]d.num = m.num AND f%[1]d.name = %s", i, literal(c.Field)))
	}
	if e := f.Each; e != nil {
		for i, name := range e.Regexp.SubexpNames() {
			if name != "" {
				cols = append(cols, fmt.Sprintf("json_extract(g.value, '$[%d]') AS %s", i, quote(name)))
				shown = append(shown, quote(name))
			}
		}
		joins = append(joins, fmt.Sprintf(" JOIN main.field e ON e.num = m.num AND e.name = %s JOIN json_each(%s(%s, e.value)) g", literal(e.Field), matchesFunc, literal(e.Regexp.String())))
	}
	all := quote(f.Name + " of the run")
	var indexes strings.Builder
	for _, c := range append([]string{"n"}, shown[len(FactColumns):]...) {
		fmt.Fprintf(&indexes, "CREATE INDEX temp.%s ON %s (%s);\n", quote(f.Name+" by "+strings.Trim(c, `"`)), all, c)
	}
	return "CREATE TEMP TABLE " + all + " AS SELECT " + strings.Join(cols, ", ") + " FROM main.message m" + strings.Join(joins, "") + " WHERE " + f.where() + " ORDER BY m.n;\n" +
		indexes.String() +
		"CREATE TEMP VIEW " + quote(f.Name) + " AS SELECT " + strings.Join(shown, ", ") + " FROM temp." + all + " WHERE n <= (SELECT n FROM temp.now)"
}

// where selects the messages of a fact.
func (f Fact) where() string {
	if !strings.Contains(f.Message, "*") {
		return "m.type = " + literal(f.Message)
	}
	return "m.type GLOB " + literal(strings.NewReplacer("[", "[[]", "?", "[?]").Replace(f.Message))
}

// literal is a text of SQL.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

package relation_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"netsplit/record/relation"
)

var rewrite = flag.Bool("rewrite", false, "write the tables of docs/relations.md anew")

// TestTheTablesAreDocumented: docs/relations.md has each table and column.
func TestTheTablesAreDocumented(t *testing.T) {
	const page, begin, end = "../../docs/relations.md", "<!-- tables: go test ./record/relation -rewrite -->\n", "<!-- end of tables -->"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	_, tail, more := strings.Cut(rest, end)
	if !ok || !more {
		t.Fatal("the page has no place for the tables")
	}
	var out strings.Builder
	for _, table := range relation.Tables {
		fmt.Fprintf(&out, "\n**`%s`**: %s.\n\n| column | |\n|---|---|\n", table.Name, table.Doc)
		for _, c := range table.Columns {
			fmt.Fprintf(&out, "| `%s` | %s |\n", c.Name, c.Doc)
		}
	}
	want := head + begin + out.String() + "\n" + end + tail
	if *rewrite {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(b) != want {
		t.Error("docs/relations.md is stale: go test ./record/relation -rewrite")
	}
}

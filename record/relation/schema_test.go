package relation

import (
	"slices"
	"strings"
	"testing"
)

// TestTablesAreFoundByTheirEvent: a join by n of tables that grow with the run reads no table whole
// for each row.
func TestTablesAreFoundByTheirEvent(t *testing.T) {
	few := []string{"moment", "cut"}
	for _, table := range Tables {
		i := slices.IndexFunc(table.Columns, func(c Column) bool { return c.Name == "n" })
		if i < 0 || table.Columns[i].Type == key || slices.Contains(few, table.Name) {
			continue
		}
		if !slices.ContainsFunc(table.indexes, func(cols string) bool { return cols == "n" || strings.HasPrefix(cols, "n,") }) {
			t.Errorf("table %s has no index by n", table.Name)
		}
	}
}

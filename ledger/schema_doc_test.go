package ledger

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The ledger has everything that docs/protocol.md promises, under the same
// names.
func TestSchemaIsAsDocumented(t *testing.T) {
	t.Parallel()
	db := openAt(t, t.TempDir()+"/ledger.db")
	doc, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	aside, column := regexp.MustCompile(`\([^)]*\)`), regexp.MustCompile(`[a-zA-Z]+`)
	for _, table := range []string{"tasks", "members", "runs", "messages", "deliveries", "events"} {
		_, row, found := strings.Cut(string(doc), "\n| `"+table+"` | ")
		if !found {
			t.Errorf("%s is not documented", table)
			continue
		}
		row, _, _ = strings.Cut(row, "\n")
		said, _, _ := strings.Cut(row, ";")
		there := strings.Split(sqlRow[string](t, db, "SELECT group_concat(name) FROM pragma_table_info('"+table+"')"), ",")
		names := column.FindAllString(aside.ReplaceAllString(said, ""), -1)
		for _, name := range names {
			if !slices.Contains(there, name) {
				t.Errorf("%s has no column %q: it has %v", table, name, there)
			}
		}
		if len(names) < 4 {
			t.Errorf("of %s the document names %v", table, names)
		}
	}
	for _, pragma := range []string{"application_id", "user_version"} {
		if v := sqlRow[int64](t, db, "PRAGMA "+pragma); v == 0 || pragma == "application_id" && !strings.Contains(string(doc), "`application_id` is 1952801133") {
			t.Errorf("%s is %d", pragma, v)
		}
	}
}

package ledger

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write schema.sql anew")

// TestNewSchema compares a ledger made by schema.sql with one made by all migrations.
func TestNewSchema(t *testing.T) {
	t.Parallel()
	steps := migrations()
	old, err := open(ctxFor(t), t.TempDir()+"/ledger.db", Options{Create: true}, steps[:1])
	if err != nil {
		t.Fatal(err)
	}
	path := old.path
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	migrated := openAt(t, path)
	want := schemaOf(t, migrated)
	if *update {
		if err := os.WriteFile("schema.sql", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(want) != newSchema {
		t.Error("schema.sql is stale: go generate ./ledger")
	}
	made := openAt(t, t.TempDir()+"/ledger.db")
	if got := schemaOf(t, made); !bytes.Equal(got, want) {
		t.Errorf("a new ledger has\n%s\nwant\n%s", got, want)
	}
	if v := creation().version; v != len(steps) {
		t.Errorf("schema.sql has version %d, the migrations %d", v, len(steps))
	}
}

// schemaOf returns the statements that make an equal ledger: its objects in their order, and the
// rows of all its tables.
func schemaOf(t *testing.T, db *DB) []byte {
	t.Helper()
	b := fmt.Appendf(nil, "%s%d\n", newSchemaVersion, sqlRow[int](t, db, "PRAGMA user_version"))
	b = append(b, "-- Made by go generate ./ledger from the migrations, which say what each part is for.\n"...)
	pool, err := db.reader()
	if err != nil {
		t.Fatal(err)
	}
	each := func(query string, add func(string)) {
		rows, err := pool.QueryContext(ctxFor(t), query)
		if err != nil {
			t.Fatal(query, err)
		}
		defer rows.Close()
		for rows.Next() {
			var s string
			if err := rows.Scan(&s); err != nil {
				t.Fatal(query, err)
			}
			add(s)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(query, err)
		}
	}
	each("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid", func(s string) {
		b = append(b, s+";\n"...)
	})
	var tables []string
	each("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name", func(s string) {
		tables = append(tables, s)
	})
	for _, name := range tables {
		var columns []string
		each("SELECT name FROM pragma_table_info('"+name+"')", func(s string) { columns = append(columns, `quote("`+s+`")`) })
		each("SELECT "+strings.Join(columns, " || ', ' || ")+" FROM "+name, func(s string) {
			b = append(b, "INSERT INTO "+name+" VALUES ("+s+");\n"...)
		})
	}
	return b
}

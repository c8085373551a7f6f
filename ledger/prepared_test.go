package ledger

import (
	"database/sql"
	"testing"
)

// A reader keeps its prepared queries while another process changes the schema
// or vacuums the file: they hold no locks that prevent it, and see the new
// state afterwards.
func TestPreparedQueriesOutliveTheSchema(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := t.Context() // no deadline of its own: the disk may be slow
	id := must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "first"}}, "a"))[0].ID
	look := func(want string) {
		t.Helper()
		if got := must[Task](t)(l.Task(ctx, id)); got.Subject != want {
			t.Errorf("the task is %q, want %q", got.Subject, want)
		}
	}
	look("first")
	other := openAt(t, l.DB().Path())
	ok(t, New(other, Direct(other)).Checkpoint(ctx)) // opens its connection
	for _, change := range []string{
		"ALTER TABLE tasks ADD COLUMN later TEXT NOT NULL DEFAULT 'x'",
		"CREATE INDEX idx_later ON tasks (later, id)",
		"ALTER TABLE tasks RENAME COLUMN later TO latest",
		"VACUUM",
		"DROP INDEX idx_later",
		"ALTER TABLE tasks DROP COLUMN latest",
	} {
		ok(t, sqlExec(t, other, change))
		ok(t, sqlExec(t, other, "UPDATE tasks SET subject = ? WHERE id = ?", change, id))
		look(change)
	}
	ok(t, l.Checkpoint(ctx))
	if s := must[*sql.DB](t)(l.DB().reader()).Stats(); s.OpenConnections != 1 {
		t.Errorf("read with %d connections: the queries were prepared anew", s.OpenConnections)
	}
}

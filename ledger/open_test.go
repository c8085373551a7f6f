package ledger

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-sqlite3"

	"github.com/teamctl/teamctl/internal/glob"
	"github.com/teamctl/teamctl/team"
)

func TestOpenMakesAPrivateFile(t *testing.T) {
	t.Parallel()
	// The path contains every character that needs escaping in a DSN.
	dir := filepath.Join(t.TempDir(), "a b?c#d%20e&f")
	ok(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "ledger.db")
	db := openAt(t, path)
	l := New(db, Direct(db))
	must[TeamRow](t)(l.CreateTeam(ctxFor(t), TeamRow{Key: "k", LeadSession: "s"}))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		fi, err := os.Stat(path + suffix)
		ok(t, err)
		if fi.Mode().Perm() != 0o600 {
			t.Errorf("mode of %q is %v", suffix, fi.Mode())
		}
	}
	entries, err := os.ReadDir(dir)
	ok(t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

func TestReopenKeepsDataAndMode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	for i := range 3 {
		db, err := Open(ctxFor(t), path, Options{Create: i == 0})
		ok(t, err)
		l := New(db, Direct(db))
		must[[]Task](t)(l.CreateTasks(ctxFor(t), []NewTask{{Subject: "s"}}, "lead"))
		if got := must[Counts](t)(l.Counts(ctxFor(t))).Total(); got != i+1 {
			t.Errorf("open %d: %d tasks", i, got)
		}
		if mode := sqlRow[string](t, db, "PRAGMA journal_mode"); mode != "wal" {
			t.Errorf("journal_mode %s", mode)
		}
		ok(t, db.Close())
		ok(t, db.Close())
		_, err = l.Counts(ctxFor(t))
		refused(t, err, team.CodeUnavailable, "closed")
		_, err = l.CreateTasks(ctxFor(t), []NewTask{{Subject: "s"}}, "lead")
		refused(t, err, team.CodeUnavailable, "closed")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		make   func(t *testing.T, path string)
		code   team.Code
		reason string
	}{
		{"a missing file", func(*testing.T, string) {}, team.CodeNotFound, "ledger_not_found"},
		{"a directory", func(t *testing.T, p string) { ok(t, os.Mkdir(p, 0o700)) }, team.CodeUnavailable, "not_a_ledger"},
		{"a symlink", func(t *testing.T, p string) {
			openAt(t, p+".real")
			ok(t, os.Symlink(p+".real", p))
		}, team.CodeUnavailable, "not_a_ledger"},
		{"text", func(t *testing.T, p string) {
			ok(t, os.WriteFile(p, []byte(strings.Repeat("no database\n", 1000)), 0o600))
		}, team.CodeUnavailable, "corrupt"},
		{"a torn header", func(t *testing.T, p string) {
			ok(t, os.WriteFile(p, append([]byte("SQLite format 3\x00"), make([]byte, 8000)...), 0o600))
		}, team.CodeUnavailable, "corrupt"},
		{"somebody else's database", func(t *testing.T, p string) {
			db := openAt(t, p)
			ok(t, sqlExec(t, db, "PRAGMA application_id = 7"))
			ok(t, db.Close())
		}, team.CodeUnavailable, "not_a_ledger"},
		{"a newer schema", func(t *testing.T, p string) {
			db := openAt(t, p)
			ok(t, sqlExec(t, db, "PRAGMA user_version = 99"))
			ok(t, db.Close())
		}, team.CodeUnavailable, "schema_newer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			tt.make(t, path)
			before, _ := os.ReadFile(path)
			_, err := Open(ctxFor(t), path, Options{})
			refused(t, err, tt.code, tt.reason)
			if team.HintOf(err) == "" {
				t.Error("no hint")
			}
			if after, _ := os.ReadFile(path); string(before) != string(after) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestOpenInAMissingDirectory(t *testing.T) {
	t.Parallel()
	_, err := Open(ctxFor(t), filepath.Join(t.TempDir(), "no", "ledger.db"), Options{Create: true})
	refused(t, err, team.CodeUnavailable, "readonly")
}

func TestSQLiteErrorsAreCoded(t *testing.T) {
	t.Parallel()
	db := &DB{}
	for no, want := range sqliteCodes {
		err := db.asCoded("write", fmt.Errorf("step: %w", sqlite3.Error{Code: no}))
		if team.CodeOf(err) != want.code || team.HintOf(err) == "" {
			t.Errorf("%d: %v", no, err)
		}
	}
	if err := db.asCoded("write", sqlite3.Error{Code: sqlite3.ErrConstraint}); team.CodeOf(err) != team.CodeInternal {
		t.Errorf("constraint: %v", err)
	}
}

// A process killed while creating a ledger leaves an empty file, or one without
// the schema.
func TestOpenFinishesWhatAKilledProcessBegan(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	ok(t, os.WriteFile(path, nil, 0o600))
	db, err := Open(ctxFor(t), path, Options{Create: true})
	ok(t, err)
	defer func() { ok(t, db.Close()) }()
	sound(t, New(db, Direct(db)))
}

func TestOpenAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			db, err := Open(ctxFor(t), path, Options{Create: true, BusyTimeout: time.Minute})
			if err != nil {
				t.Error(err)
				return
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestMigrateOlder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "ledger.db")
	db := openAt(t, path)
	l := New(db, Direct(db))
	must[[]Task](t)(l.CreateTasks(ctxFor(t), []NewTask{{Subject: "old"}}, "lead"))
	ok(t, db.Close())

	last := len(migrations()) + 1
	steps := append(migrations(), migration{last, "9999_more.sql", "ALTER TABLE tasks ADD COLUMN more TEXT; CREATE TABLE extra(x) STRICT;"})
	_, err := open(ctxFor(t), path, Options{}, steps)
	if err == nil || !strings.Contains(err.Error(), "9999_more.sql") {
		t.Fatalf("a step that fails: %v", err)
	}
	db = openAt(t, path) // the old program can still open it
	if sqlRow[int](t, db, "SELECT count(*) FROM pragma_table_info('tasks') WHERE name = 'more'") != 0 {
		t.Error("half a step was kept")
	}
	ok(t, db.Close())

	steps[last-1].sql = "ALTER TABLE tasks ADD COLUMN more TEXT"
	db, err = open(ctxFor(t), path, Options{}, steps)
	ok(t, err)
	if v := sqlRow[int](t, db, "PRAGMA user_version"); v != last {
		t.Errorf("version %d", v)
	}
	if s := sqlRow[string](t, db, "SELECT subject FROM tasks WHERE more IS NULL"); s != "old" {
		t.Errorf("subject %q", s)
	}
	ok(t, db.Close())
	_, err = Open(ctxFor(t), path, Options{})
	refused(t, err, team.CodeUnavailable, "schema_newer")

	backups, err := filepath.Glob(filepath.Join(dir, "ledger.v"+itoa(last-1)+".*.bak"))
	ok(t, err)
	if len(backups) == 0 {
		t.Fatal("no backup")
	}
	fi, err := os.Stat(backups[0])
	ok(t, err)
	if fi.Mode().Perm() != 0o600 {
		t.Errorf("backup has mode %v", fi.Mode())
	}
	old := openAt(t, backups[0])
	if got := ids(must[[]Task](t)(New(old, Direct(old)).Tasks(ctxFor(t), TaskFilter{}))); !cmp.Equal(got, []string{"1"}) {
		t.Errorf("backup has tasks %v", got)
	}
}

// TestMigrateDeliveries checks that the table that is made anew has everything that the
// former one had.
func TestMigrateDeliveries(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	db, err := open(ctxFor(t), path, Options{Create: true}, migrations()[:20])
	ok(t, err)
	const row = "SELECT message || recipient || session || seq || rank || state || reason || evidence || at FROM deliveries"
	for _, stmt := range []string{
		"INSERT INTO runs(id, startedAt) VALUES (7, 1)",
		"INSERT INTO messages(id, run, kind, fromAgent, toAgent, text, at, seq, hop) VALUES ('m', 7, 'message', 'a', 'b', 'x', 1, 1, 0)",
		"INSERT INTO deliveries(message, recipient, session, seq, rank, state, reason, evidence, at) VALUES ('m', 'B', 's', 7, 2, 'injected', 'r', 'e', 6)",
	} {
		must[sql.Result](t)(db.conn.ExecContext(ctxFor(t), stmt))
	}
	was := sqlRow[string](t, db, row)
	ok(t, db.Close())
	db = openAt(t, path)
	if now := sqlRow[string](t, db, row); now != was {
		t.Errorf("%q became %q", was, now)
	}
	if sqlRow[int](t, db, "SELECT count(*) FROM sqlite_schema WHERE tbl_name = 'deliveries' AND sql IS NOT NULL") != 5 {
		t.Error("an index is missing")
	}
	moved, err := New(db, Direct(db)).Mark(ctxFor(t), DeliveryMark{MessageID: "m", Recipient: "b", State: team.Unknown, Reason: "nothing shows it"})
	if err != nil || !moved {
		t.Errorf("moved %v, %v", moved, err)
	}
	ok(t, db.Close())
}

// A copy gets its name only once it is complete; an interrupted one is not
// listed. The newest is the one made last, whatever its version.
func TestBackupIsWholeOrNotThere(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "[a]") // no pattern
	ok(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "ledger.db")
	db := openAt(t, path)
	l := New(db, Direct(db))
	must[[]Task](t)(l.CreateTasks(ctxFor(t), []NewTask{{Subject: "old"}}, "lead"))
	must[sql.Result](t)(db.conn.ExecContext(ctxFor(t), "BEGIN")) // copying fails inside a transaction
	if err := db.backup(ctxFor(t), 9); err == nil {
		t.Error("copied")
	}
	must[sql.Result](t)(db.conn.ExecContext(ctxFor(t), "ROLLBACK"))
	if got := Backups(path); len(got) != 0 {
		t.Errorf("%v", got)
	}
	older := filepath.Join(dir, "ledger.v9.1000.bak")
	ok(t, os.WriteFile(older, nil, 0o600))
	ok(t, db.backup(ctxFor(t), 10))
	got := Backups(path)
	if len(got) != 2 || got[0] != older || !strings.Contains(got[1], "ledger.v10.") {
		t.Fatalf("%v", got)
	}
	if left, err := filepath.Glob(filepath.Join(glob.Escape(dir), tempName)); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	old := openAt(t, got[1])
	if got := ids(must[[]Task](t)(New(old, Direct(old)).Tasks(ctxFor(t), TaskFilter{}))); !cmp.Equal(got, []string{"1"}) {
		t.Errorf("the copy has tasks %v", got)
	}
}

// The documented columns, by name, type, NOT NULL and primary key.
func TestSchema(t *testing.T) {
	t.Parallel()
	db := newLedger(t).DB()
	for table, want := range map[string]string{
		"tasks": "id TEXT 0 1|subject TEXT 1 0|description TEXT 1 0|activeForm TEXT 0 0|status TEXT 1 0|owner TEXT 0 0|" +
			"dependsOn TEXT 0 0|blockedBy TEXT 0 0|metadata TEXT 0 0|createdAt INTEGER 1 0|claimedAt INTEGER 0 0|completedAt INTEGER 0 0",
		"members": "sessionKey TEXT 0 1|agentId TEXT 1 0|name TEXT 0 0|role TEXT 0 0|joinedAt INTEGER 1 0",
	} {
		cols := strings.Split(want, "|")
		got := must[[]string](t)(read(ctxFor(t), db, "test", scanOne[string],
			`SELECT name || ' ' || type || ' ' || ("notnull" AND NOT pk) || ' ' || pk FROM pragma_table_info(?) ORDER BY cid LIMIT ?`, table, len(cols)))
		if diff := cmp.Diff(cols, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", table, diff)
		}
	}
	// The documented views.
	for view, want := range map[string]string{
		"team_messages":           "id,team_run_id,from_agent_id,to_agent_id,kind,payload,parent_message_id,occurred_at",
		"v_team_run_conversation": "id,team_run_id,seq,root_message_id,depth,from_agent_id,to_agent_id,kind,text,parent_message_id,occurred_at",
	} {
		if got := sqlRow[string](t, db, "SELECT group_concat(name) FROM pragma_table_info(?)", view); got != want {
			t.Errorf("%s has %s, want %s", view, got, want)
		}
	}
	for _, name := range []string{"idx_tasks_status", "idx_tasks_owner", "idx_tasks_created"} {
		if sqlRow[int](t, db, "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = ?", name) != 1 {
			t.Errorf("no index %s", name)
		}
	}
}

// Another program writes only the documented columns.
func TestForeignWriter(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	const ins = `INSERT INTO tasks(id, subject, description, status, createdAt) VALUES (?, 's', '', ?, 1)`
	if err := sqlExec(t, l.DB(), ins, "1", "done"); err == nil {
		t.Error("a status that there is not was stored")
	}
	ok(t, sqlExec(t, l.DB(), ins, "7", "pending"))
	made := must[[]Task](t)(l.CreateTasks(ctxFor(t), []NewTask{{Subject: "b", DependsOn: []string{"7"}}}, "lead"))
	if made[0].ID != "8" {
		t.Errorf("id %s", made[0].ID)
	}
	ok(t, sqlExec(t, l.DB(), "UPDATE tasks SET status = 'completed' WHERE id = '7'"))
	if got := must[Task](t)(l.Task(ctxFor(t), "8")); len(got.BlockedBy) != 0 {
		t.Errorf("blocked by %v", got.BlockedBy)
	}
	sound(t, l)
	ok(t, sqlExec(t, l.DB(), "UPDATE tasks SET status = 'pending' WHERE id = '7'"))
	if got := must[Task](t)(l.Task(ctxFor(t), "8")); !cmp.Equal(got.BlockedBy, []string{"7"}) {
		t.Errorf("blocked by %v", got.BlockedBy)
	}
	sound(t, l)
}

func TestAppendOnly(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	_, _, err := l.Post(ctxFor(t), NewMessage{Kind: team.KindMessage, From: "a", To: "team-lead", Text: "x"})
	ok(t, err)
	for _, q := range []string{
		"UPDATE events SET who = 'x'", "DELETE FROM events",
		"UPDATE messages SET text = 'x'", "DELETE FROM messages",
		"UPDATE runs SET scratchpad = '{\"a\":1}'", "UPDATE runs SET scratchpadVersion = 7",
	} {
		if err := sqlExec(t, l.DB(), q); err == nil {
			t.Errorf("%s: done", q)
		}
	}
}

// The schema allows five roles, and two values of the older column, for every
// writer.
func TestRolesAreChecked(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	for _, role := range []string{"leader", "executor", "reviewer", "observer", "operator"} {
		ok(t, sqlExec(t, l.DB(), "UPDATE members SET teamRole = ? WHERE name = 'a'", role))
	}
	for _, q := range []string{
		"UPDATE members SET teamRole = 'boss'", "UPDATE members SET teamRole = ''", "UPDATE members SET teamRole = 'Leader'",
		"UPDATE members SET teamRole = NULL", "UPDATE members SET role = 'executor'",
		"INSERT INTO members(sessionKey, agentId, name, joinedAt, teamRole) VALUES ('s', 'x@demo', 'x', 1, 'member')",
	} {
		if err := sqlExec(t, l.DB(), q); err == nil {
			t.Errorf("%s: done", q)
		}
	}
}

func TestReadersCannotWrite(t *testing.T) {
	t.Parallel()
	db := newLedger(t).DB()
	_, err := read(ctxFor(t), db, "test", scanOne[int], "DELETE FROM tasks RETURNING 1")
	refused(t, err, team.CodeUnavailable, "readonly")
}

func TestCheckFindsDrift(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	must[[]Task](t)(l.CreateTasks(ctxFor(t), []NewTask{{Subject: "a"}}, "lead"))
	sound(t, l)
	ok(t, sqlExec(t, l.DB(), "UPDATE tasks SET unmet = 3"))
	if problems := must[[]string](t)(l.Check(ctxFor(t))); len(problems) != 1 {
		t.Errorf("problems: %v", problems)
	}
}

// A claim that would never end is detected and repaired; one that awaits a
// review has no lease and is intact.
func TestCheckFindsClaimsWithoutEnd(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a", "b")
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "no lease"}, {Subject: "left"}, {Subject: "in review"}, {Subject: "sound"}}, "lead"))
	for id, owner := range map[string]string{"1": "s-a", "2": "s-b", "3": "s-a", "4": "s-a"} {
		must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: owner, ID: id}))
	}
	sound(t, l)
	for _, harm := range []string{
		"UPDATE tasks SET leaseUntil = NULL WHERE id IN ('1', '3')", "UPDATE members SET removedAt = 1 WHERE name = 'b'", "DELETE FROM counters WHERE name = 'task'",
		"INSERT INTO approvals(id, requestId, run, kind, session, name, subject, createdAt) SELECT 1, 'r', id, 'review', 's-a', 'a', 'in review', 1 FROM runs",
		"UPDATE tasks SET status = 'in_progress', review = 1 WHERE id = '3'",
	} {
		ok(t, sqlExec(t, l.DB(), harm))
	}
	want := []string{"task 1 is claimed without a lease", "task 2 is claimed by b, who has left", "the number of the last task is missing"}
	if diff := cmp.Diff(want, must[[]string](t)(l.Check(ctx))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if fixed := must[[]string](t)(l.Repair(ctx)); len(fixed) != 3 {
		t.Errorf("%q", fixed)
	}
	sound(t, l)
	if got := must[Counts](t)(l.Counts(ctx)); got != (Counts{Pending: 2, Ready: 2, Claimed: 1, InProgress: 1}) {
		t.Errorf("%+v", got)
	}
	if made := must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "next"}}, "lead")); made[0].ID != "5" {
		t.Errorf("the next task has the id %s", made[0].ID)
	}
}

// A long reader does not block writers. The log cannot shrink while it reads,
// which is a coded error, and shrinks once it has finished.
func TestFault33LongReader(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	ctx := ctxFor(t)
	pool := must[*sql.DB](t)(l.DB().reader())
	reader := must[*sql.Tx](t)(pool.BeginTx(ctx, nil))
	sees := func() (n int) {
		t.Helper()
		ok(t, reader.QueryRow("SELECT count(*) FROM tasks").Scan(&n))
		return n
	}
	sees()
	batch := make([]NewTask, 500)
	for i := range batch {
		batch[i] = NewTask{Subject: "t", Description: strings.Repeat("d", 8000)}
	}
	for range 2 {
		must[[]Task](t)(l.CreateTasks(ctx, batch, "lead"))
	}
	if n := sees(); n != 0 {
		t.Errorf("the reader sees %d tasks", n)
	}
	if size := must[int64](t)(l.WALSize()); size < 8<<20 {
		t.Errorf("the log has %d bytes", size)
	}
	refused(t, l.Checkpoint(ctx), team.CodeTimeout, team.ReasonBusy)
	ok(t, reader.Rollback())
	ok(t, l.Checkpoint(ctx))
	if size := must[int64](t)(l.WALSize()); size != 0 {
		t.Errorf("the log has %d bytes", size)
	}
	if n := len(must[[]Task](t)(l.Tasks(ctx, TaskFilter{}))); n != 2*len(batch) {
		t.Errorf("%d tasks", n)
	}
}

func TestWALStaysSmall(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	ctx := ctxFor(t)
	batch := make([]NewTask, 1500)
	for i := range batch {
		batch[i] = NewTask{Subject: "t", Description: strings.Repeat("d", 500)}
	}
	must[[]Task](t)(l.CreateTasks(ctx, batch, "lead"))
	for range batch {
		must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s"}))
	}
	if size := must[int64](t)(l.WALSize()); size > 12<<20 {
		t.Errorf("the wal has %d bytes", size)
	}
}

package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// A damaged ledger is never repaired in place: a new one is built next to it
// from every available source, and takes its name once it is complete. Each row
// comes from the best source that has it:
//
//  1. the damaged file itself, read table by table in ranges of rows around
//     unreadable and invalid ones;
//  2. for these ranges, what SQLite's own recovery finds in its pages, if
//     the sqlite3 program is installed;
//  3. for the same ranges, the newest intact copy, whose rows were correct when it
//     was made;
//  4. other files of the team: its mailboxes, config.json and the bundles.
//
// A row comes from a copy only where the damaged file has a hole: rows deleted
// since the copy was made stay deleted.

// RebuildIn lists the sources for a new ledger.
type RebuildIn struct {
	Out     string // the new file; it must not exist
	Damaged string // a copy of the damaged file, with its WAL next to it; "" for none
	Pages   string // the database that SQLite's recovery made from it; "" for none
	Copies  []Copy // newest first
	Found   Found  // from other files
}

// Rebuilt reports where the rows came from and what is missing.
type Rebuilt struct {
	Rows    map[string]int `json:"rows"`              // from the damaged file, by table
	Pages   map[string]int `json:"pages,omitempty"`   // from its loose pages
	Copied  map[string]int `json:"copied,omitempty"`  // from the copy
	Copy    *Copy          `json:"copy,omitempty"`    // the copy that was used
	Files   map[string]int `json:"files,omitempty"`   // from mailboxes, config.json and bundles
	Missing []string       `json:"missing,omitempty"` // what is, or may be, lost
}

func (r *Rebuilt) miss(format string, args ...any) {
	r.Missing = append(r.Missing, fmt.Sprintf(format, args...))
}

// rebuilder is a running rebuild.
type rebuilder struct {
	in  RebuildIn
	out *sql.Conn
	res *Rebuilt

	whole map[string]bool // tables that were read completely from the damaged file
}

// Rebuild makes a new ledger from the remains of a damaged one. Without an error
// the file alone, without a log next to it, is complete and on disk.
func Rebuild(ctx context.Context, in RebuildIn) (res Rebuilt, err error) {
	res = Rebuilt{Rows: map[string]int{}, Pages: map[string]int{}, Copied: map[string]int{}, Files: map[string]int{}}
	db, err := Open(ctx, in.Out, Options{Create: true})
	if err != nil {
		return res, err
	}
	if err := db.Close(); err != nil {
		return res, err
	}
	r := &rebuilder{in: in, res: &res, whole: map[string]bool{}}
	if err := r.build(ctx); err != nil {
		if isFull(err) {
			err = db.asCoded("rebuild the ledger", err)
		}
		return res, err
	}
	return res, alone(in.Out)
}

// build writes the rows of the new ledger.
func (r *rebuilder) build(ctx context.Context) (err error) {
	sdb, err := sql.Open("sqlite3", (&url.URL{Scheme: "file", Path: r.in.Out, RawQuery: "mode=rw&_foreign_keys=off&_txlock=immediate"}).String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sdb.Close()) }()
	if r.out, err = sdb.Conn(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.out.Close()) }()
	if err := r.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	// After a failure, closing the connection rolls everything back.
	if err := r.fill(ctx); err != nil {
		return fmt.Errorf("rebuild the ledger: %w", err)
	}
	if err := r.exec(ctx, "COMMIT"); err != nil {
		return err
	}
	return r.settle(ctx)
}

// settle moves the log into the database and checks the result. Closing the
// connection would move it too, but SQLite reports no error of that: on a full
// disk the database would stay incomplete, and the log that completes it would
// not be renamed with it.
func (r *rebuilder) settle(ctx context.Context) error {
	var busy, log, moved int
	if err := r.out.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved); err != nil {
		return fmt.Errorf("complete the new ledger: %w", err)
	}
	if busy != 0 || log != moved {
		return team.Errorf(team.CodeTimeout, "complete the new ledger: another process has it open").WithReason(team.ReasonBusy)
	}
	if err := verifyCopy(ctx, r.out); err != nil {
		return fmt.Errorf("the new ledger is not sound: %w", err)
	}
	return nil
}

// alone makes sure that a closed database is on disk and needs no log.
func alone(path string) error {
	fi, err := os.Stat(path + "-wal")
	if ignoreMissing(err) != nil {
		return err
	}
	if err == nil && fi.Size() > 0 {
		return team.Errorf(team.CodeInternal, "%s is incomplete without its log", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// fill writes everything with triggers disabled, because they check row by row
// what is consistent only as a whole.
func (r *rebuilder) fill(ctx context.Context) error {
	triggers, err := r.column(ctx, "SELECT sql FROM sqlite_schema WHERE type = 'trigger'")
	if err != nil {
		return err
	}
	names, err := r.column(ctx, "SELECT name FROM sqlite_schema WHERE type = 'trigger'")
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.exec(ctx, "DROP TRIGGER "+quoted(name)); err != nil {
			return err
		}
	}
	if err := r.exec(ctx, "DELETE FROM counters"); err != nil { // the sources contain them
		return err
	}
	tables, err := r.column(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'task_counts' ORDER BY rowid")
	if err != nil {
		return err
	}
	if err := r.sources(ctx, tables); err != nil {
		return err
	}
	if err := r.complete(ctx); err != nil {
		return err
	}
	for _, q := range append([]string{sqlCountsPut}, triggers...) {
		if err := r.exec(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// sources copies each row of the tables from the first source that has it.
func (r *rebuilder) sources(ctx context.Context, tables []string) error {
	damaged := r.source(ctx, r.in.Damaged)
	damaged.damaged = true
	defer damaged.close()
	pages := r.source(ctx, r.in.Pages)
	defer pages.close()
	spare := source{}
	for _, c := range r.in.Copies {
		if s := r.source(ctx, c.Path); s.sound(ctx) {
			spare, r.res.Copy = s, &c
			break
		} else {
			s.close()
			r.res.miss("the copy of %s is unusable", c.At.Format(copyTime))
		}
	}
	defer spare.close()
	if damaged.conn == nil {
		from := "nothing is known but what other files of the team say"
		if spare.conn != nil {
			from = "what is not known from other files of the team is as it was at " + r.res.Copy.At.Format(copySaid)
		}
		r.res.miss("no table of the ledger could be read: %s", from)
	}
	for _, name := range tables {
		t, err := r.table(ctx, name)
		if err != nil {
			return err
		}
		holes := []hole{{}} // the whole table
		read := &taker{}
		if damaged.conn != nil {
			if read, holes, err = r.take(ctx, damaged, t, holes, r.res.Rows); err != nil {
				return err
			}
		}
		r.whole[name] = len(holes) == 0
		if len(holes) == 0 {
			continue
		}
		// SQLite's recovery reads the same rows where the file is readable.
		unread := slices.DeleteFunc(slices.Clone(holes), func(h hole) bool { return h.invalid })
		found := 0
		for _, from := range []struct {
			source
			holes []hole
			count map[string]int
		}{{pages, unread, r.res.Pages}, {spare, holes, r.res.Copied}} {
			if from.conn == nil {
				continue
			}
			if _, _, err := r.take(ctx, from.source, t, from.holes, from.count); err != nil {
				return err
			}
			found += from.count[name]
		}
		if err := read.keepDoubted(ctx); err != nil {
			return err
		}
		if damaged.conn != nil {
			r.hole(name, found)
		}
	}
	return nil
}

// hole reports what is missing from a table that could not be read completely.
func (r *rebuilder) hole(name string, found int) {
	if name == "applied_ops" { // results for clients that repeat an operation within the hour
		return
	}
	text := fmt.Sprintf("%s: part of the table could not be read", name)
	switch {
	case r.res.Copied[name] > 0:
		text += fmt.Sprintf("; %d rows are from %s or earlier", r.res.Copied[name], r.res.Copy.At.Format(copySaid))
	case found == 0:
		text += "; no other source has rows of it"
	}
	r.res.Missing = append(r.res.Missing, text)
}

func (r *rebuilder) exec(ctx context.Context, q string, args ...any) error {
	_, err := r.out.ExecContext(ctx, q, args...)
	return err
}

// count runs q and returns the number of rows it changed.
func (r *rebuilder) count(ctx context.Context, q string, args ...any) (int, error) {
	res, err := r.out.ExecContext(ctx, q, args...)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

func (r *rebuilder) column(ctx context.Context, q string, args ...any) (list []string, err error) {
	rows, err := r.out.QueryContext(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, rows.Err()
}

// source is a database to copy rows from; without a connection it has none.
type source struct {
	db      *sql.DB
	conn    *sql.Conn
	damaged bool // it is the damaged file itself
}

// source opens a database that may be damaged.
func (r *rebuilder) source(ctx context.Context, path string) (s source) {
	if path == "" {
		return s
	}
	if fi, err := os.Stat(path); err != nil || fi.Size() == 0 {
		return s
	}
	db, err := sql.Open("sqlite3", (&url.URL{Scheme: "file", Path: path, RawQuery: "mode=rw"}).String())
	if err != nil {
		return s
	}
	s.db = db
	conn, err := db.Conn(ctx)
	if err == nil {
		var tables int // this reads the schema
		if err = conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err == nil && tables > 0 {
			s.conn = conn
			return s
		}
		_ = conn.Close() // nothing was written
	}
	_ = db.Close()
	return source{}
}

func (s source) close() {
	if s.conn != nil {
		_ = s.conn.Close() // only read, so the error does not matter
	}
	if s.db != nil {
		_ = s.db.Close()
	}
}

// sound reports whether a copy can be read completely.
func (s source) sound(ctx context.Context) bool {
	if s.conn == nil {
		return false
	}
	var word string
	err := s.conn.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&word)
	var app int
	if err == nil {
		err = s.conn.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app)
	}
	return err == nil && word == "ok" && app == appID
}

// table is a table of the new ledger.
type table struct {
	name string
	cols []string
	key  []string // of a table without rowid; otherwise "rowid"
}

func (t table) rowid() bool { return len(t.key) == 1 && t.key[0] == "rowid" }

func (r *rebuilder) table(ctx context.Context, name string) (t table, err error) {
	t.name = name
	if t.cols, err = r.column(ctx, "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", name); err != nil {
		return t, err
	}
	without, err := r.column(ctx, "SELECT name FROM pragma_table_list WHERE schema = 'main' AND name = ? AND wr = 1", name)
	if err != nil {
		return t, err
	}
	if len(without) == 0 {
		t.key = []string{"rowid"}
		return t, nil
	}
	t.key, err = r.column(ctx, "SELECT name FROM pragma_table_xinfo(?) WHERE pk > 0 ORDER BY pk", name)
	return t, err
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func quotedAll(names []string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = quoted(n)
	}
	return strings.Join(list, ", ")
}

// common returns the columns of t that the source also has: its schema may be
// older.
func (s source) common(ctx context.Context, t table) ([]string, error) {
	rows, err := s.conn.QueryContext(ctx, "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", t.name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var cols []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		if slices.Contains(t.cols, name) {
			cols = append(cols, name)
		}
	}
	return cols, rows.Err()
}

// errUnknownTeam is the error if no source has the team.
func errUnknownTeam() error {
	return team.Errorf(team.CodeUnavailable, "neither the damaged ledger, a copy nor config.json identifies the team").
		WithReason(reasonCorrupt).WithHint("nothing was changed; teamctl doctor")
}

package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/teamctl/teamctl/team"
)

// tx is one operation inside a write transaction. It has one clock.
type tx struct {
	db    *DB
	who   string // the actor of events that name no other
	via   string // the screen by which it acts
	now   int64  // Unix milliseconds
	wrote bool   // a row was changed
	kept  bool   // the result is stored for a repetition
	reach reach  // whom it concerns
}

// background is the context of statements: what has begun must finish, and the
// driver starts no goroutine for a context that cannot end.
var background = context.Background()

// stmt prepares q once per connection.
func (t *tx) stmt(q string) (*sql.Stmt, error) {
	if s, ok := t.db.prep[q]; ok {
		return s, nil
	}
	s, err := t.db.conn.PrepareContext(background, q)
	if err != nil {
		return nil, fmt.Errorf("prepare %.60q: %w", q, err)
	}
	t.db.prep[q] = s
	return s, nil
}

// exec runs q and returns the number of changed rows.
func (t *tx) exec(q string, args ...any) (int64, error) {
	s, err := t.stmt(q)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(background, args...)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	t.wrote = t.wrote || n > 0
	return n, err
}

// each calls scan for every row. It always reads to the end: resetting a
// RETURNING statement early leaves SQLite unable to checkpoint.
func (t *tx) each(q string, scan func(*sql.Rows) error, args ...any) error {
	s, err := t.stmt(q)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(background, args...)
	if err != nil {
		return err
	}
	return drain(rows, scan)
}

// one is each for at most one row; it reports whether there was one.
func (t *tx) one(q string, scan func(*sql.Rows) error, args ...any) (found bool, err error) {
	err = t.each(q, func(r *sql.Rows) error {
		found = true
		return scan(r)
	}, args...)
	return found, err
}

// value reads a single column of at most one row.
func value[T any](t *tx, q string, args ...any) (v T, found bool, err error) {
	found, err = t.one(q, func(r *sql.Rows) error { return r.Scan(&v) }, args...)
	return v, found, err
}

// column reads the first column of every row.
func column[T any](t *tx, q string, args ...any) ([]T, error) {
	var out []T
	err := t.each(q, func(r *sql.Rows) error {
		var v T
		err := r.Scan(&v)
		out = append(out, v)
		return err
	}, args...)
	return out, err
}

func drain(rows *sql.Rows, scan func(*sql.Rows) error) error {
	var errs []error
	for rows.Next() {
		if len(errs) == 0 {
			if err := scan(rows); err != nil {
				errs = append(errs, err)
			}
		}
	}
	errs = append(errs, rows.Err(), rows.Close())
	return errors.Join(errs...)
}

// read runs a query on the reader pool and scans its rows.
func read[T any](ctx context.Context, db *DB, doing string, scan func(*sql.Rows) (T, error), q string, args ...any) ([]T, error) {
	if err := db.Replaced(); err != nil {
		return nil, err
	}
	r, err := db.reader()
	if err != nil {
		return nil, err
	}
	rows, err := r.QueryContext(ctx, q, args...)
	if err != nil {
		return nil, db.asCoded(doing, err)
	}
	out := []T{}
	err = drain(rows, func(r *sql.Rows) error {
		v, err := scan(r)
		out = append(out, v)
		return err
	})
	if err != nil {
		return nil, db.asCoded(doing, err)
	}
	return out, nil
}

// orNull stores an empty string or zero as NULL.
func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// jsonOrNull stores absent JSON, and the JSON null, as NULL.
func jsonOrNull(raw json.RawMessage) any {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return string(raw)
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // all callers pass plain types of this package
	}
	return string(b)
}

// object checks that raw is a JSON object, or absent.
func object(what string, raw json.RawMessage) (map[string]json.RawMessage, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, team.Errorf(team.CodeInvalid, "%s must be a JSON object: %w", what, err)
	}
	return m, nil
}

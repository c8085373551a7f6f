package ledger

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/team"
)

//go:generate go test -run ^TestNewSchema$ -update .

//go:embed migrations/*.sql
var migrationFiles embed.FS

// newSchema makes in one step what the migrations up to its version make of an empty file. Its
// first line has the version.
//
//go:embed schema.sql
var newSchema string

const newSchemaVersion = "-- version "

// appID identifies a ledger in the header of the database file ("team").
const appID = 0x7465616d

// migration upgrades the schema from version-1 to version.
type migration struct {
	version int
	name    string
	sql     string // "": the embedded file of that name, which only an upgrade reads
}

func (m migration) statements() (string, error) {
	if m.sql != "" {
		return m.sql, nil
	}
	body, err := migrationFiles.ReadFile("migrations/" + m.name)
	return string(body), err
}

// migrations returns the embedded files in order: 0001_init.sql is version 1.
func migrations() []migration {
	files, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		panic(err) // it is embedded
	}
	steps := make([]migration, len(files)) // ReadDir sorts
	for i, f := range files {
		number, _, _ := strings.Cut(f.Name(), "_")
		if v, err := strconv.Atoi(number); err != nil || v != i+1 {
			panic("migrations are not numbered without gaps: " + f.Name())
		}
		steps[i] = migration{version: i + 1, name: f.Name()}
	}
	return steps
}

// creation returns the step that makes a new ledger.
func creation() migration {
	head, _, _ := strings.Cut(newSchema, "\n")
	v, err := strconv.Atoi(strings.TrimPrefix(head, newSchemaVersion))
	if err != nil {
		panic("schema.sql has no version: " + head) // it is embedded
	}
	return migration{version: v, name: "schema.sql", sql: newSchema}
}

// isCurrent is the fast path: it reports whether the file has the newest
// schema. A newer schema, or another kind of database, is an error.
func (db *DB) isCurrent(ctx context.Context, on rows, steps []migration) (bool, error) {
	v, app, err := version(ctx, on)
	if err != nil {
		return false, err
	}
	if err := db.judge(ctx, on, v, app, steps); err != nil {
		return false, err
	}
	return v == len(steps), nil
}

// rows is a connection, or a pool of them.
type rows interface {
	QueryRowContext(ctx context.Context, q string, args ...any) *sql.Row
}

func version(ctx context.Context, on rows) (v, app int, err error) {
	// As tables, for one question, pragmas cost three times as much. Both are
	// set in one transaction: the id comes first, so that an id has its version.
	err = on.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app)
	if err == nil {
		err = on.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v)
	}
	if err != nil {
		err = fmt.Errorf("read schema version: %w", err)
	}
	return v, app, err
}

func (db *DB) judge(ctx context.Context, on rows, v, app int, steps []migration) error {
	if v > len(steps) && app == appID {
		return team.Errorf(team.CodeUnavailable, "ledger %s has schema %d, this teamctl supports %d", db.path, v, len(steps)).
			WithReason(team.ReasonSchemaNewer).WithHint("upgrade teamctl")
	}
	if app == appID {
		return nil
	}
	var tables int
	if err := on.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return fmt.Errorf("read schema: %w", err)
	}
	if v == 0 && tables == 0 {
		return nil
	}
	// Another process may have made the ledger between the two questions.
	_, app, err := version(ctx, on)
	if err == nil && app != appID {
		err = team.Errorf(team.CodeUnavailable, "%s is a database, but not a ledger", db.path).
			WithReason(team.ReasonNotALedger).WithHint(hintRecover(db.path))
	}
	return err
}

// migrate applies the missing steps, each in its own transaction that reads the
// version again; an empty file takes the creation instead of those that it stands for. The caller holds the fair lock. It first makes a copy of an
// older ledger.
func (db *DB) migrate(ctx context.Context, steps []migration) error {
	v, app, err := version(ctx, db.conn)
	if err != nil {
		return err
	}
	if err := db.judge(ctx, db.conn, v, app, steps); err != nil {
		return err
	}
	if v > 0 && v < len(steps) {
		if err := db.backup(ctx, v); err != nil {
			return err
		}
	}
	return db.withoutForeignKeys(ctx, func() error {
		for _, s := range steps {
			if s.version <= v {
				continue
			}
			if v, err = db.step(ctx, s, len(steps)); err != nil {
				return fmt.Errorf("migration %s: %w", s.name, err)
			}
		}
		return nil
	})
}

// withoutForeignKeys lets a step recreate a table to which others refer.
// Foreign keys can only be switched outside transactions; each step checks them
// at its end.
func (db *DB) withoutForeignKeys(ctx context.Context, run func() error) error {
	if _, err := db.conn.ExecContext(ctx, "PRAGMA foreign_keys = OFF"); err != nil {
		return err
	}
	err := run()
	_, on := db.conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA foreign_keys = ON")
	return errors.Join(err, on)
}

// step applies s, or in an empty file the creation unless that is newer than newest, and returns
// the version of the schema. Only the wait for a transaction has a limit.
func (db *DB) step(ctx context.Context, s migration, newest int) (v int, err error) {
	bounded, cancel := context.WithTimeout(ctx, db.opts.BusyTimeout)
	defer cancel()
	err = retryBusy(bounded, func() error {
		_, err := db.conn.ExecContext(bounded, "BEGIN IMMEDIATE")
		return err
	})
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_, _ = db.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	v, _, err = version(ctx, db.conn)
	if err != nil {
		return 0, err
	}
	if first := creation(); v == 0 && first.version <= newest {
		s = first
	}
	if v < s.version {
		sql, err := s.statements()
		if err != nil {
			return 0, err
		}
		if _, err := db.conn.ExecContext(ctx, sql); err != nil {
			return 0, err
		}
		var broken int
		if err := db.conn.QueryRowContext(ctx, "SELECT count(*) FROM pragma_foreign_key_check").Scan(&broken); err != nil {
			return 0, fmt.Errorf("check foreign keys: %w", err)
		}
		if broken > 0 {
			return 0, team.Errorf(team.CodeInternal, "%d rows would have dangling references", broken)
		}
		set := fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", s.version, appID)
		if _, err := db.conn.ExecContext(ctx, set); err != nil {
			return 0, err
		}
		v = s.version
	}
	_, err = db.conn.ExecContext(ctx, "COMMIT")
	return v, err
}

package ledger

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/team"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// appID identifies a ledger in the header of the database file ("team").
const appID = 0x7465616d

// migration upgrades the schema from version-1 to version.
type migration struct {
	version int
	name    string
	sql     string
}

// migrations returns the embedded files in order: 0001_init.sql is version 1.
func migrations() []migration {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	steps := make([]migration, len(names)) // Glob sorts
	for i, name := range names {
		body, err := migrationFiles.ReadFile(name)
		base := filepath.Base(name)
		v, convErr := strconv.Atoi(strings.SplitN(base, "_", 2)[0])
		if err != nil || convErr != nil || v != i+1 {
			panic("migrations are not numbered without gaps: " + base)
		}
		steps[i] = migration{version: v, name: base, sql: string(body)}
	}
	return steps
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
	err = on.QueryRowContext(ctx, "SELECT user_version, application_id FROM pragma_user_version, pragma_application_id").Scan(&v, &app)
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
// version again. The caller holds the fair lock. It first makes a copy of an
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
			if err := db.step(ctx, s); err != nil {
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

// step applies one step. Only the wait for a transaction has a limit.
func (db *DB) step(ctx context.Context, s migration) (err error) {
	bounded, cancel := context.WithTimeout(ctx, db.opts.BusyTimeout)
	defer cancel()
	err = retryBusy(bounded, func() error {
		_, err := db.conn.ExecContext(bounded, "BEGIN IMMEDIATE")
		return err
	})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = db.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	v, _, err := version(ctx, db.conn)
	if err != nil {
		return err
	}
	if v < s.version {
		if _, err := db.conn.ExecContext(ctx, s.sql); err != nil {
			return err
		}
		var broken int
		if err := db.conn.QueryRowContext(ctx, "SELECT count(*) FROM pragma_foreign_key_check").Scan(&broken); err != nil {
			return fmt.Errorf("check foreign keys: %w", err)
		}
		if broken > 0 {
			return team.Errorf(team.CodeInternal, "%d rows would have dangling references", broken)
		}
		set := fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", s.version, appID)
		if _, err := db.conn.ExecContext(ctx, set); err != nil {
			return err
		}
	}
	_, err = db.conn.ExecContext(ctx, "COMMIT")
	return err
}

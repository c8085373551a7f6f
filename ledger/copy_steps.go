package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/team"
)

// A copy is made in small steps of SQLite's online backup. It takes no lock that a writer
// waits for, but processor and disk are shared: a writer's sync waits for what the copy has
// written, and a large sync is felt by all. So each step goes to disk by itself, and while
// others write, most of the time belongs to them. A low priority would not do: the writer
// of this process would wait for a thread that holds a mutex of SQLite and is not run.
const (
	copyPages = 64 // 256 KiB a step
	// copyShare is how much longer than its steps a copy rests while others write.
	copyShare = 4
	// copyWithin bounds all rests of a copy: the log cannot be reset meanwhile.
	copyWithin = 20 * time.Second
)

// copySteps copies the database, as it is now, into the empty file tmp.
func (db *DB) copySteps(ctx context.Context, tmp *os.File) (err error) {
	from, err := sql.Open("sqlite3", db.readerDSN())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	// The read transaction keeps the backup from beginning anew after each write.
	var tx *sql.Tx
	src, err := from.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	if err := retryBusy(ctx, func() error {
		if tx, err = src.BeginTx(ctx, nil); err != nil {
			return err
		}
		if _, err = tx.ExecContext(ctx, "SELECT 1 FROM sqlite_schema LIMIT 1"); err != nil {
			err = errors.Join(err, tx.Rollback())
		}
		return err
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreDone(tx.Rollback())) }()
	into, err := sql.Open("sqlite3", (&url.URL{Scheme: "file", Path: tmp.Name(), RawQuery: "mode=rw&_sync=0&_locking_mode=EXCLUSIVE"}).String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, into.Close()) }()
	dest, err := into.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dest.Close()) }()
	err = dest.Raw(func(d any) error {
		return src.Raw(func(s any) error {
			b, err := d.(*sqlite3.SQLiteConn).Backup("main", s.(*sqlite3.SQLiteConn), "main")
			if err != nil {
				return err
			}
			return errors.Join(db.steps(ctx, b, tmp), b.Finish())
		})
	})
	if err != nil {
		return err
	}
	// The header of a ledger asks for a log, which a copy does not have.
	if _, err := dest.ExecContext(ctx, "PRAGMA journal_mode = DELETE"); err != nil {
		return err
	}
	return verifyCopy(ctx, dest)
}

// steps takes the steps of a backup, and rests between them while others write.
func (db *DB) steps(ctx context.Context, b *sqlite3.SQLiteBackup, tmp *os.File) error {
	written := logState(db.path)
	for left := -1; ; {
		began := time.Now()
		done, err := b.Step(copyPages)
		var se sqlite3.Error
		if errors.As(err, &se) {
			err = sqlite3.Error{Code: se.Code & 0xff, ExtendedCode: sqlite3.ErrNoExtended(se.Code)}
		}
		if err == nil {
			err = tmp.Sync()
		}
		if done || err != nil {
			return err
		}
		if b.Remaining() == left {
			return team.Errorf(team.CodeTimeout, "the database is locked").WithReason(team.ReasonBusy)
		}
		left = b.Remaining()
		rest := time.Duration(0)
		if now := logState(db.path); now != written {
			written = now
			rest = min(copyShare*time.Since(began), copyWithin/time.Duration(1+b.PageCount()/copyPages))
		}
		if err := pause.For(ctx, rest); err != nil {
			return err
		}
	}
}

// logState changes with each write to the database at path.
func logState(path string) (s struct{ size, at int64 }) {
	if fi, err := os.Stat(path + "-wal"); err == nil {
		s.size, s.at = fi.Size(), fi.ModTime().UnixNano()
	}
	return s
}

// verifyCopy fails if a copy is damaged: pages are copied as they are.
func verifyCopy(ctx context.Context, conn *sql.Conn) error {
	var said string
	if err := conn.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&said); err != nil {
		return err
	}
	if said != "ok" {
		return fmt.Errorf("%s: %w", said, sqlite3.Error{Code: sqlite3.ErrCorrupt})
	}
	return nil
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

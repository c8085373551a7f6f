package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/teamctl/teamctl/team"
)

const (
	sqlForeignKeys = `SELECT coalesce("table", '') || ' row ' || coalesce(rowid, '?') || ' refers to a missing ' || coalesce(parent, '')
		FROM pragma_foreign_key_check`
	sqlDrift = `SELECT 'task ' || id || ' has blockedBy ' || coalesce(blockedBy, 'NULL') || ' and unmet ' || unmet FROM tasks t
		WHERE unmet <> json_array_length(coalesce(blockedBy, '[]')) OR unmet <> (
			SELECT count(*) FROM task_deps d JOIN tasks x ON x.id = d.dependsOn WHERE d.task = t.id AND x.status <> 'completed')`
	// No other mechanism returns these tasks: a claim without a lease does not
	// expire, and a member that has left does not release its tasks. A task
	// that awaits an approval has no lease.
	unreleased = ` FROM tasks t LEFT JOIN members m ON m.sessionKey = t.owner AND m.removedAt IS NOT NULL
		WHERE t.status IN ('claimed', 'in_progress') AND t.review IS NULL AND t.verification IS NULL AND (t.leaseUntil IS NULL OR m.name IS NOT NULL)`
	sqlUnreleased    = `SELECT 'task ' || t.id || ' is ' || t.status || iif(m.name IS NULL, ' without a lease', ' by ' || m.name || ', who has left')` + unreleased
	sqlUnreleasedIDs = `SELECT t.id` + unreleased + ` ORDER BY t.seq`
	sqlUncounted     = `SELECT 'the number of the last task is missing' WHERE NOT EXISTS (SELECT 1 FROM counters WHERE name = 'task')`
	sqlMiscounted    = `SELECT 'the numbers of the board are not those of its tasks' FROM (` + sqlRecount + `) r
		WHERE NOT EXISTS (SELECT 1 FROM task_counts c WHERE (c.one, c.pending, c.ready, c.claimed, c.in_progress, c.completed, c.failed)
			= (r.one, r.pending, r.ready, r.claimed, r.in_progress, r.completed, r.failed))`
)

// Check reads the whole file and returns its problems: damaged pages and
// indexes, dangling references, wrong counts, claims that would never end. No
// problems and no error mean an intact ledger.
func (l *Ledger) Check(ctx context.Context) (problems []string, err error) {
	pages, err := read(ctx, l.db, "check the ledger", scanOne[string], "PRAGMA integrity_check(100)")
	if err != nil {
		return nil, err
	}
	if len(pages) != 1 || pages[0] != "ok" {
		return pages, nil
	}
	for _, q := range []string{sqlForeignKeys, sqlDrift, sqlUnreleased, sqlUncounted, sqlMiscounted} {
		found, err := read(ctx, l.db, "check the ledger", scanOne[string], q)
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	return problems, nil
}

// Checkpoint moves the WAL into the database and truncates it; call it when the
// ledger is idle. CodeTimeout (busy) means that a reader prevents it; nothing
// is lost then, the WAL only keeps its size.
func (l *Ledger) Checkpoint(ctx context.Context) error {
	db := l.db
	ctx, cancel := context.WithTimeout(ctx, db.opts.BusyTimeout)
	defer cancel()
	busy := false
	err := db.write(ctx, "checkpoint", func() error {
		t := &tx{db: db}
		_, err := t.one("PRAGMA wal_checkpoint(TRUNCATE)", func(r *sql.Rows) error {
			var log, moved int
			return r.Scan(&busy, &log, &moved)
		})
		return err
	})
	if err != nil {
		return db.asCoded("checkpoint", err)
	}
	if busy {
		return team.Errorf(team.CodeTimeout, "checkpoint: blocked by a reader").WithReason(team.ReasonBusy)
	}
	return nil
}

// WALMuch is a size in bytes that a write-ahead log normally does not reach:
// SQLite reuses it from about 4 MB on, unless there is always a reader.
const WALMuch = 32 << 20

// WALSize returns the size of the write-ahead log in bytes, 0 without one. If
// it keeps growing, some reader never ends its transaction.
func (l *Ledger) WALSize() (int64, error) {
	fi, err := os.Stat(l.db.path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("size of the wal: %w", err)
	}
	return fi.Size(), nil
}

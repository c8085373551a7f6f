package main

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"time"

	_ "github.com/mattn/go-sqlite3" // nothing of ours is around it
)

// A queue as one writes it first: messages with a time before which nobody else gets
// them, found by a scan of what is due in the order of their making; each process takes
// SQLite's own lock and waits by its busy timeout. It is as durable as ours.

func naivePath(home string) string { return filepath.Join(home, "naive.db") }

func openNaive(home string) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", "file:"+naivePath(home)+"?_journal_mode=WAL&_synchronous=FULL&_txlock=immediate&_busy_timeout=60000")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// naiveQueue makes the queue anew with n messages.
func naiveQueue(ctx context.Context, home string, n int) (err error) {
	db, err := openNaive(home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, `DROP TABLE IF EXISTS queue;
		CREATE TABLE queue(id TEXT PRIMARY KEY DEFAULT ('m_' || lower(hex(randomblob(16)))), created INTEGER NOT NULL, name TEXT NOT NULL,
			body BLOB NOT NULL, timeout INTEGER NOT NULL DEFAULT 0, received INTEGER NOT NULL DEFAULT 0);
		CREATE INDEX queue_name ON queue(name, created);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO queue(created, name, body) SELECT i, 'q', 'task' FROM n;
		PRAGMA wal_checkpoint(TRUNCATE)`, n)
	return err
}

func childNaive(ctx context.Context, a childArgs) (func() (time.Duration, bool, error), func() error, error) {
	db, err := openNaive(a.Home)
	if err != nil {
		return nil, nil, err
	}
	return func() (time.Duration, bool, error) {
		now := time.Now().UnixMilli()
		var id string
		err := db.QueryRowContext(ctx, `UPDATE queue SET timeout = ?, received = received + 1 WHERE id = (SELECT id FROM queue
			WHERE name = 'q' AND timeout <= ? AND received < 3 ORDER BY created LIMIT 1) RETURNING id`, now+time.Hour.Milliseconds(), now).Scan(&id)
		return 0, err == nil, err
	}, db.Close, nil
}

package ledger

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// A recovered ledger is another file of the same name, with the damaged one
// next to it under its own name. Programs that have the damaged one open (an
// agent, an MCP client's server) continue with the new one, which belongs to
// the same team. Any other file that gets the name is not followed; see
// Replaced.

// DamagedMark follows the ledger's name in the names of damaged ledgers that a
// recovery has set aside.
const DamagedMark = ".damaged-"

func (db *DB) opened() os.FileInfo {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.file
}

// follow reports whether now is the recovered successor of the open ledger, and
// makes readers open it.
func (db *DB) follow(now os.FileInfo) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	if os.SameFile(now, db.file) {
		return true
	}
	entries, err := os.ReadDir(filepath.Dir(db.path))
	if err != nil {
		return false
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filepath.Base(db.path)+DamagedMark) {
			continue
		}
		if fi, err := e.Info(); err != nil || !os.SameFile(fi, db.file) {
			continue
		}
		if db.rdb != nil {
			_ = db.rdb.Close() // running reads finish
		}
		db.rdb, db.file = nil, now
		return true
	}
	return false
}

// rewrite makes the writer open the current ledger of that name. The caller
// holds the write slot.
func (db *DB) rewrite() error {
	now := db.opened()
	if db.writes == nil || os.SameFile(db.writes, now) {
		db.writes = now
		return nil
	}
	var errs []error
	for _, s := range db.prep {
		errs = append(errs, s.Close())
	}
	db.prep = map[string]*sql.Stmt{}
	if db.conn != nil {
		errs = append(errs, db.conn.Close())
	}
	if db.wdb != nil {
		errs = append(errs, db.wdb.Close())
	}
	db.conn, db.wdb, db.writes, db.placed = nil, nil, now, false
	return errors.Join(append(errs, db.writer(background))...)
}

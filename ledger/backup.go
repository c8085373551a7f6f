package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/glob"
)

// tempName is the pattern of files that are not yet a ledger; the doctor
// removes those that killed processes left.
const tempName = ".ledger-*"

// backup writes ledger.v<version>.<ms>.bak next to the ledger. The file gets
// that name only once it is complete on disk: a killed process leaves a
// temporary file, never a partial copy.
func (db *DB) backup(ctx context.Context, v int) error {
	dir, stem := filepath.Split(db.path)
	stem = strings.TrimSuffix(stem, filepath.Ext(stem))
	name := filepath.Join(dir, fmt.Sprintf("%s.v%d.%d.bak", stem, v, time.Now().UnixMilli()))
	if err := copyInto(ctx, db.conn, name); err != nil {
		return fmt.Errorf("back up before migrating: %w", err)
	}
	return nil
}

// copyInto writes a copy of the current database, at once: nobody else writes during a
// migration. VACUUM INTO reads every row, so a damaged database yields no copy.
func copyInto(ctx context.Context, conn *sql.Conn, name string) error {
	return complete(name, func(tmp *os.File) error {
		_, err := conn.ExecContext(ctx, "VACUUM INTO ?", tmp.Name())
		return err
	})
}

// complete writes a file by fill and gives it its name once it is complete on disk.
func complete(name string, fill func(tmp *os.File) error) (err error) {
	dir := filepath.Dir(name)
	tmp, err := os.CreateTemp(dir, tempName) // empty, as VACUUM INTO wants it; 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreMissing(os.Remove(tmp.Name()))) }()
	if err := fill(tmp); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if err := errors.Join(tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), name); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Backups returns the copies of the ledger at path that were made before
// migrations, oldest first.
func Backups(path string) []string {
	found, err := filepath.Glob(glob.Escape(strings.TrimSuffix(path, filepath.Ext(path))) + ".v*.bak")
	if err != nil {
		return nil // the pattern is valid
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(backupTime(a), backupTime(b)) })
	return found
}

// backupTime returns the last number in the name of a backup: Unix
// milliseconds.
func backupTime(path string) int64 {
	name := strings.TrimSuffix(path, ".bak")
	ms, err := strconv.ParseInt(name[strings.LastIndexByte(name, '.')+1:], 10, 64)
	if err != nil {
		return 0
	}
	return ms
}

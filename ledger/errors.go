package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/teamctl/teamctl/team"
)

// sqliteCodes maps SQLite's errors to codes.
var sqliteCodes = map[sqlite3.ErrNo]struct {
	code         team.Code
	reason, hint string
}{
	sqlite3.ErrBusy:     {team.CodeTimeout, team.ReasonBusy, "try again"},
	sqlite3.ErrLocked:   {team.CodeTimeout, team.ReasonBusy, "try again"},
	sqlite3.ErrProtocol: {team.CodeTimeout, team.ReasonBusy, "try again"}, // of others that lock the WAL
	sqlite3.ErrNotADB:   {team.CodeUnavailable, reasonCorrupt, ""},        // see hintRecover
	sqlite3.ErrCorrupt:  {team.CodeUnavailable, reasonCorrupt, ""},
	sqlite3.ErrReadonly: {team.CodeUnavailable, team.ReasonReadonly, "check the permissions of the team's directory"},
	sqlite3.ErrCantOpen: {team.CodeUnavailable, team.ReasonReadonly, "check the permissions of the team's directory"},
	sqlite3.ErrPerm:     {team.CodeUnavailable, team.ReasonReadonly, "check the permissions of the team's directory"},
	sqlite3.ErrFull:     {team.CodeUnavailable, team.ReasonDiskFull, "free some space"},
	sqlite3.ErrIoErr:    {team.CodeUnavailable, reasonDisk, "check the disk; teamctl doctor"},
}

// asCoded adds a code to an error of the database; coded errors pass unchanged,
// ended contexts only get a prefix.
func (db *DB) asCoded(doing string, err error) error {
	if err == nil {
		return nil
	}
	var coded *team.Error
	if errors.As(err, &coded) {
		return err
	}
	var se sqlite3.Error
	if errors.As(err, &se) {
		if c, ok := sqliteCodes[se.Code]; ok {
			if c.reason == reasonCorrupt {
				c.hint = hintRecover(db.path)
			}
			return team.Errorf(c.code, "%s: %w", doing, err).WithReason(c.reason).WithHint(c.hint)
		}
		return team.Errorf(team.CodeInternal, "%s: %w", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Reasons of the errors for an unreadable ledger, and for a disk that fails.
const (
	reasonCorrupt = "corrupt"
	reasonDisk    = "io"
)

// hintRecover returns the command that rebuilds a ledger. Its directory has the
// name of its team.
func hintRecover(path string) string {
	return "teamctl ledger recover " + filepath.Base(filepath.Dir(path))
}

// isFull reports whether the disk or the memory is full, or the disk fails.
func isFull(err error) bool {
	var se sqlite3.Error
	return errors.As(err, &se) && (se.Code == sqlite3.ErrFull || se.Code == sqlite3.ErrIoErr || se.Code == sqlite3.ErrNomem)
}

func isBusy(err error) bool {
	var se sqlite3.Error
	return errors.As(err, &se) && (se.Code == sqlite3.ErrBusy || se.Code == sqlite3.ErrLocked)
}

// isSQLite reports whether err is an error of the database itself, after which
// a transaction may have been rolled back.
func isSQLite(err error) bool {
	var se sqlite3.Error
	return errors.As(err, &se)
}

// busyOr turns an expired wait into the coded error "busy".
func busyOr(err error, doing string) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return team.Errorf(team.CodeTimeout, "the ledger is busy: %s: %w", doing, err).
			WithReason(team.ReasonBusy).WithHint("try again")
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Temporary reports whether an error is of a ledger that may be in order later: it is locked, its disk
// is full or fails, or its file cannot be opened.
func Temporary(err error) bool {
	reason := team.ReasonOf(err)
	switch team.CodeOf(err) {
	case team.CodeTimeout:
		return reason == team.ReasonBusy
	case team.CodeUnavailable:
		return reason == team.ReasonReadonly || reason == team.ReasonDiskFull || reason == reasonDisk
	default:
		return false
	}
}

// retryBusy repeats fn until it is not refused because of a lock, or ctx ends.
// Only programs that do not take the file lock cause this; jitter separates the
// waiters.
func retryBusy(ctx context.Context, fn func() error) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := fn()
		if err == nil || !isBusy(err) {
			return err
		}
		t := time.NewTimer(wait/2 + rand.N(wait)) // jitter
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}

package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Copies of a ledger are in a directory of their own. Each is complete: it gets
// its name only once it is on disk.

const (
	copyPrefix = "ledger-"
	copySuffix = ".db"
	copyTime   = "20060102T150405.000Z" // sorts by age
	copySaid   = "2006-01-02 15:04:05 MST"
)

// Copy is a copy of a ledger.
type Copy struct {
	Path string    `json:"path"`
	At   time.Time `json:"at"` // time of its contents
	Size int64     `json:"size"`
}

// Copies lists the copies in dir, newest first. Those dated after now come last: the clock has been set
// back since they were made, and another copy is made soon after that. A missing directory has none.
func Copies(dir string) ([]Copy, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "list the copies of the ledger: %w", err)
	}
	var list []Copy
	for _, e := range entries {
		stamp, ok := strings.CutPrefix(e.Name(), copyPrefix)
		stamp, isCopy := strings.CutSuffix(stamp, copySuffix)
		at, err := time.Parse(copyTime, stamp)
		if !ok || !isCopy || err != nil {
			continue
		}
		fi, err := e.Info()
		if err != nil || !fi.Mode().IsRegular() {
			continue
		}
		list = append(list, Copy{filepath.Join(dir, e.Name()), at, fi.Size()})
	}
	now := time.Now()
	slices.SortFunc(list, func(a, b Copy) int {
		if later := a.At.After(now); later != b.At.After(now) {
			if later {
				return 1
			}
			return -1
		}
		return b.At.Compare(a.At)
	})
	return list, nil
}

// CopyTo makes a copy in dir, which it creates if necessary, and keeps the
// newest copies there. A damaged ledger is CodeUnavailable, and the existing
// copies stay.
func (l *Ledger) CopyTo(ctx context.Context, dir string, keep int) (c Copy, err error) {
	defer func() { err = l.db.asCoded("copy the ledger", err) }()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return c, err
	}
	SweepCopies(dir)
	c.At = time.Now().UTC().Truncate(time.Millisecond)
	c.Path = filepath.Join(dir, copyPrefix+c.At.Format(copyTime)+copySuffix)
	if err := complete(c.Path, func(tmp *os.File) error { return l.db.copySteps(ctx, tmp) }); err != nil {
		return c, err
	}
	fi, err := os.Stat(c.Path)
	if err != nil {
		return c, err
	}
	c.Size = fi.Size()
	list, err := Copies(dir)
	if err != nil {
		return c, err
	}
	// Whatever the clock says, the new one stays.
	list = slices.DeleteFunc(list, func(old Copy) bool { return old.Path == c.Path })
	for _, old := range list[min(max(keep-1, 0), len(list)):] {
		if err := ignoreMissing(os.Remove(old.Path)); err != nil {
			return c, fmt.Errorf("remove an old copy: %w", err)
		}
	}
	return c, nil
}

// unfinishedAge is the age of a file without a name that no running process writes: a copy goes to disk
// in short steps.
const unfinishedAge = 10 * time.Minute

// SweepCopies removes what killed processes have left of copies in dir, each as large as the ledger, and
// returns how many files it removed. What cannot be removed is no reason to make no copy.
func SweepCopies(dir string) (n int) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && fi.Mode().IsRegular() && strings.HasPrefix(e.Name(), "."+copyPrefix) && time.Since(fi.ModTime()) > unfinishedAge {
			if os.Remove(filepath.Join(dir, e.Name())) == nil {
				n++
			}
		}
	}
	return n
}

package inbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
)

// Left-overs of killed processes: temporary files of a rewrite, stolen lock
// directories, and temporary names of the .pid files.
var (
	staleLock = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\..+\.json\.lock\.stale-[0-9a-f]{16}$`) })
	pidTemp   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^.+\.pid\.[0-9]+$`) })
)

// Sweep removes left-overs older than olderThan from the two directories and
// returns how many it removed. Run it when a supervisor starts.
func Sweep(inboxesDir, locksDir string, olderThan time.Duration) (int, error) {
	n, err := atomicfile.SweepTemp(inboxesDir, olderThan)
	m, errM := atomicfile.SweepTemp(locksDir, olderThan)
	a, errA := sweepMatching(inboxesDir, staleLock(), olderThan)
	b, errB := sweepMatching(locksDir, pidTemp(), olderThan)
	return n + m + a + b, errors.Join(err, errM, errA, errB)
}

func sweepMatching(dir string, name *regexp.Regexp, olderThan time.Duration) (int, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n := 0
	var errs []error
	for _, e := range entries {
		if !name.MatchString(e.Name()) {
			continue
		}
		info, err := e.Info()
		if err == nil && time.Since(info.ModTime()) > olderThan {
			if err = os.Remove(filepath.Join(dir, e.Name())); err == nil {
				n++
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return n, errors.Join(errs...)
}

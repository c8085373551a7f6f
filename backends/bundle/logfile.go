package bundle

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/internal/timeindex"
)

// Limits of a member's stored output: output.log, output.log.1 and
// output.log.2, each of LogMax bytes (slightly more, because a write is never
// split).
const (
	LogMax  = 8 << 20
	logKeep = 2
)

// LogFile is a member's output.log if teamctl writes it. It is appended to,
// rotated by renaming, and survives a full disk: bytes that could not be
// written are counted, and the count is logged as soon as there is space again.
type LogFile struct {
	path string
	max  int64

	mu   sync.Mutex
	f    *os.File
	when *timeindex.Writer
	size int64
	lost int64 // bytes lost since the last successful write
	why  error
}

// CreateLog creates the log with a private mode before any other process can
// create it.
func CreateLog(path string) error {
	f, err := regular.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("create the log: %w", err)
	}
	return f.Close()
}

// OpenLog opens or creates the log, 0600. It refuses a symbolic link.
func OpenLog(path string) (*LogFile, error) {
	l := &LogFile{path: path, max: LogMax}
	return l, l.open()
}

func (l *LogFile) open() error {
	f, err := regular.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return fmt.Errorf("open %s: %w", l.path, err)
	}
	if l.f != nil {
		_ = l.f.Close()
	}
	l.f, l.size = f, fi.Size()
	_ = l.when.Close()
	l.when, _ = timeindex.Open(l.path) // without it, only the times are unknown
	return nil
}

// Write always succeeds, whatever happens to the disk: it never fails and never
// returns less than len(p).
func (l *LogFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil || len(p) == 0 {
		return len(p), nil
	}
	l.turn()
	if l.lost > 0 && !l.logLost() {
		l.lost += int64(len(p))
		return len(p), nil
	}
	l.when.Note(l.size, time.Now())
	if n, err := l.f.Write(p); err != nil {
		l.size += int64(n)
		l.lost, l.why = int64(len(p)-n), err
		return len(p), nil
	}
	l.size += int64(len(p))
	return len(p), nil
}

// logLost logs the number of lost bytes; it returns false if there is no space
// yet.
func (l *LogFile) logLost() bool {
	why := l.why.Error()
	var no unix.Errno
	if errors.As(l.why, &no) {
		why = no.Error() // without the path
	}
	note := fmt.Sprintf("\r\n[teamctl: %d bytes of output were lost here: %s]\r\n", l.lost, why)
	n, err := l.f.WriteString(note)
	if err != nil {
		// A partial note would be repeated again and again.
		if n > 0 && l.f.Truncate(l.size) != nil {
			l.size += int64(n)
		}
		return false
	}
	l.size += int64(n)
	l.lost = 0
	return true
}

// turn rotates a full log, and starts a new one if the file was removed. If
// that fails, the next write tries again, and the open file remains in use.
func (l *LogFile) turn() {
	if l.size >= l.max {
		for i := logKeep; i > 0; i-- {
			from := l.path
			if i > 1 {
				from += "." + strconv.Itoa(i-1)
			}
			to := l.path + "." + strconv.Itoa(i)
			switch err := os.Rename(from, to); {
			case err == nil:
				timeindex.Rotate(from, to)
			case i == 1:
				return
			}
		}
		_ = l.open()
		return
	}
	var st unix.Stat_t
	switch err := unix.Fstat(int(l.f.Fd()), &st); {
	case err != nil:
	case st.Nlink == 0:
		_ = l.open()
	case st.Size < l.size: // the file was truncated
		l.size = st.Size
	}
}

// Lose counts bytes that did not reach Write; the log reports them.
func (l *LogFile) Lose(n int64, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost += n
	l.why = why
	if l.f != nil {
		l.logLost()
	}
}

// Close closes the log; later writes are dropped.
func (l *LogFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	if l.lost > 0 {
		l.logLost()
	}
	err := errors.Join(l.f.Close(), l.when.Close())
	l.f = nil
	return err
}

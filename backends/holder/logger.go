package holder

import (
	"context"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// loggerWithin limits the time for a log writer to start.
const loggerWithin = 10 * time.Second

// AwaitLog returns true when the log writer of a generation has exited: the log
// of an ended generation is then complete. It returns false if ctx ends first,
// or if no log writer ever started.
func AwaitLog(ctx context.Context, b team.Bundle, gen string) bool {
	return awaitLog(ctx, b, gen, false)
}

// FinishLog is AwaitLog for a generation whose output does not end by itself, as that of a killed
// shim: its log writer takes what it has been given, and exits.
func FinishLog(ctx context.Context, b team.Bundle, gen string) bool {
	return awaitLog(ctx, b, gen, true)
}

func awaitLog(ctx context.Context, b team.Bundle, gen string, finish bool) bool {
	// A log writer that is just starting has not written its file yet. Most take some milliseconds;
	// the one of a removed directory never writes it.
	starting, cancel := context.WithTimeout(ctx, loggerWithin)
	defer cancel()
	for wait := 2 * time.Millisecond; ; wait = min(wait*3/2, 100*time.Millisecond) {
		f, err := bundle.ReadLogger(b, gen)
		if err == nil {
			w, err := proc.Watch(f.Process)
			if err != nil {
				return false
			}
			defer w.Close()
			if finish {
				_ = proc.Signal(f.Process, syscall.SIGTERM) // or it has just exited
			}
			select {
			case <-w.Done():
				return true
			case <-ctx.Done():
				return false
			}
		}
		if !team.IsCode(err, team.CodeNotFound) {
			return false
		}
		if pause.For(starting, wait) != nil {
			return false
		}
	}
}

// LoggerKilled reports whether the log writer of a generation died before its
// input ended.
func LoggerKilled(b team.Bundle, gen string) bool {
	f, err := bundle.ReadLogger(b, gen)
	return err == nil && !f.Ended && !proc.Alive(f.Process)
}

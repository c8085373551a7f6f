package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// SilentAfter is the time without an answer after which the facts of a supervisor are shown as old.
// One that is stopped is noticed after a second.
const SilentAfter = 5 * time.Second

// Ask asks the team's supervisor, in the background, whether it answers. It starts none. since waits
// for the answer and returns the time up to which the ledger's state of members is known to be
// right if the supervisor does not answer, zero if it does or none is running.
func (t *Team) Ask(ctx context.Context) (since func() (time.Time, error)) {
	if t.Env.Dial == nil || t.Elsewhere != nil {
		return func() (time.Time, error) { return time.Time{}, nil }
	}
	silent := make(chan bool, 1)
	go func() { silent <- t.silent(ctx) }()
	return func() (time.Time, error) {
		if !<-silent {
			return time.Time{}, context.Cause(ctx)
		}
		return t.LastSign(ctx)
	}
}

// silent reports whether a supervisor is running that does not answer.
func (t *Team) silent(ctx context.Context) bool {
	for range 2 {
		began := time.Now()
		asked, cancel := context.WithTimeout(ctx, SilentAfter)
		_, err := t.Env.Dial(asked, t.Layout, false)
		late := asked.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return false
		case team.ReasonOf(err) == team.ReasonHung, errors.Is(err, syscall.EAGAIN): // the queue of its socket is full
			return true
		case err == nil || !late:
			return false
		case time.Since(began) < SilentAfter+time.Second:
			return true
		}
	} // this process did not run itself, and has asked once more
	return true
}

// Unmaintained returns since when the ledger's state of members is unmaintained, and whether by a
// supervisor that does not answer: one that has not since silent, unless that is zero.
func (t *Team) Unmaintained(ctx context.Context, members []ledger.Member, silent time.Time) (since time.Time, quiet bool, err error) {
	if !silent.IsZero() {
		return silent, true, nil
	}
	wanted := false
	for _, m := range members {
		wanted = wanted || m.Name != team.LeadName && m.Desired == team.WantRunning && !m.Observed.Terminal()
	}
	if !wanted {
		return since, false, nil
	}
	sup, err := t.Standing()
	if err != nil || sup.PID != 0 {
		sup.Close()
		return since, false, err
	}
	since, err = t.LastSign(ctx)
	return since, false, err
}

// LastSign returns when the team's supervisor was last known to run, up to which the ledger's state
// of members is right without one: its end, if a process saw it, else the last time that it recorded
// itself (see internal/control). It is never later than its end. Where no supervisor has ever run it
// is the time of the last event.
func (t *Team) LastSign(ctx context.Context) (time.Time, error) {
	b, err := regular.ReadFile(t.Layout.SupervisorPID())
	if err != nil {
		b = nil // it was ended in order
	}
	fi, err := os.Lstat(t.Layout.SupervisorLock())
	switch {
	case err == nil:
		return lastSign(b, fi.ModTime()), nil
	case !errors.Is(err, os.ErrNotExist):
		return time.Time{}, fmt.Errorf("read when the supervisor of %s was last running: %w", t.Layout.Key, err)
	}
	last, err := t.Ledger.LastEvent(ctx)
	if err != nil {
		return time.Time{}, err
	}
	list, err := t.Ledger.Events(ctx, last-1, 0, ledger.EventFilter{})
	if err != nil || len(list) == 0 {
		return time.Now(), err
	}
	return time.UnixMilli(list[len(list)-1].At), nil
}

// lastSign returns the last sign of a supervisor by the file of its pid and the time in its lock.
func lastSign(pidFile []byte, lock time.Time) time.Time {
	if end := team.ParseSupervisorEnd(pidFile); !end.IsZero() {
		return end
	}
	return lock
}

// NoteEnd records that a supervisor that had adopted the members was seen to end at a time, unless
// that is recorded already, or the file of its pid is gone or another's.
func (t *Team) NoteEnd(pid int, at time.Time) error {
	f, err := regular.OpenFile(t.Layout.SupervisorPID(), os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("record the end of supervisor %d: %w", pid, err)
	}
	defer func() { _ = f.Close() }() // the write is what counts
	b, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("record the end of supervisor %d: %w", pid, err)
	}
	// One that has not adopted the members has not maintained their state.
	if is, adopted, err := team.ParseSupervisorPID(b); err != nil || is != pid || !adopted {
		return nil
	}
	if _, err := f.WriteString(team.SupervisorEnd(at)); err != nil {
		return fmt.Errorf("record the end of supervisor %d: %w", pid, err)
	}
	return nil
}

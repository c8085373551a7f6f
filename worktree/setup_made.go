package worktree

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A setup records which ignored files it made: they are not work, because
// another setup makes them again. If there was no work when it began and no
// member worked until it ended, the time of its end suffices (record.SetUpAt).
// Otherwise each file is recorded with the time of its last change
// (record.Made). A file that has changed since counts as work.

// making is a running setup.
type making struct {
	r      *Repo
	t      tree
	in     SetupIn
	first  bool            // no setup has completed, so no member has worked here
	alone  bool            // no member is at work
	before map[string]bool // ignored files that are work
}

// making records the files that exist before a setup. If they cannot be read,
// no file that the setup leaves counts as made by it.
func (r *Repo) making(ctx context.Context, t tree, in SetupIn) *making {
	m := &making{r: r, t: t, in: in, alone: in.resting()}
	rec, err := t.readRecord()
	if m.first = err == nil && !rec.SetUp; m.first || !m.alone {
		return m
	}
	before, err := r.ignoredWork(ctx, t)
	m.alone, m.before = err == nil, map[string]bool{}
	for _, rel := range before {
		m.before[rel] = true
	}
	return m
}

func (in SetupIn) resting() bool { return in.Resting == nil || in.Resting() }

// end records what the setup has made, even if it failed; complete also records
// its completion.
func (m *making) end(ctx context.Context, added []string, complete bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	rec := m.t.recorded()
	rec.SetUp = rec.SetUp || complete
	rec.Made = m.t.unchangedOf(rec.Made)
	switch alone := m.alone && m.in.resting(); {
	case !alone:
	case m.first || len(m.before) == 0:
		// Without the time all files count as work.
		rec.SetUpAt, _ = m.t.fileTime(ctx)
		rec.Made, added = nil, nil
	default:
		now, err := m.r.ignoredWork(ctx, m.t)
		if err == nil { // otherwise all of it counts as work
			added = append(added, now...)
		}
	}
	for _, rel := range added {
		if at := m.t.changedAt(rel); at != 0 && !m.before[rel] && !isRebuildable(rel) {
			if rec.Made == nil {
				rec.Made = map[string]int64{}
			}
			rec.Made[rel] = at
		}
	}
	return m.t.record(rec)
}

// fileTime returns the latest ctime that any file can have now, and returns once a later
// one is possible. The kernel stamps files by a clock that advances every few
// milliseconds: by the time of day a file of the next moment would look older.
func (t tree) fileTime(ctx context.Context) (time.Time, error) {
	f, err := os.CreateTemp(t.dir, "teamctl-time-*")
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) }()
	stamp := func() (int64, error) {
		var st unix.Stat_t
		if err := f.Chmod(0o600); err != nil { // changes the ctime
			return 0, err
		}
		err := unix.Fstat(int(f.Fd()), &st)
		return unix.TimespecToNsec(st.Ctim), err
	}
	first, err := stamp()
	if err != nil {
		return time.Time{}, err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		now, err := stamp()
		if err != nil {
			return time.Time{}, err
		}
		if now > first {
			return time.Unix(0, first), nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}

// unchangedOf returns the recorded files that have not changed.
func (t tree) unchangedOf(made map[string]int64) map[string]int64 {
	made = maps.Clone(made)
	maps.DeleteFunc(made, func(rel string, at int64) bool { return t.changedAt(rel) != at })
	return made
}

// changedAt returns the time of a file's last change of any kind (ctime), in
// nanoseconds, which no program can set; 0 if the file does not exist or cannot
// be read.
func (t tree) changedAt(rel string) int64 {
	var st unix.Stat_t
	if unix.Lstat(filepath.Join(t.path, filepath.FromSlash(rel)), &st) != nil {
		return 0
	}
	return unix.TimespecToNsec(st.Ctim)
}

// madeBySetup reports whether a file is as a setup left it.
func (t tree) madeBySetup(rec record, rel string) bool {
	at := t.changedAt(rel)
	if at == 0 {
		return false
	}
	return !rec.SetUpAt.IsZero() && at <= rec.SetUpAt.UnixNano() || rec.Made[rel] == at
}

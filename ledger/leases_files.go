package ledger

import (
	"context"
	"database/sql"
	"time"

	"github.com/teamctl/teamctl/team"
)

const leaseCols = `id, holder, name, glob, why, at, until`

const (
	sqlFileLeases   = `SELECT ` + leaseCols + ` FROM file_leases WHERE until > ? ORDER BY id`
	sqlFileLeasePut = `INSERT INTO file_leases(holder, name, glob, why, at, until) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (holder, glob) DO UPDATE SET why = excluded.why, until = excluded.until RETURNING id`
	sqlFileLeaseDrop = `DELETE FROM file_leases WHERE holder = ? AND (? = '' OR glob = ? OR CAST(id AS TEXT) = ?)`
	sqlFileLeasePast = `DELETE FROM file_leases WHERE until <= ?`
	sqlTouchedClear  = `DELETE FROM touched_files WHERE session = ?`
	sqlTouchedPut    = `INSERT INTO touched_files(session, path, dirty) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET dirty = max(dirty, excluded.dirty)`
	sqlTouchedHave   = `SELECT path, dirty FROM touched_files WHERE session = ? ORDER BY path`
	sqlTouchedShared = `SELECT o.session, m.name, o.path, o.dirty, mine.dirty
		FROM touched_files mine JOIN touched_files o ON o.path = mine.path AND o.session <> mine.session
		JOIN members m ON m.sessionKey = o.session AND m.removedAt IS NULL
		WHERE mine.session = ? AND NOT EXISTS (SELECT 1 FROM overlaps t
			WHERE t.path = mine.path AND t.a = min(mine.session, o.session) AND t.b = max(mine.session, o.session))
		ORDER BY m.name, o.path`
	sqlTouchedOthers = `SELECT m.name, t.path FROM touched_files t JOIN members m ON m.sessionKey = t.session AND m.removedAt IS NULL
		WHERE t.session <> ? ORDER BY m.name, t.path`
	sqlOverlapDrop = `DELETE FROM overlaps WHERE a = ?1 OR b = ?1`
	sqlOverlapPut  = `INSERT OR IGNORE INTO overlaps(a, b, path, at) VALUES (min(?, ?), max(?, ?), ?, ?)`
)

// FileLease is a member's notice that it is about to change files. It is
// advisory: others are warned, not kept out.
type FileLease struct {
	ID      int64  `json:"id"`
	Session string `json:"session"`
	Name    string `json:"name"`
	Glob    string `json:"glob"` // of paths in the repository; ** crosses directories
	Why     string `json:"why,omitempty"`
	At      int64  `json:"at"`
	Until   int64  `json:"until"`
}

// NewFileLease describes a lease to take. The same glob again renews it.
type NewFileLease struct {
	Session string        `json:"session"`
	Glob    string        `json:"glob"`
	Why     string        `json:"why,omitempty"`
	For     time.Duration `json:"for"`
}

// TakenLease is a lease and its conflicts.
type TakenLease struct {
	Lease     FileLease     `json:"lease"`
	Conflicts []FileLease   `json:"conflicts"` // of other members, for possibly the same files
	Touched   []TouchedFile `json:"touched"`   // what others have already changed
}

// TouchedFile is a file that a member has changed.
type TouchedFile struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// Touch is one file that a member has changed since its branch began.
type Touch struct {
	Path  string `json:"path"`
	Dirty bool   `json:"dirty,omitempty"` // not committed
}

// SharedFile is a file that another member has also changed, and that was not
// reported before.
type SharedFile struct {
	Session    string `json:"session"` // the other member's
	Name       string `json:"name"`
	Path       string `json:"path"`
	TheirDirty bool   `json:"theirDirty,omitempty"`
	MyDirty    bool   `json:"myDirty,omitempty"`
}

const (
	maxGlob      = 1000
	maxLeaseTime = 7 * 24 * time.Hour
	maxTouched   = 20000 // files of one member; more indicate a move of the whole repository
)

// TakeFileLease takes or renews a lease. Errors: CodeInvalid (a bad glob or
// time), CodeNotFound (no such member).
func (l *Ledger) TakeFileLease(ctx context.Context, n NewFileLease) (TakenLease, error) {
	return write[TakenLease](ctx, l, opFileLeaseTake, n)
}

// DropFileLeases releases a session's leases: that with this glob or id, or all
// for "". It returns their number.
func (l *Ledger) DropFileLeases(ctx context.Context, session, glob string) (int64, error) {
	return write[int64](ctx, l, opFileLeaseDrop, dropLeaseArgs{session, glob})
}

// FileLeases returns the leases that are in effect.
func (l *Ledger) FileLeases(ctx context.Context) ([]FileLease, error) {
	return read(ctx, l.db, "read leases", scanFileLease, sqlFileLeases, l.now().UnixMilli())
}

// SetTouched replaces the list of files that a session has changed, and returns
// those that other members have also changed and that were not reported before.
// A look may end after its member has left: then nothing is written.
func (l *Ledger) SetTouched(ctx context.Context, session string, files []Touch) ([]SharedFile, error) {
	have, err := read(ctx, l.db, "read touched files", func(r *sql.Rows) (t Touch, err error) {
		err = r.Scan(&t.Path, &t.Dirty)
		return t, err
	}, sqlTouchedHave, session)
	if err != nil {
		return nil, err
	}
	if sameTouches(have, files) { // nothing to write; other members write their own lists
		return read(ctx, l.db, "compare touched files", scanShared, sqlTouchedShared, session)
	}
	return write[[]SharedFile](ctx, l, opTouchedSet, touchedArgs{session, files})
}

// Touched returns the files that each member has changed, by name.
func (l *Ledger) Touched(ctx context.Context) ([]TouchedFile, error) {
	return read(ctx, l.db, "read touched files", scanTouched, sqlTouchedOthers, "")
}

// TellOverlap records that two sessions change the same files and returns those
// that were not reported before, with an event. It records nothing if one of
// them has left.
func (l *Ledger) TellOverlap(ctx context.Context, a, b string, paths []string) ([]string, error) {
	return write[[]string](ctx, l, opOverlapTell, overlapArgs{a, b, paths})
}

type dropLeaseArgs struct {
	Session string `json:"session"`
	Glob    string `json:"glob"`
}

type touchedArgs struct {
	Session string  `json:"session"`
	Files   []Touch `json:"files"`
}

type overlapArgs struct {
	A     string   `json:"a"`
	B     string   `json:"b"`
	Paths []string `json:"paths"`
}

func sameTouches(have, want []Touch) bool {
	m := make(map[string]bool, len(want))
	for _, f := range want {
		m[f.Path] = m[f.Path] || f.Dirty
	}
	if len(m) != len(have) {
		return false
	}
	for _, f := range have {
		if d, ok := m[f.Path]; !ok || d != f.Dirty {
			return false
		}
	}
	return true
}

func takeFileLease(t *tx, n NewFileLease) (out TakenLease, err error) {
	if n.Glob == "" || len(n.Glob) > maxGlob || !team.ValidGlob(n.Glob) {
		return out, team.Errorf(team.CodeInvalid, "invalid glob %q: it must match paths in the repository", n.Glob).
			WithReason(team.ReasonBadGlob).WithHint("for example 'internal/**' or docs/*.md")
	}
	if n.For <= 0 || n.For > maxLeaseTime {
		return out, team.Errorf(team.CodeInvalid, "invalid duration %s of a lease", n.For).WithReason(team.ReasonBadTime).WithHint("use more than 0 and at most 168h")
	}
	m, err := t.memberBySession(n.Session)
	if err == nil && m.RemovedAt != 0 {
		err = errNoMember(m.Name, nil)
	}
	if err != nil {
		return out, err
	}
	if _, err := t.exec(sqlFileLeasePast, t.now); err != nil {
		return out, err
	}
	out.Lease = FileLease{Session: n.Session, Name: m.Name, Glob: n.Glob, Why: n.Why, At: t.now, Until: t.now + n.For.Milliseconds()}
	out.Lease.ID, _, err = value[int64](t, sqlFileLeasePut, n.Session, m.Name, n.Glob, n.Why, t.now, out.Lease.Until)
	if err != nil {
		return out, err
	}
	t.wrote = true
	out.Conflicts, out.Touched = []FileLease{}, []TouchedFile{}
	err = t.each(sqlFileLeases, func(r *sql.Rows) error {
		f, err := scanFileLease(r)
		if err == nil && f.Session != n.Session && team.GlobsMeet(f.Glob, n.Glob) {
			out.Conflicts = append(out.Conflicts, f)
		}
		return err
	}, t.now)
	if err != nil {
		return out, err
	}
	err = t.each(sqlTouchedOthers, func(r *sql.Rows) error {
		f, err := scanTouched(r)
		if err == nil && team.GlobMatch(n.Glob, f.Path) {
			out.Touched = append(out.Touched, f)
		}
		return err
	}, n.Session)
	if err != nil {
		return out, err
	}
	return out, t.event(Event{Who: m.Name, What: team.EventLeaseTaken, ID: n.Glob, Data: []byte(mustJSON(out.Lease))})
}

func dropFileLeases(t *tx, a dropLeaseArgs) (int64, error) {
	n, err := t.exec(sqlFileLeaseDrop, a.Session, a.Glob, a.Glob, a.Glob)
	if err == nil && n > 0 {
		err = t.event(Event{What: team.EventLeaseReleased, ID: orDefault(a.Glob, "all")})
	}
	return n, err
}

// dropFiles deletes what a member that leaves has changed, asked for and was told of: nobody has its
// session again, and every look at a worktree would read past it.
func (t *tx) dropFiles(m Member) error {
	if _, err := t.exec(sqlFileLeasePast, t.now); err != nil {
		return err
	}
	n, err := t.exec(sqlFileLeaseDrop, m.SessionKey, "", "", "")
	if err == nil && n > 0 {
		err = t.event(Event{Who: m.Name, What: team.EventLeaseReleased, ID: "all"})
	}
	for _, q := range []string{sqlTouchedClear, sqlOverlapDrop} {
		if err == nil {
			_, err = t.exec(q, m.SessionKey)
		}
	}
	return err
}

func setTouched(t *tx, a touchedArgs) ([]SharedFile, error) {
	if m, err := t.memberBySession(a.Session); err != nil || m.RemovedAt != 0 {
		return []SharedFile{}, err
	}
	if len(a.Files) > maxTouched {
		a.Files = a.Files[:maxTouched]
	}
	if _, err := t.exec(sqlTouchedClear, a.Session); err != nil {
		return nil, err
	}
	for _, f := range a.Files {
		dirty := 0
		if f.Dirty {
			dirty = 1
		}
		if _, err := t.exec(sqlTouchedPut, a.Session, f.Path, dirty); err != nil {
			return nil, err
		}
	}
	out := []SharedFile{}
	err := t.each(sqlTouchedShared, func(r *sql.Rows) error {
		s, err := scanShared(r)
		out = append(out, s)
		return err
	}, a.Session)
	return out, err
}

func tellOverlap(t *tx, a overlapArgs) ([]string, error) {
	fresh := []string{}
	x, err := t.memberBySession(a.A)
	if err != nil {
		return nil, err
	}
	y, err := t.memberBySession(a.B)
	if err != nil {
		return nil, err
	}
	if x.RemovedAt != 0 || y.RemovedAt != 0 {
		return fresh, nil
	}
	for _, p := range a.Paths {
		n, err := t.exec(sqlOverlapPut, a.A, a.B, a.A, a.B, p, t.now)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			fresh = append(fresh, p)
		}
	}
	if len(fresh) == 0 {
		return fresh, nil
	}
	data := mustJSON(map[string]any{"members": []string{x.Name, y.Name}, "files": fresh[:min(len(fresh), 50)], "count": len(fresh)})
	return fresh, t.event(Event{What: team.EventWorktreeOverlap, ID: x.Name + " " + y.Name, Data: []byte(data)})
}

func scanFileLease(r *sql.Rows) (f FileLease, err error) {
	err = r.Scan(&f.ID, &f.Session, &f.Name, &f.Glob, &f.Why, &f.At, &f.Until)
	return f, err
}

func scanShared(r *sql.Rows) (s SharedFile, err error) {
	err = r.Scan(&s.Session, &s.Name, &s.Path, &s.TheirDirty, &s.MyDirty)
	return s, err
}

func scanTouched(r *sql.Rows) (f TouchedFile, err error) {
	err = r.Scan(&f.Name, &f.Path)
	return f, err
}

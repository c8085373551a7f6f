package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/teamctl/teamctl/team"
)

// A ledger belongs to one directory. A copy of it names processes, worktrees and
// branches that are the original's, so whoever acted on the copy would end the
// original's agents. Place is what tells the two apart: the path counts, because
// device numbers change at a boot and a directory that comes back from a backup has
// another inode. Any other path is fine as long as it leads to the same directory.

// Reasons of ledgers that cannot be written where they are.
const (
	ReasonTeamCopied = "team_copied"      // the original is where the ledger says
	ReasonTeamMoved  = "team_moved"       // nothing is there any more
	ReasonReplaced   = "ledger_replaced"  // another file has the name of the one that is open
	settingPlace     = "ledger.directory" // holds the Place
)

// Place is the directory that a ledger belongs to.
type Place struct {
	ID   string `json:"id"`   // of the team; a copy has the same
	Path string `json:"path"` // without symbolic links
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	// Born is when the directory was made, in Unix nanoseconds; 0: the file system does
	// not say. A directory that is made after another was removed may get its inode.
	Born int64 `json:"born,omitempty"`
	// Unseen says that no supervisor has run since the directory was put here.
	Unseen bool   `json:"unseen,omitempty"`
	From   string `json:"from,omitempty"` // where it was before, while it is Unseen
}

// PlaceAt is the Place of a team whose ledger is in dir, with an id of its own. dir may
// get the name that path says later.
func PlaceAt(dir, path string) (Place, error) {
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return Place{}, team.Errorf(team.CodeUnavailable, "find the team's directory: %w", err)
	}
	p := Place{ID: team.NewUUID(), Path: filepath.Join(parent, filepath.Base(path))}
	return p, p.stat(dir)
}

// stat notes which directory dir is.
func (p *Place) stat(dir string) error {
	fi, err := os.Stat(dir)
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "find the team's directory: %w", err)
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		p.Dev, p.Ino = uint64(st.Dev), st.Ino //nolint:gosec,unconvert // the types differ between systems
		p.Born = born(dir, st)
	}
	return nil
}

// Here reports whether dir is the place's directory, and put whether it was put back
// there: the path is the same and the directory another.
func (p Place) Here(dir string) (here, put bool) {
	if p.Path == "" {
		return true, false
	}
	if filepath.Clean(dir) != p.Path {
		if !sameFile(dir, p.Path) {
			return false, false
		}
		dir = p.Path
	}
	var now Place
	if err := now.stat(dir); err != nil {
		return true, false
	}
	return true, now.Ino != p.Ino || now.Born != 0 && p.Born != 0 && now.Born != p.Born
}

func sameFile(a, b string) bool {
	fa, errA := os.Stat(a)
	fb, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(fa, fb)
}

// Refusal is why a ledger in dir cannot be written: CodeConflict, reason team_copied or
// team_moved; nil where it is at its place.
func (p Place) Refusal(dir string) error {
	if here, _ := p.Here(dir); here {
		return nil
	}
	key := filepath.Base(dir)
	if _, err := os.Lstat(filepath.Join(p.Path, "ledger.db")); err == nil {
		return team.Errorf(team.CodeConflict, "%s is a copy of the team in %s and can only be read", dir, p.Path).
			WithReason(ReasonTeamCopied).WithHint("work on the original: " + team.EnvHome + "=" + team.LayoutAt(p.Path).Home.Dir)
	}
	return team.Errorf(team.CodeConflict, "the team in %s belongs to %s, where it is no longer, and can only be read", dir, p.Path).
		WithReason(ReasonTeamMoved).WithHint("teamctl relocate " + key + ", if it was moved here")
}

// Place is where the ledger belongs, empty in one that a teamctl before places made.
func (l *Ledger) Place(ctx context.Context) (p Place, err error) {
	_, err = l.Setting(ctx, settingPlace, &p)
	return p, err
}

// SetPlace records where the ledger belongs. It is the one write that is possible
// anywhere.
func (l *Ledger) SetPlace(ctx context.Context, p Place) error {
	_, err := write[none](ctx, l, opPlace, p)
	return err
}

// sqlRebase gives the paths below the old directory (?1) the new one (?2).
var sqlRebase = []string{
	`UPDATE members SET worktree = ?2 || substr(worktree, length(?1) + 1) WHERE substr(worktree, 1, length(?1) + 1) = ?1 || '/'`,
	`UPDATE members SET spec = json_set(spec, '$.cwd', ?2 || substr(spec ->> '$.cwd', length(?1) + 1))
		WHERE substr(spec ->> '$.cwd', 1, length(?1) + 1) = ?1 || '/'`,
	`UPDATE members SET spec = json_set(spec, '$.worktreeMode', ?2 || substr(spec ->> '$.worktreeMode', length(?1) + 1))
		WHERE substr(spec ->> '$.worktreeMode', 1, length(?1) + 1) = ?1 || '/'`,
	`UPDATE team SET worktreeDir = ?2 || substr(worktreeDir, length(?1) + 1) WHERE substr(worktreeDir, 1, length(?1) + 1) = ?1 || '/'`,
}

func setPlace(t *tx, p Place) (none, error) {
	if p.ID == "" || !filepath.IsAbs(p.Path) {
		return none{}, team.Errorf(team.CodeInvalid, "a place has an id and an absolute path")
	}
	raw, known, err := value[string](t, sqlSettingGet, settingPlace)
	if err != nil {
		return none{}, err
	}
	var before Place
	if known {
		if err := json.Unmarshal([]byte(raw), &before); err != nil {
			return none{}, team.Errorf(team.CodeInternal, "read setting %s: %w", settingPlace, err)
		}
	}
	if _, err := t.exec(sqlSettingPut, settingPlace, mustJSON(p)); err != nil || !known {
		return none{}, err
	}
	if before.Path != p.Path {
		for _, q := range sqlRebase {
			if _, err := t.exec(q, before.Path, p.Path); err != nil {
				return none{}, err
			}
		}
	}
	return none{}, t.event(Event{What: "team.directory", ID: p.ID, After: p.Path})
}

// remember notes which file is open, before anything reads it.
func (db *DB) remember() error {
	fi, err := os.Lstat(db.path)
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "open ledger: %w", err)
	}
	db.file = fi
	return nil
}

// Replaced is CodeUnavailable, reason ledger_replaced, when the file that is open no
// longer has its name: what is read is of the past, and what is written would be lost.
func (db *DB) Replaced() error {
	fi, err := os.Lstat(db.path)
	switch {
	case err == nil && (os.SameFile(fi, db.opened()) || db.follow(fi)):
		return nil
	case err == nil:
		return team.Errorf(team.CodeUnavailable, "the ledger %s was replaced by another file", db.path).
			WithReason(ReasonReplaced).WithHint("try again")
	case errors.Is(err, os.ErrNotExist):
		return team.Errorf(team.CodeUnavailable, "the ledger %s was removed", db.path).
			WithReason(ReasonReplaced).WithHint("teamctl ls; teamctl doctor")
	}
	return team.Errorf(team.CodeUnavailable, "find ledger: %w", err)
}

// orReplaced explains a failure by the loss of the file's name, where it has lost it:
// its directory may be gone, and the lock and the log with it.
func (db *DB) orReplaced(err error) error {
	if err == nil || db.opened() == nil {
		return err
	}
	if replaced := db.Replaced(); replaced != nil {
		return replaced
	}
	return err
}

// writable refuses writes to a ledger that was replaced, or is not at its place. Only
// the second kind can be overcome, by an operation that sets the place.
func (db *DB) writable(jobs []*job) error {
	if err := db.Replaced(); err != nil {
		return err
	}
	if err := db.rewrite(); err != nil {
		return err
	}
	if db.placed {
		return nil
	}
	for _, j := range jobs {
		if j.op.Name == opPlace {
			return nil
		}
	}
	p, err := New(db, nil).Place(background)
	if err == nil {
		err = p.Refusal(filepath.Dir(db.path))
	}
	db.placed = err == nil
	return err
}

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

// A ledger belongs to one directory. A copy of it names the original's
// processes, worktrees and branches, so acting on the copy would end the
// original's agents. Place distinguishes the two: the path decides, because
// device numbers change at a boot and a directory restored from a backup has
// another inode. Any other path is accepted if it leads to the same directory.

// settingPlace holds the Place.
const settingPlace = "ledger.directory"

// Place is the directory that a ledger belongs to.
type Place struct {
	ID   string `json:"id"`   // of the team; the same in a copy
	Path string `json:"path"` // without symbolic links
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	// Born is when the directory was created, in Unix nanoseconds; 0 if the
	// file system does not say. A new directory may get the inode of a removed
	// one.
	Born int64 `json:"born,omitempty"`
	// Unseen means that no supervisor has run since the directory was put at
	// this location.
	Unseen bool   `json:"unseen,omitempty"`
	From   string `json:"from,omitempty"` // its former location, while it is Unseen
}

// PlaceAt returns the Place of a team whose ledger is in dir, with a new id.
// dir may be renamed to path later.
func PlaceAt(dir, path string) (Place, error) {
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return Place{}, team.Errorf(team.CodeUnavailable, "find the team's directory: %w", err)
	}
	p := Place{ID: team.NewUUID(), Path: filepath.Join(parent, filepath.Base(path))}
	return p, p.stat(dir)
}

// stat records the identity of dir.
func (p *Place) stat(dir string) error {
	fi, err := os.Stat(dir)
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "find the team's directory: %w", err)
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		p.Dev, p.Ino = uint64(st.Dev), st.Ino // the types differ between systems
		p.Born = born(dir, st)
	}
	return nil
}

// Here reports whether dir is the place's directory, and put whether it was
// replaced: same path, different directory.
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

// Refusal returns the reason why a ledger in dir cannot be written:
// CodeConflict, reason team_copied or team_moved; nil if it is at its place.
func (p Place) Refusal(dir string) error {
	if here, _ := p.Here(dir); here {
		return nil
	}
	key := filepath.Base(dir)
	if _, err := os.Lstat(filepath.Join(p.Path, "ledger.db")); err == nil {
		return team.Errorf(team.CodeConflict, "%s is a copy of the team in %s and can only be read", dir, p.Path).
			WithReason(team.ReasonTeamCopied).WithHint("work on the original: " + team.EnvHome + "=" + team.ShellQuote(team.LayoutAt(p.Path).Home.Dir))
	}
	return team.Errorf(team.CodeConflict, "the team in %s was moved from %s and can only be read", dir, p.Path).
		WithReason(team.ReasonTeamMoved).WithHint("teamctl relocate " + key + ", if it was moved here")
}

// Place returns the directory to which the ledger belongs; it is empty in a
// ledger of an older teamctl.
func (l *Ledger) Place(ctx context.Context) (p Place, err error) {
	_, err = l.Setting(ctx, settingPlace, &p)
	return p, err
}

// SetPlace records the directory to which the ledger belongs. It is the only
// write that is possible anywhere.
func (l *Ledger) SetPlace(ctx context.Context, p Place) error {
	_, err := write[none](ctx, l, opPlace, p)
	return err
}

// sqlRebase replaces the old directory (?1) by the new one (?2) in paths.
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
		return none{}, team.Errorf(team.CodeInvalid, "a place needs an id and an absolute path")
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
	return none{}, t.event(Event{What: team.EventTeamDirectory, ID: p.ID, After: p.Path})
}

// remember records which file is open, before anything is read from it.
func (db *DB) remember() error {
	fi, err := os.Lstat(db.path)
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "open ledger: %w", err)
	}
	db.file = fi
	return nil
}

// Replaced returns CodeUnavailable, reason ledger_replaced, if the open file no
// longer has its name: reads would be outdated and writes lost.
func (db *DB) Replaced() error {
	fi, err := os.Lstat(db.path)
	switch {
	case err == nil && (os.SameFile(fi, db.opened()) || db.follow(fi)):
		return nil
	case err == nil:
		return team.Errorf(team.CodeUnavailable, "the ledger %s was replaced by another file", db.path).
			WithReason(team.ReasonLedgerReplaced).WithHint("try again")
	case errors.Is(err, os.ErrNotExist):
		return team.Errorf(team.CodeUnavailable, "the ledger %s was removed", db.path).
			WithReason(team.ReasonLedgerReplaced).WithHint("teamctl ls; teamctl doctor")
	}
	return team.Errorf(team.CodeUnavailable, "find ledger: %w", err)
}

// orReplaced returns the error of Replaced instead of err if the file has lost
// its name: a missing directory, lock or log explains the failure.
func (db *DB) orReplaced(err error) error {
	if err == nil || db.opened() == nil {
		return err
	}
	if replaced := db.Replaced(); replaced != nil {
		return replaced
	}
	return err
}

// writable returns an error for a ledger that was replaced, or is not at its
// place. Only the second can be overcome, by an operation that sets the place.
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

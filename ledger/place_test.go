package ledger

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// placed returns a ledger with a place in a directory called teams/t.
func placed(t *testing.T) (dir string, l *Ledger) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(root, "teams", "t")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l = openIn(t, dir, true)
	if _, err := l.CreateTeam(t.Context(), TeamRow{Key: "t", LeadSession: "lead", WorktreeDir: filepath.Join(dir, "trees")}); err != nil {
		t.Fatal(err)
	}
	p, err := PlaceAt(dir, dir)
	if err == nil {
		err = l.SetPlace(t.Context(), p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, l
}

func openIn(t *testing.T, dir string, create bool) *Ledger {
	t.Helper()
	db, err := Open(t.Context(), filepath.Join(dir, "ledger.db"), Options{Create: create})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return New(db, Direct(db))
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

func TestPlace(t *testing.T) {
	t.Parallel()
	dir, l := placed(t)
	p, err := l.Place(t.Context())
	if err != nil || p.ID == "" || p.Path != dir {
		t.Fatalf("%+v, %v", p, err)
	}
	if here, put := p.Here(dir); !here || put {
		t.Errorf("at its place: here %v, put back %v", here, put)
	}
	// Any path to the directory is the same place.
	link := filepath.Join(filepath.Dir(dir), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if here, put := p.Here(link); !here || put {
		t.Errorf("by a link: here %v, put back %v", here, put)
	}
	// Neither the device nor the inode decides.
	other := p
	other.Dev++
	if here, put := other.Here(dir); !here || put {
		t.Errorf("after a boot: here %v, put back %v", here, put)
	}
	other.Ino++
	if here, put := other.Here(dir); !here || !put {
		t.Errorf("put back: here %v, put back %v", here, put)
	}
	// A new directory may get the inode of a removed one.
	if other = p; other.Born != 0 {
		other.Born++
		if here, put := other.Here(dir); !here || !put {
			t.Errorf("put back with the same inode: here %v, put back %v", here, put)
		}
	}

	copied := filepath.Join(t.TempDir(), "t")
	copyDir(t, dir, copied)
	c := openIn(t, copied, false)
	if _, err := c.Team(t.Context()); err != nil {
		t.Errorf("a copy cannot be read: %v", err)
	}
	if _, err := c.Event(t.Context(), Event{What: "x"}); team.ReasonOf(err) != team.ReasonTeamCopied || !team.IsCode(err, team.CodeConflict) || team.HintOf(err) == "" {
		t.Errorf("a copy is written to: %v", err)
	}
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Event(t.Context(), Event{What: "x"}); team.ReasonOf(err) != team.ReasonTeamMoved || team.HintOf(err) == "" {
		t.Errorf("a copy without an original is written to: %v", err)
	}
	now, err := PlaceAt(copied, copied)
	if err != nil {
		t.Fatal(err)
	}
	now.ID = p.ID
	if err := c.SetPlace(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Event(t.Context(), Event{What: "x"}); err != nil {
		t.Errorf("at its new place: %v", err)
	}
	if row, err := c.Team(t.Context()); err != nil || row.WorktreeDir != filepath.Join(now.Path, "trees") {
		t.Errorf("paths below the old directory: %+v, %v", row, err)
	}
}

// A ledger that has lost its name can be neither written nor read: every open
// DB reports that.
func TestReplacedLedger(t *testing.T) {
	t.Parallel()
	dir, l := placed(t)
	if _, err := l.Event(t.Context(), Event{What: "before"}); err != nil {
		t.Fatal(err)
	}
	copyDir(t, dir, dir+"-backup")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	gone := func(when string) {
		t.Helper()
		_, err := l.Event(t.Context(), Event{What: "after"})
		if team.ReasonOf(err) != team.ReasonLedgerReplaced || !team.IsCode(err, team.CodeUnavailable) {
			t.Errorf("%s it is written to: %v", when, err)
		}
		if _, err := l.Team(t.Context()); team.ReasonOf(err) != team.ReasonLedgerReplaced {
			t.Errorf("%s it is read: %v", when, err)
		}
	}
	gone("removed,")
	if err := os.Rename(dir+"-backup", dir); err != nil {
		t.Fatal(err)
	}
	gone("replaced,")
	if _, err := openIn(t, dir, false).Event(t.Context(), Event{What: "after"}); err != nil {
		t.Errorf("opened anew: %v", err)
	}
}

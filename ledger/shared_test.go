package ledger

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// All users of a path have one DB, which is open until the last of them has released it.
func TestShared(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	ok(t, openAt(t, path).Close())
	var s Shared
	if _, _, err := s.Open(ctxFor(t), path+"x", Options{}); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("a missing ledger: %v", err)
	}
	a, releaseA, err := s.Open(ctxFor(t), path, Options{})
	ok(t, err)
	b, releaseB, err := s.Open(ctxFor(t), path, Options{})
	ok(t, err)
	if a != b {
		t.Error("two DBs")
	}
	ok(t, releaseA())
	ok(t, releaseA())
	must[int64](t)(New(b, Direct(b)).Event(ctxFor(t), Event{What: "open"}))
	ok(t, releaseB())
	if _, err := New(b, Direct(b)).Event(ctxFor(t), Event{What: "closed"}); !team.IsCode(err, team.CodeUnavailable) {
		t.Errorf("after the last release: %v", err)
	}
	c, releaseC, err := s.Open(ctxFor(t), path, Options{})
	ok(t, err)
	if c == a {
		t.Error("a closed DB")
	}
	ok(t, releaseC())
}

// A user that comes after another ledger was put in the place of the file gets that one.
func TestSharedReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, other := filepath.Join(dir, "ledger.db"), filepath.Join(dir, "other.db")
	ok(t, openAt(t, path).Close())
	ok(t, openAt(t, other).Close())
	var s Shared
	old, releaseOld, err := s.Open(ctxFor(t), path, Options{})
	ok(t, err)
	ok(t, os.Rename(other, path))
	now, release, err := s.Open(ctxFor(t), path, Options{})
	ok(t, err)
	if now == old {
		t.Error("the DB of a file without a name")
	}
	must[int64](t)(New(now, Direct(now)).Event(ctxFor(t), Event{What: "new"}))
	ok(t, releaseOld())
	ok(t, release())
	if len(s.dbs) != 0 {
		t.Errorf("%d are left", len(s.dbs))
	}
}

// Users may come and go at any time.
func TestSharedAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	ok(t, openAt(t, path).Close())
	var s Shared
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				db, release, err := s.Open(ctxFor(t), path, Options{})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := New(db, Direct(db)).Events(ctxFor(t), 0, 0, EventFilter{}); err != nil {
					t.Error(err)
				}
				if err := release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if len(s.dbs) != 0 {
		t.Errorf("%d are left", len(s.dbs))
	}
}

package ledger

import (
	"context"
	"sync"
)

// Shared opens each ledger once for all its users in a process: a DB has connections, prepared
// statements and a watch of its own. Its zero value is ready. It is safe for concurrent use.
type Shared struct {
	mu  sync.Mutex
	dbs map[string]*sharedDB // by path
}

// sharedDB is an open DB and the number of its users.
type sharedDB struct {
	db    *DB
	users int
}

// Open returns the DB of the ledger at path, which it opens for the first user with opts, and as Open
// does. The last of the users that call release closes it. After an error of Replaced the next user gets
// another DB.
func (s *Shared) Open(ctx context.Context, path string, opts Options) (db *DB, release func() error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.dbs[path]
	if d == nil || d.db.Replaced() != nil {
		d = &sharedDB{}
		if d.db, err = Open(ctx, path, opts); err != nil {
			return nil, nil, err
		}
		if s.dbs == nil {
			s.dbs = map[string]*sharedDB{}
		}
		s.dbs[path] = d
	}
	d.users++
	return d.db, sync.OnceValue(func() error { return s.release(path, d) }), nil
}

// Lend makes Open return db for path. Its owner closes it, after all other users have released it.
func (s *Shared) Lend(path string, db *DB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dbs == nil {
		s.dbs = map[string]*sharedDB{}
	}
	s.dbs[path] = &sharedDB{db: db, users: 1} // the owner, which does not release it
}

func (s *Shared) release(path string, d *sharedDB) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.users--; d.users > 0 {
		return nil
	}
	if s.dbs[path] == d {
		delete(s.dbs, path)
	}
	return d.db.Close()
}

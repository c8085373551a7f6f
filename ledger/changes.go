package ledger

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/team"
)

// settle bounds how long after the last write to a file a commit is still
// looked for: a WAL is written before it is synced, and what was written can be
// read only after the sync. The steps grow from the first to the last, and there
// are none while nobody writes.
const (
	settleFirst  = time.Millisecond
	settleGrowth = 3
	settleLast   = 4 * time.Second
	// watchRest is how long the kernel's words about writes are left to gather: a commit
	// is dozens of writes, and each would wake the process. The looks that follow the
	// first word find what was told late.
	watchRest = 4 * time.Millisecond
)

// watch tells one consumer of commits.
type watch struct {
	db               *DB
	deaf             func()        // ends the listening
	gone             chan struct{} // the ledger, or its directory, was removed
	file, lost, look chan struct{} // a file was written; changes went untold; once a second without events
	sdb              *sql.DB       // its own connection: data_version tells of all others
	conn             *sql.Conn
	ask, due         *sql.Stmt   // for the version; for the next task that waits
	seen             os.FileInfo // the file of the connection
	out              chan struct{}
	quit             chan struct{}
	end              func() // closes quit, once
	done             chan struct{}
}

// Changes returns a channel that receives when any process has committed to the
// ledger since the last receive, or when the time of a task that waits for its
// retry has come; several may make one wake. Read again after each. It receives once at the start, so that nothing is missed between
// reading and watching. stop ends the watch, waits for it and closes the
// channel; so does the end of ctx, and DB.Close.
func (l *Ledger) Changes(ctx context.Context) (wakes <-chan struct{}, stop func(), err error) {
	w := &watch{
		db: l.db, out: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
		file: make(chan struct{}, 1), lost: make(chan struct{}, 1), look: make(chan struct{}, 1), gone: make(chan struct{}, 1),
	}
	w.end = sync.OnceFunc(func() { close(w.quit) })
	version, err := w.open(ctx)
	if err != nil {
		return nil, nil, errors.Join(l.db.asCoded("watch the ledger", err), w.close())
	}
	l.db.mu.Lock()
	if l.db.closed {
		l.db.mu.Unlock()
		return nil, nil, errors.Join(errClosed(), w.close())
	}
	l.db.watches[w] = struct{}{}
	l.db.mu.Unlock()
	w.wake()
	go w.loop(ctx, version)
	return w.out, w.stop, nil
}

// open watches the directory: SQLite removes and makes the WAL as it likes.
func (w *watch) open(ctx context.Context) (version int64, err error) {
	if w.deaf, err = w.db.opts.Watch.Watch(filepath.Dir(w.db.path), w.heard); err != nil {
		return 0, team.Errorf(team.CodeUnavailable, "watch the ledger: %w", err)
	}
	if err := w.connect(ctx); err != nil {
		return 0, err
	}
	return w.version()
}

// connect opens the watch's own connection.
func (w *watch) connect(ctx context.Context) (err error) {
	w.seen = w.db.opened()
	if w.sdb, err = sql.Open("sqlite3", w.db.readerDSN()); err != nil {
		return err
	}
	w.sdb.SetMaxOpenConns(1)
	if w.conn, err = w.sdb.Conn(ctx); err != nil {
		return err
	}
	if w.ask, err = w.conn.PrepareContext(ctx, "PRAGMA data_version"); err != nil {
		return err
	}
	w.due, err = w.conn.PrepareContext(ctx, sqlNextDue)
	return err
}

// again connects to a ledger that was recovered.
func (w *watch) again(now os.FileInfo) error {
	fresh := watch{db: w.db}
	if err := fresh.connect(background); err != nil {
		_ = fresh.close()
		return err
	}
	_ = (&watch{ask: w.ask, due: w.due, conn: w.conn, sdb: w.sdb}).close() // it was only read
	w.ask, w.due, w.conn, w.sdb, w.seen = fresh.ask, fresh.due, fresh.conn, fresh.sdb, now
	return nil
}

// heard leaves a token of its kind for the loop.
func (w *watch) heard(e dirwatch.Event) {
	c := w.file
	switch {
	case e.Lost:
		c = w.lost
	case e.Poll:
		c = w.look
	default:
		dir, base := filepath.Split(w.db.path)
		ends := e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
		switch name := filepath.Base(e.Name); {
		case ends && (name == base || filepath.Clean(e.Name) == filepath.Clean(dir)):
			c = w.gone
		case name != base && name != base+"-wal":
			return
		}
	}
	select {
	case c <- struct{}{}:
	default:
	}
}

func (w *watch) version() (v int64, err error) {
	if now := w.db.opened(); w.db.Replaced() == nil && !os.SameFile(now, w.seen) {
		return 0, w.again(now) // 0: there is news
	}
	err = w.ask.QueryRowContext(background).Scan(&v)
	return v, err
}

// loop looks at data_version after every event, and again until things have
// settled. One look is not enough even when it finds a change: the event of the
// next commit may have come together with that of the last.
func (w *watch) loop(ctx context.Context, seen int64) {
	defer close(w.done)
	defer close(w.out)
	defer w.forget()
	var next time.Duration // to the look after the coming one; 0: settled
	timer, due := time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	timer.Stop()
	due.Stop()
	defer timer.Stop()
	defer due.Stop()
	w.armDue(due)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.quit:
			return
		case <-w.gone: // the team is gone: who reads again finds out
			w.wake()
		case <-w.file:
			if next != settleGrowth*settleFirst {
				next = settleGrowth * settleFirst
				timer.Reset(settleFirst)
			}
		case <-w.look: // and that is all until the next one
			next = settleLast + 1
			timer.Reset(settleFirst)
		case <-w.lost:
			w.wake()
			next = settleGrowth * settleFirst
			timer.Reset(settleFirst)
		case <-timer.C:
			v, err := w.version()
			if err != nil || v != seen {
				seen = v
				w.wake()
				w.armDue(due)
			}
			if next > settleLast {
				next = 0
				break
			}
			timer.Reset(next)
			next *= settleGrowth
		case <-due.C:
			w.wake()
			w.armDue(due)
		}
	}
}

// armDue sets the timer to the next task that waits for its time. One whose time
// has come needs no further wake: this one told of it.
func (w *watch) armDue(due *time.Timer) {
	var at int64
	now := time.Now()
	if err := w.due.QueryRowContext(background, now.UnixMilli()).Scan(&at); err != nil || at == 0 {
		due.Stop()
		return
	}
	due.Reset(time.UnixMilli(at).Sub(now) + time.Millisecond)
}

// wake leaves one token at most.
func (w *watch) wake() {
	select {
	case w.out <- struct{}{}:
	default:
	}
}

func (w *watch) stop() {
	w.end()
	<-w.done
}

// forget releases what the watch holds; the files are only read, so there is
// nothing to lose when that fails.
func (w *watch) forget() {
	w.db.mu.Lock()
	delete(w.db.watches, w)
	w.db.mu.Unlock()
	_ = w.close()
}

func (w *watch) close() error {
	var errs []error
	if w.deaf != nil {
		w.deaf()
	}
	for _, s := range []*sql.Stmt{w.ask, w.due} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	if w.conn != nil {
		errs = append(errs, w.conn.Close())
	}
	if w.sdb != nil {
		errs = append(errs, w.sdb.Close())
	}
	return errors.Join(errs...)
}

// poke wakes the watches of this process after a commit of its own; they need
// not wait for the file to tell.
func (db *DB) poke() {
	db.mu.Lock()
	defer db.mu.Unlock()
	for w := range db.watches {
		w.wake()
	}
}

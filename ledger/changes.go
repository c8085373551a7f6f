package ledger

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/teamctl/teamctl/team"
)

// The settle times limit how long after the last write to a file the watch
// still checks for a commit: a WAL is written before it is synced, and its
// contents are readable only after the sync. The intervals grow from the first
// to the last, and there are none while nothing is written.
const (
	settleFirst  = time.Millisecond
	settleGrowth = 3
	settleLast   = 4 * time.Second
	// watchRest is how long the watch collects write events: a commit consists
	// of dozens of writes, and each would wake the process. The checks that
	// follow the first event find whatever was reported late.
	watchRest = 4 * time.Millisecond
)

// watch notifies all consumers of a DB of commits. It runs while there is one.
type watch struct {
	db               *DB
	deaf             func()        // ends the file watch
	gone             chan struct{} // the ledger or its directory was removed
	file, lost, look chan struct{} // a file was written; events were lost; periodic check without events
	sdb              *sql.DB       // its own connection: data_version reports commits of all others
	conn             *sql.Conn
	ask, due         *sql.Stmt   // read the version; read the next due time
	seen             os.FileInfo // the file that the connection has open
	told             int64       // Unix milliseconds: consumers know of what was due by then
	quit             chan struct{}
	done             chan struct{}
}

// consumer is a caller of Changes, or of ChangesFor with a member.
type consumer struct {
	out    chan struct{}
	member string
}

// wake leaves at most one token. The caller holds DB.mu.
func (c *consumer) wake() {
	select {
	case c.out <- struct{}{}:
	default:
	}
}

// Changes returns a channel that receives when any process has committed to the
// ledger since the last receive, or when a waiting task has become due for its
// retry; several commits may cause one receive. Read again after each. It
// receives once at the start, so that nothing is missed between reading and
// watching. All callers for one DB share one connection and one watch of the
// files. stop closes the channel; so does the end of ctx, and DB.Close.
func (l *Ledger) Changes(ctx context.Context) (wakes <-chan struct{}, stop func(), err error) {
	return l.changes(ctx, "")
}

// ChangesFor is Changes for the process of a member, by its session key: it need not
// receive for what is of no concern to that member's turns and mail. These are the
// turns of other members, unless a turn of the member waits for their place in a lane,
// mail of others, and what the member writes about itself. Commits of other processes
// are taken to concern it.
func (l *Ledger) ChangesFor(ctx context.Context, member string) (wakes <-chan struct{}, stop func(), err error) {
	return l.changes(ctx, member)
}

func (l *Ledger) changes(ctx context.Context, member string) (wakes <-chan struct{}, stop func(), err error) {
	db := l.db
	db.watching.Lock()
	defer db.watching.Unlock()
	if db.watch == nil {
		if db.watch, err = newWatch(ctx, db); err != nil {
			return nil, nil, err
		}
	}
	c := &consumer{out: make(chan struct{}, 1), member: member}
	c.wake()
	db.mu.Lock()
	if db.closed {
		err = errClosed()
	} else {
		db.consumers[c] = struct{}{}
	}
	db.mu.Unlock()
	if err != nil {
		db.endWatch()
		return nil, nil, err
	}
	end := sync.OnceFunc(func() { db.forget(c) })
	detach := context.AfterFunc(ctx, end)
	return c.out, func() { detach(); end() }, nil
}

func newWatch(ctx context.Context, db *DB) (*watch, error) {
	w := &watch{
		told: time.Now().UnixMilli(), // every consumer receives once at the start
		db:   db, quit: make(chan struct{}), done: make(chan struct{}),
		file: make(chan struct{}, 1), lost: make(chan struct{}, 1), look: make(chan struct{}, 1), gone: make(chan struct{}, 1),
	}
	version, err := w.open(ctx)
	if err != nil {
		return nil, errors.Join(db.asCoded("watch the ledger", err), w.close())
	}
	go w.loop(version)
	return w, nil
}

// forget removes a consumer, and with the last one the watch.
func (db *DB) forget(c *consumer) {
	db.mu.Lock()
	if _, ok := db.consumers[c]; ok { // otherwise Close has removed it
		delete(db.consumers, c)
		close(c.out)
	}
	db.mu.Unlock()
	db.watching.Lock()
	defer db.watching.Unlock()
	db.endWatch()
}

// endWatch ends the watch if it has no consumer. The caller holds watching.
func (db *DB) endWatch() {
	db.mu.Lock()
	used := len(db.consumers) > 0
	db.mu.Unlock()
	if used || db.watch == nil {
		return
	}
	close(db.watch.quit)
	<-db.watch.done
	db.watch = nil
}

// open watches the directory, because SQLite removes and creates the WAL at any
// time.
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

// again connects to a recovered ledger.
func (w *watch) again(now os.FileInfo) error {
	fresh := watch{db: w.db}
	if err := fresh.connect(background); err != nil {
		_ = fresh.close()
		return err
	}
	_ = (&watch{ask: w.ask, due: w.due, conn: w.conn, sdb: w.sdb}).close() // only read, so the error does not matter
	w.ask, w.due, w.conn, w.sdb, w.seen = fresh.ask, fresh.due, fresh.conn, fresh.sdb, now
	return nil
}

// heard passes an event of each kind to the loop.
func (w *watch) heard(e team.FileEvent) {
	c := w.file
	switch {
	case e.Lost:
		c = w.lost
	case e.Poll:
		c = w.look
	default:
		dir, base := filepath.Split(w.db.path)
		switch name := filepath.Base(e.Name); {
		case e.Gone && (name == base || filepath.Clean(e.Name) == filepath.Clean(dir)):
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
		return 0, w.again(now) // 0 signals a change
	}
	err = w.ask.QueryRowContext(background).Scan(&v)
	return v, err
}

// loop reads data_version after every event, and again until the file has
// settled. One read is not enough even if it finds a change: the event of the
// next commit may have been merged with that of the last.
func (w *watch) loop(seen int64) {
	defer close(w.done)
	defer func() { _ = w.close() }() // its files are only read, so a failure loses nothing
	var next time.Duration           // until the check after next; 0: settled
	timer, due := time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	timer.Stop()
	due.Stop()
	defer timer.Stop()
	defer due.Stop()
	w.armDue(due)
	for {
		select {
		case <-w.quit:
			return
		case <-w.gone: // the team was removed: the consumer's next read reports it
			w.db.pokeAll()
		case <-w.file:
			if next != settleGrowth*settleFirst {
				next = settleGrowth * settleFirst
				timer.Reset(settleFirst)
			}
		case <-w.look: // no further check until the next event
			next = settleLast + 1
			timer.Reset(settleFirst)
		case <-w.lost:
			w.db.pokeAll()
			next = settleGrowth * settleFirst
			timer.Reset(settleFirst)
		case <-timer.C:
			v, err := w.version()
			if err != nil || v != seen {
				seen = v
				if err != nil || v == 0 || w.db.mayBeForeign() { // its own were told at once
					w.db.pokeAll()
				}
				w.armDue(due)
			}
			if next > settleLast {
				next = 0
				break
			}
			timer.Reset(next)
			next *= settleGrowth
		case <-due.C:
			w.armDue(due)
		}
	}
}

// armDue sets the timer for the next waiting task. It wakes the consumers if one has become due since
// they were told the last time: on a busy machine the watch may learn of a task only after that.
func (w *watch) armDue(due *time.Timer) {
	now := time.Now()
	at, err := w.nextDue(min(w.told, now.UnixMilli())) // the clock may have been set back
	if err == nil {
		w.told = now.UnixMilli()
		if at != 0 && at <= w.told {
			w.db.pokeAll()
			at, err = w.nextDue(w.told)
		}
	}
	if err != nil || at == 0 {
		due.Stop()
		return
	}
	due.Reset(time.UnixMilli(at).Sub(now) + time.Millisecond)
}

// nextDue returns when the next task after a time is due; 0: none is.
func (w *watch) nextDue(after int64) (at int64, err error) {
	err = w.due.QueryRowContext(background, after).Scan(&at)
	return at, err
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

// poke wakes the consumers whom something concerns, after a commit of this process
// without waiting for a file event.
func (db *DB) poke(told reach) {
	if !told.some {
		return
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	for c := range db.consumers {
		if told.has(c.member) {
			c.wake()
		}
	}
}

// pokeAll wakes all consumers.
func (db *DB) pokeAll() { db.poke(reach{some: true, all: true}) }

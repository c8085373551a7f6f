package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/team"
)

// minSQLite is the first release without the bug that corrupts a database if a
// WAL is reset during a concurrent checkpoint.
const minSQLite = 3051003

const (
	defaultBusy    = 10 * time.Second
	defaultReaders = 4
	// sqliteBusy limits one wait inside SQLite. That wait cannot be
	// interrupted, so it is short, and the loop around it checks the deadline.
	sqliteBusy = 500 * time.Millisecond
	// readStatements is the number of prepared queries kept per reader:
	// preparing a query costs several times as much as running it.
	readStatements = "16"
	// cacheKiB bounds the pages that a connection keeps, in KiB (negative, as SQLite has
	// it): the kernel has the pages that are in use anyway, and what a process keeps too is
	// memory that grows for an hour.
	cacheKiB = "-512"
)

// Options configures Open. The zero value opens an existing ledger.
type Options struct {
	Create      bool          // create the file (0600) if it does not exist
	LockPath    string        // the fair lock of writers; default: ledger.lock next to ledger.db
	BusyTimeout time.Duration // maximum wait of a write for the write slot; default 10 s
	Readers     int           // maximum number of connections for reading; default 4
	Watch       team.Watcher  // reports file changes; default: one for this DB
}

// DB is an open ledger file: one writer connection, opened by the first write, and
// readers. It is safe for concurrent use.
type DB struct {
	path   string
	opts   Options
	file   os.FileInfo // the file that path named when it was opened; guarded by mu
	writes os.FileInfo // the file that the writer has open; used only while holding the write slot
	placed bool        // its directory was verified; used only while holding the write slot

	wdb     *sql.DB
	conn    *sql.Conn // the writer; used only while holding the write slot
	version int64     // data_version as the writer last saw it; 0: not seen; used only while holding the write slot
	turn    turn
	prep    map[string]*sql.Stmt

	mu        sync.Mutex
	rdb       *sql.DB
	closed    bool
	consumers map[*consumer]struct{}

	watching sync.Mutex // held while the watch starts or ends; before mu
	watch    *watch     // nil without a consumer; guarded by watching
}

// SQLiteVersion returns the version of the SQLite library in this program.
func SQLiteVersion() string {
	v, _, _ := sqlite3.Version()
	return v
}

// Open opens the ledger at path. Errors: CodeNotFound if it does not exist and
// opts.Create is not set; CodeUnavailable (reasons schema_newer, corrupt,
// not_a_ledger, readonly, network_filesystem, disk_full) if it cannot be used;
// CodeTimeout (reason busy) if another process keeps it locked.
func Open(ctx context.Context, path string, opts Options) (*DB, error) {
	return open(ctx, path, opts, migrations())
}

func open(ctx context.Context, path string, opts Options, steps []migration) (*DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, team.Errorf(team.CodeInvalid, "open ledger %s: %w", path, err)
	}
	if opts.LockPath == "" {
		opts.LockPath = strings.TrimSuffix(abs, filepath.Ext(abs)) + ".lock"
	}
	if opts.BusyTimeout <= 0 {
		opts.BusyTimeout = defaultBusy
	}
	if opts.Watch == nil {
		opts.Watch = &dirwatch.Hub{Rest: watchRest}
	}
	if opts.Readers <= 0 {
		opts.Readers = defaultReaders
	}
	if _, n, _ := sqlite3.Version(); n < minSQLite {
		return nil, team.Errorf(team.CodeUnavailable, "open ledger: sqlite %s is too old", SQLiteVersion()).
			WithHint("build teamctl with the sqlite that its go.mod names")
	}
	fresh, err := prepareFile(abs, opts.Create)
	if err != nil {
		return nil, err
	}
	db := &DB{path: abs, opts: opts, turn: turn{token: make(chan struct{}, 1)}, prep: map[string]*sql.Stmt{}, consumers: map[*consumer]struct{}{}}
	if err := db.remember(); err != nil {
		return nil, err
	}
	if err := db.init(ctx, fresh, steps); err != nil {
		return nil, errors.Join(db.asCoded("open ledger "+abs, err), db.Close())
	}
	return db, nil
}

// init connects the writer and upgrades the schema. It initialises an empty
// file under the fair lock: if several processes switch a database to WAL at
// the same time, all but one fail immediately.
func (db *DB) init(ctx context.Context, fresh bool, steps []migration) error {
	bounded, cancel := context.WithTimeout(ctx, db.opts.BusyTimeout)
	defer cancel()
	if !fresh {
		// Use a reader: most processes never write directly, and the first
		// write opens the writer's connection (writer).
		rdb, err := db.reader()
		if err != nil {
			return err
		}
		var current bool
		err = retryBusy(bounded, func() error {
			current, err = db.isCurrent(bounded, rdb, steps)
			return err
		})
		if err != nil || current {
			return err
		}
	}
	lock, err := filelock.Lock(bounded, db.opts.LockPath)
	if err != nil {
		return busyOr(err, "wait for the ledger's lock")
	}
	return errors.Join(db.upgrade(ctx, steps), lock.Unlock())
}

// upgrade connects the writer and applies the missing steps, which take as long as they
// take: only waiting has a limit. The caller holds the fair lock.
func (db *DB) upgrade(ctx context.Context, steps []migration) error {
	bounded, cancel := context.WithTimeout(ctx, db.opts.BusyTimeout)
	defer cancel()
	if err := db.writer(bounded); err != nil {
		return err
	}
	return db.migrate(ctx, steps)
}

// writer makes sure that there is a writer connection. The caller holds turn,
// or has the only reference to db.
func (db *DB) writer(ctx context.Context) error {
	if db.conn != nil {
		return nil
	}
	err := db.connect(ctx)
	if err != nil { // the next write tries again
		if db.conn != nil {
			err = errors.Join(err, db.conn.Close())
		}
		if db.wdb != nil {
			err = errors.Join(err, db.wdb.Close())
		}
		db.conn, db.wdb = nil, nil
	}
	return err
}

// connect opens the writer connection and checks the settings requested in the
// DSN.
func (db *DB) connect(ctx context.Context) error {
	db.writes, db.version = db.opened(), 0
	wdb, err := sql.Open("sqlite3", db.dsn(url.Values{
		"_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_txlock": {"immediate"},
		"_mutex": {"no"}, // the holder of the write slot is alone, and no statement has a context that ends
	}))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	wdb.SetMaxOpenConns(1)
	db.wdb = wdb
	err = retryBusy(ctx, func() error {
		db.conn, err = wdb.Conn(ctx)
		return err
	})
	if err != nil {
		return err
	}
	// Every RETURNING creates a temporary table for one row. For a table that
	// may become a file, SQLite allocates a cache of 20 pages at once, which
	// costs more than the rest of a claim.
	setup := "PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = " + cacheKiB + "; PRAGMA temp_store = MEMORY"
	if runtime.GOOS == "darwin" {
		setup += "; PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1"
	}
	if _, err := db.conn.ExecContext(ctx, setup); err != nil {
		return fmt.Errorf("set pragmas: %w", err)
	}
	for _, want := range []struct{ pragma, value string }{
		{"journal_mode", "wal"}, {"synchronous", "2"}, {"foreign_keys", "1"},
	} {
		var got string
		if err := db.conn.QueryRowContext(ctx, "PRAGMA "+want.pragma).Scan(&got); err != nil {
			return fmt.Errorf("read pragma %s: %w", want.pragma, err)
		}
		if got != want.value {
			return team.Errorf(team.CodeUnavailable, "sqlite has %s=%s, not %s", want.pragma, got, want.value).
				WithReason(team.ReasonPragma).WithHint("put the team's home on a local disk")
		}
	}
	return nil
}

// dsn returns a file: URI of the database; url.URL escapes '?', '%' and '#' in
// the path.
func (db *DB) dsn(q url.Values) string {
	q.Set("mode", "rw") // never create the file: SQLite would not use mode 0600
	q.Set("_foreign_keys", "on")
	q.Set("_busy_timeout", fmt.Sprint(sqliteBusy.Milliseconds()))
	return (&url.URL{Scheme: "file", Path: db.path, RawQuery: q.Encode()}).String()
}

// reader returns the pool of query-only connections.
func (db *DB) reader() (*sql.DB, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil, errClosed()
	}
	if db.rdb == nil {
		rdb, err := sql.Open("sqlite3", db.readerDSN())
		if err != nil {
			return nil, fmt.Errorf("open readers: %w", err)
		}
		rdb.SetMaxOpenConns(db.opts.Readers)
		rdb.SetMaxIdleConns(db.opts.Readers)
		db.rdb = rdb
	}
	return db.rdb, nil
}

func (db *DB) readerDSN() string {
	return db.dsn(url.Values{"_txlock": {"deferred"}, "_query_only": {"1"}, "_cache_size": {cacheKiB}, "_stmt_cache_size": {readStatements}})
}

// Path returns the absolute path of the database file.
func (db *DB) Path() string { return db.path }

// Close ends the watches and closes every connection, after a running write has
// finished. It may be called twice.
func (db *DB) Close() error {
	db.mu.Lock()
	if db.closed {
		db.mu.Unlock()
		return nil
	}
	db.closed = true
	rdb := db.rdb
	for c := range db.consumers {
		close(c.out)
	}
	clear(db.consumers)
	db.mu.Unlock()

	db.watching.Lock()
	db.endWatch()
	db.watching.Unlock()
	var errs []error
	if rdb != nil {
		errs = append(errs, rdb.Close())
	}
	db.turn.token <- struct{}{}
	errs = append(errs, db.free())
	for _, s := range db.prep {
		errs = append(errs, s.Close())
	}
	db.prep = nil
	if db.conn != nil {
		errs = append(errs, db.conn.Close())
	}
	if db.wdb != nil {
		errs = append(errs, db.wdb.Close())
	}
	<-db.turn.token
	if err := errors.Join(errs...); err != nil {
		return team.Errorf(team.CodeInternal, "close ledger %s: %w", db.path, err)
	}
	return nil
}

// prepareFile checks the location of the ledger and creates the file if
// allowed. fresh reports that the file is empty, which may also be due to a
// killed process.
func prepareFile(path string, create bool) (fresh bool, err error) {
	if err := refuseNetworkFS(filepath.Dir(path)); err != nil {
		return false, err
	}
	for {
		fi, err := os.Lstat(path)
		switch {
		case err == nil && !fi.Mode().IsRegular():
			return false, team.Errorf(team.CodeUnavailable, "ledger %s is not a regular file", path).
				WithReason(team.ReasonNotALedger).WithHint(hintRecover(path))
		case err == nil && fi.Size() == 0 && !create:
			// Opening it would start a new ledger, and drop a log next to it.
			return false, team.Errorf(team.CodeUnavailable, "the ledger %s is empty", path).
				WithReason(reasonCorrupt).WithHint(hintRecover(path))
		case err == nil:
			return fi.Size() == 0, nil
		case !errors.Is(err, fs.ErrNotExist):
			return false, team.Errorf(team.CodeUnavailable, "open ledger: %w", err)
		case !create:
			return false, team.Errorf(team.CodeNotFound, "no ledger at %s", path).
				WithReason(team.ReasonLedgerNotFound).WithHint("teamctl ls lists the teams")
		}
		if err := createFile(path); err != nil && !errors.Is(err, fs.ErrExist) {
			return false, team.Errorf(team.CodeUnavailable, "create ledger: %w", err).
				WithReason(team.ReasonReadonly).WithHint("check that " + filepath.Dir(path) + " exists and is writable")
		}
	}
}

// createFile makes an empty file with mode 0600 under an unused name. The file
// gets its name only after its descriptor is closed: another goroutine may have
// the database open by then, and a close would drop its locks.
func createFile(path string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), tempName)
	if err != nil {
		return err
	}
	err = tmp.Close()
	if err == nil {
		err = os.Link(tmp.Name(), path)
	}
	return errors.Join(err, os.Remove(tmp.Name()))
}

func errClosed() error {
	return team.Errorf(team.CodeUnavailable, "the ledger is closed").WithReason(team.ReasonClosed)
}

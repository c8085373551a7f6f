package control

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// front keeps the socket reachable. A cleaner of /tmp may delete it while the supervisor lives:
// then no client could reach the supervisor, or start another. It checks the socket after every
// change of the ledger, since a client may need it then; a starter that finds the lock held and no
// socket makes such a change (call).
type front struct {
	layout team.Layout
	srv    *http.Server
	log    *slog.Logger
	failed chan error // of the newest listener

	mu     sync.Mutex
	now    net.Listener
	closed bool
	done   sync.WaitGroup
}

// start begins with the first listener.
func (f *front) start(srv *http.Server, l net.Listener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.srv = srv
	f.serve(l)
}

// serve starts serving a listener; the caller holds f.mu.
func (f *front) serve(l net.Listener) {
	f.now = l
	f.done.Go(func() {
		err := f.srv.Serve(peers{l, f.log})
		f.mu.Lock()
		current := f.now == l
		f.mu.Unlock()
		if current {
			f.failed <- err
		}
	})
}

// look creates the socket again if it is missing.
func (f *front) look() {
	if _, err := os.Lstat(f.layout.Socket()); !errors.Is(err, os.ErrNotExist) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.srv == nil {
		return
	}
	l, err := listen(f.layout)
	if err != nil {
		f.log.Warn("make the deleted socket anew", "err", err)
		return
	}
	old := f.now
	f.serve(l)
	if u, ok := old.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // the path is the new one's
	}
	_ = old.Close()
	f.log.Info("the socket was deleted: listening anew", "socket", f.layout.Socket())
}

// close is called before the server is shut down: no listener comes after it.
func (f *front) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// call makes the supervisor check its socket, by a change of the ledger.
func call(ctx context.Context, l team.Layout) error {
	db, err := ledger.Open(ctx, l.Ledger(), ledger.Options{LockPath: l.LedgerLock()})
	if err != nil {
		return err
	}
	_, err = ledger.New(db, ledger.Direct(db)).Event(ctx, ledger.Event{What: team.EventSupervisorCalled})
	return errors.Join(err, db.Close())
}

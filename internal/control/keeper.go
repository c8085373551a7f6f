package control

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/fileid"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
)

// keeper knows which ledger a supervisor serves. After its directory was removed, moved
// away or restored from a backup, a supervisor has files that nothing will read again: it
// must exit before it answers another request.
//
// It checks whenever the ledger's files have changed or were removed, and before each
// request.
type keeper struct {
	layout team.Layout
	file   os.FileInfo // the ledger
	id     string
	dir    *os.File // the team's directory
	handle int      // of the ledger, without opening it; -1: none
	once   sync.Once
	lost   chan struct{} // closed when the ledger has lost its name
}

func newKeeper(l team.Layout) (*keeper, error) {
	fi, err := os.Lstat(l.Ledger())
	if err != nil {
		return nil, team.Errorf(team.CodeNotFound, "no ledger at %s", l.Ledger()).WithReason(team.ReasonLedgerNotFound)
	}
	dir, err := os.Open(l.Dir)
	if err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "open the team's directory: %w", err)
	}
	return &keeper{layout: l, file: fi, id: fileid.Of(fi), dir: dir, handle: handleOf(l.Ledger()), lost: make(chan struct{})}, nil
}

func (k *keeper) close() {
	_ = k.dir.Close() // opened to be looked at
	closeHandle(k.handle)
}

// look is nil as long as the ledger has its name.
func (k *keeper) look() error {
	fi, err := os.Lstat(k.layout.Ledger())
	if err == nil && os.SameFile(fi, k.file) || err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	k.once.Do(func() { close(k.lost) })
	return team.Errorf(team.CodeUnavailable, "the supervisor, pid %d, keeps a ledger that is no longer at %s, and is leaving", os.Getpid(), k.layout.Ledger()).
		WithReason(reasonOther).WithHint("try again")
}

// check compares the ledger with the one on disk and the one that a request is about.
func (k *keeper) check(theirs string) error {
	if k == nil {
		return nil
	}
	if err := k.look(); err != nil {
		return err
	}
	if theirs != "" && theirs != k.id {
		return team.Errorf(team.CodeUnavailable, "the supervisor, pid %d, keeps another ledger than the one at %s here", os.Getpid(), k.layout.Ledger()).
			WithReason(reasonOther).WithHint("teamctl doctor")
	}
	return nil
}

func (k *keeper) isLost() bool {
	select {
	case <-k.lost:
		return true
	default:
		return false
	}
}

func links(fi os.FileInfo) uint64 {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(st.Nlink) // the types differ between systems
}

// owns reports that the path of the team leads to the directory it did at the start.
func (k *keeper) owns() bool {
	here, err := k.dir.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(k.layout.Dir)
	return err == nil && os.SameFile(here, there)
}

// removed reports that the team was deleted, not only renamed: its directory, or its ledger
// without a replacement.
func (k *keeper) removed() bool {
	fi, err := k.dir.Stat()
	if err == nil && links(fi) == 0 {
		return true
	}
	if handleLinks(k.handle) != 0 {
		return false
	}
	_, err = os.Lstat(k.layout.Ledger())
	return errors.Is(err, os.ErrNotExist) || !k.owns()
}

// leave ends the service of a team that has lost its ledger. The agents of a removed team are
// ended: their directories are missing, and no later supervisor knows all of them. Those of a
// moved team are left for the next supervisor.
func (k *keeper) leave(sup *supervisor.Supervisor, log *slog.Logger) {
	w := supervisor.LastWords{At: time.Now().UTC(), PID: os.Getpid(), Team: k.layout.Key, Dir: k.layout.Dir, Why: "moved"}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if k.removed() {
		w.Why = "removed"
		w.Ended, w.Left = sup.EndAll(ctx)
	} else {
		w.Left = sup.Living(ctx)
	}
	log.Error("the team's ledger is no longer at its path: leaving", "dir", k.layout.Dir, "why", w.Why, "ended", w.Ended, "left", w.Left)
	if err := w.Write(k.layout); err != nil {
		log.Warn("leave word of it", "err", err)
	}
}

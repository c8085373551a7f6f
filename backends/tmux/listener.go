package tmux

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// Listeners on a socket other than a pid.
const (
	noListener      = 0
	unknownListener = -1 // a listener whose pid is unknown
)

// listener returns the pid of the process that listens on a unix socket.
func listener(path string) int {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return unknownListener
	}
	defer func() { _ = unix.Close(fd) }()
	// A stopped server accepts no connection: a blocking connect would wait for
	// it.
	if err := unix.SetNonblock(fd, true); err != nil {
		return unknownListener
	}
	switch err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ECONNREFUSED):
		return noListener
	case err != nil:
		return unknownListener
	}
	if pid, err := peer(fd); err == nil && pid > 0 {
		return pid
	}
	return unknownListener
}

// reach makes sure that the socket leads to this server. A clean-up of /tmp may
// have deleted it: on SIGUSR1 the server creates a new one. While it does so
// the socket exists without a listener, and a tmux command that may start a
// server would start a second one in its place, so no query is allowed until
// this is done.
func (s *server) reach(ctx context.Context) error {
	s.reaching.Lock()
	defer s.reaching.Unlock()
	if s.listens() {
		return nil
	}
	if err := proc.Signal(s.id, syscall.SIGUSR1); err != nil {
		return errServerGone
	}
	err := until(ctx, 5*time.Second, func() bool { return s.listens() || !proc.Alive(s.id) })
	switch {
	case err != nil:
		return fmt.Errorf("restore the tmux socket %s: %w", s.socket, err)
	case !proc.Alive(s.id):
		return errServerGone
	}
	return nil
}

// listens reports whether this server has its socket. For a user's server it
// only checks that some process listens: its pid may be that of another
// namespace.
func (s *server) listens() bool {
	switch pid := listener(s.socket); pid {
	case noListener:
		return false
	case unknownListener, s.id.PID:
		return true
	default:
		return !s.private
	}
}

// serverFile is the content of tmux.json.
type serverFile struct {
	Socket string `json:"socket"`
	backends.ProcID
}

// record stores the process identity of the private server: if its socket is
// deleted nothing else leads to it, and a second one would be started.
func (b *Backend) record(s *server) {
	if was, ok := b.recorded(s.socket); ok && was == s.id {
		return
	}
	data, err := json.Marshal(serverFile{s.socket, s.id})
	if err == nil {
		err = atomicfile.Write(b.opt.Layout.TmuxServer(), append(data, '\n'), 0o600, false)
	}
	if err != nil {
		b.log.Warn("record the tmux server", "err", err)
	}
}

// Recorded returns the recorded private server of a team, whether or not it is
// still running.
func Recorded(l team.Layout) (backends.ProcID, bool) {
	var f serverFile
	data, err := regular.ReadFile(l.TmuxServer())
	if err != nil || json.Unmarshal(data, &f) != nil {
		return backends.ProcID{}, false
	}
	return f.ProcID, true
}

// recorded returns the last recorded server of a socket, if it is alive.
func (b *Backend) recorded(socket string) (id backends.ProcID, ok bool) {
	var f serverFile
	data, err := regular.ReadFile(b.opt.Layout.TmuxServer())
	if err != nil || json.Unmarshal(data, &f) != nil {
		return id, false // without a record its socket must lead to it
	}
	return f.ProcID, f.Socket == socket && proc.Alive(f.ProcID)
}

// living returns the server of a socket even if the socket does not lead to it:
// the last recorded one, or one that was never recorded.
func (b *Backend) living(socket string) (id backends.ProcID, ok bool) {
	if id, ok = b.recorded(socket); !ok && listener(socket) == noListener {
		return stray(socket)
	}
	return id, ok
}

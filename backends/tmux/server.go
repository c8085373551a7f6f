package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// errServerGone means that the intended server is no longer running.
var errServerGone = errors.New("the tmux server has exited")

// server is one living tmux server, identified by its process.
type server struct {
	socket  string
	id      backends.ProcID
	private bool
	session string // of the private server: where the control client attaches
	tmux    string
	exec    *execRunner
	control bool     // may be queried in control mode
	mute    bool     // tmux informs a program of its size only while a client shows it
	size    []string // size of a new window, for resize-window; nil: tmux creates it as requested

	backend *Backend // notices other sizes of its windows

	reaching sync.Mutex // held while the socket is checked and restored

	mu   sync.Mutex
	conn *control
}

// ask returns a runner after checking that the server is still the same.
func (s *server) ask(ctx context.Context) (runner, error) {
	if !proc.Alive(s.id) {
		return nil, errServerGone
	}
	if conn := s.connected(); conn == nil || !s.hasSocket() {
		if err := s.reach(ctx); err != nil {
			return nil, err
		}
	}
	if !s.control {
		return s.exec, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && s.conn.alive() {
		return s.conn, nil
	}
	if s.conn != nil {
		s.conn.close()
		s.conn = nil
	}
	c, err := dial(ctx, s.tmux, s.socket, s.session, func(line string) { s.backend.notified(s, line) })
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return s.exec, nil // for example, the session was closed meanwhile
	}
	s.conn = c
	s.backend.look(ctx, s, c)
	return c, nil
}

// connected returns the control client, or nil.
func (s *server) connected() *control {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && s.conn.alive() {
		return s.conn
	}
	return nil
}

// hasSocket reports whether the socket exists: the control client does not need
// it, others do.
func (s *server) hasSocket() bool {
	_, err := os.Lstat(s.socket)
	return !errors.Is(err, os.ErrNotExist)
}

// until polls until ok returns true, within has passed or ctx ends: for the few
// things of tmux without an event.
func until(ctx context.Context, within time.Duration, ok func() bool) error {
	if ok() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	t := time.NewTicker(5 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if ok() {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *server) run(ctx context.Context, args ...string) (string, error) {
	r, err := s.ask(ctx)
	if err != nil {
		return "", err
	}
	return r.run(ctx, args...)
}

func (s *server) batch(ctx context.Context, cmds ...[]string) error {
	r, err := s.ask(ctx)
	if err != nil {
		return err
	}
	return r.batch(ctx, cmds...)
}

// groups is runner.groups. Without a runner every group has that error.
func (s *server) groups(ctx context.Context, groups ...[][]string) []answer {
	r, err := s.ask(ctx)
	if err == nil {
		return r.groups(ctx, groups...)
	}
	as := make([]answer, len(groups))
	for i := range as {
		as[i].err = err
	}
	return as
}

func (s *server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.close()
		s.conn = nil
	}
}

// setSession sets the session to which the control client attaches; if it
// changes, the client reconnects.
func (s *server) setSession(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != id && s.conn != nil {
		s.conn.close()
		s.conn = nil
	}
	s.session = id
}

// adoptServer returns the entry for the server with this process, and creates
// it if necessary. An older entry for the same socket is closed.
func (b *Backend) adoptServer(socket string, id backends.ProcID, session string) *server {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.servers[socket]; s != nil {
		if s.id == id {
			if session != "" {
				s.setSession(session)
			}
			return s
		}
		s.close()
		b.resizes.forget(s)
	}
	private := socket == b.opt.Layout.TmuxSocket()
	s := &server{
		socket: socket, id: id, private: private, session: session, tmux: b.opt.Tmux, backend: b,
		exec:    &execRunner{tmux: b.opt.Tmux, socket: socket},
		control: private && b.version.atLeast(3, 2), // attach -f requires 3.2
		mute:    b.version.major == 3 && b.version.minor == 0,
	}
	if private && b.version.atLeast(3, 2) && !b.version.atLeast(3, 3) {
		s.size = []string{"-x", strconv.Itoa(b.opt.Cols), "-y", strconv.Itoa(b.opt.Rows)}
	}
	b.servers[socket] = s
	return s
}

// fit returns the commands that give a new window of the private server its
// requested size. tmux 3.2 uses the size of the requesting client instead,
// which has no terminal: 80 columns, too few for two agents. An explicit size
// persists when a client attaches, so that is undone at once.
func (s *server) fit(window string) [][]string {
	if s.size == nil {
		return nil
	}
	return [][]string{
		append([]string{"resize-window", "-t", window}, s.size...),
		{"set-option", "-wu", "-t", window, "window-size"},
	}
}

// serverOf returns the server on which a pane was created; errServerGone if it
// is no longer running.
func (b *Backend) serverOf(p team.Pane, boot string) (*server, error) {
	id := backends.ProcID{BootID: boot, PID: p.ServerPID, StartTicks: p.ServerStart}
	if p.Socket == "" || !proc.Alive(id) {
		return nil, errServerGone
	}
	return b.adoptServer(p.Socket, id, p.SessionID), nil
}

// person returns the server named by $TMUX of the requesting process, verified:
// it answers on its socket, is the process in $TMUX and has the pane.
func (b *Backend) person(ctx context.Context, pl team.Place) (s *server, window, session string, err error) {
	f := strings.Split(pl.TMUX, ",")
	if len(f) < 2 || f[0] == "" || pl.TMUXPane == "" {
		return nil, "", "", team.Errorf(team.CodeUnavailable, "TMUX=%q names no tmux server", pl.TMUX)
	}
	r := &execRunner{tmux: b.opt.Tmux, socket: f[0]}
	out, err := r.run(ctx, "display-message", "-p", "-t", pl.TMUXPane, "#{pid} #{window_id} #{session_id} #{pane_id}")
	if err != nil {
		return nil, "", "", team.Errorf(team.CodeUnavailable, "query the tmux server of this terminal: %w", err)
	}
	g := strings.Fields(out)
	if len(g) != 4 || g[0] != f[1] || g[3] != pl.TMUXPane {
		return nil, "", "", team.Errorf(team.CodeUnavailable, "the tmux server of this terminal has been replaced")
	}
	pid, err := strconv.Atoi(g[0])
	if err != nil {
		return nil, "", "", fmt.Errorf("read tmux's pid: %w", err)
	}
	id, err := proc.Identify(pid)
	if err != nil {
		return nil, "", "", team.Errorf(team.CodeUnavailable, "the tmux server of this terminal has exited: %w", err)
	}
	return b.adoptServer(f[0], id, ""), g[1], g[2], nil
}

package pty

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/creack/pty"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/shim"
	"github.com/teamctl/teamctl/internal/cgroup"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// Name of the backend.
const Name = "pty"

// Options of a Backend. Layout and ShimArgv are needed to start, the rest has
// defaults.
type Options struct {
	Layout   team.Layout
	ShimArgv []string       // absolute command of the shim; its main function must have Host
	Notifier *shim.Notifier // nil: starts are noticed by looking, within 10 ms
	Log      *slog.Logger   // nil: silent
}

// Backend is one team's. New makes it without touching anything.
type Backend struct {
	opt     Options
	log     *slog.Logger
	looks   proc.Looks // through the process table, of all who end at once
	starter shim.Starter

	mu     sync.Mutex
	closed bool
	live   map[*attached]struct{}
}

var _ backends.Backend = (*Backend)(nil)

// New returns the backend of one team.
func New(opt Options) *Backend {
	log := opt.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	b := &Backend{opt: opt, log: log, live: map[*attached]struct{}{}}
	b.starter = shim.Starter{Argv: opt.ShimArgv, Notifier: opt.Notifier, Looks: &b.looks, Log: log}
	return b
}

// Name is "pty".
func (b *Backend) Name() string { return Name }

// Check opens a pseudoterminal and closes it again.
func (b *Backend) Check(context.Context) error {
	m, s, err := pty.Open()
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "open a pseudoterminal: %w", err).
			WithHint("is /dev/pts mounted, and is there room in /proc/sys/kernel/pty/max?")
	}
	_ = m.Close()
	_ = s.Close()
	return nil
}

// CloseTeam removes what killed shims have left; a terminal goes with its agent.
func (b *Backend) CloseTeam(context.Context) error {
	cgroup.Sweep(b.opt.Layout.Key)
	return nil
}

// Close frees watches; agents keep running.
func (b *Backend) Close() error {
	b.mu.Lock()
	b.closed = true
	as := make([]*attached, 0, len(b.live))
	for a := range b.live {
		as = append(as, a)
	}
	b.mu.Unlock()
	for _, a := range as {
		a.Detach()
	}
	return nil
}

func (b *Backend) errClosed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return team.Errorf(team.CodeUnavailable, "the pty backend is closed")
	}
	return nil
}

// pane says where a generation is: its socket, and an id that names it among those
// of the team.
func (b *Backend) pane(l backends.Launch) backends.Pane {
	sum := sha256.Sum256([]byte(l.Bundle))
	id := "p" + hex.EncodeToString(sum[:6])
	return backends.Pane{
		Generation: l.Generation, Backend: Name, PaneID: id,
		Socket: filepath.Join(b.opt.Layout.Runtime(), id),
	}
}

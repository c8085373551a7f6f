package pty

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/holder"
	"github.com/teamctl/teamctl/internal/cgroup"
	"github.com/teamctl/teamctl/internal/openpty"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// Name is the name of the backend.
const Name = "pty"

// Options configures a Backend. Layout and ShimArgv are required to start
// generations, the rest has defaults.
type Options struct {
	Layout   team.Layout
	ShimArgv []string         // absolute command of the shim, whose main function must pass Host
	Notifier *bundle.Notifier // nil: starts are noticed by polling, within 10 ms
	Log      *slog.Logger     // nil: silent
}

// Backend is the pty backend of one team. New creates it without side effects.
type Backend struct {
	opt     Options
	log     *slog.Logger
	looks   proc.Looks // scans of the process table, shared by all generations that end at once
	starter holder.Starter

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
	b.starter = holder.Starter{Argv: opt.ShimArgv, Notifier: opt.Notifier, Looks: &b.looks, Log: log}
	return b
}

// Name returns "pty".
func (b *Backend) Name() string { return Name }

// Check opens a pseudoterminal and closes it again.
func (b *Backend) Check(context.Context) error {
	m, s, err := openpty.Open()
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "%w", err).
			WithHint("is /dev/pts mounted, and is there room in /proc/sys/kernel/pty/max?")
	}
	_ = m.Close()
	_ = s.Close()
	return nil
}

// CloseTeam removes what killed shims have left; a terminal is closed with its
// agent.
func (b *Backend) CloseTeam(context.Context) error {
	cgroup.Sweep(b.opt.Layout.Key)
	return nil
}

// Close releases watches; agents keep running.
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

// pane returns the location of a generation: its socket, and an id that is
// unique within the team.
func (b *Backend) pane(l backends.Launch) team.Pane {
	sum := sha256.Sum256([]byte(l.Bundle))
	id := "p" + hex.EncodeToString(sum[:6])
	return team.Pane{
		Generation: l.Generation, Backend: Name, PaneID: id,
		Socket: filepath.Join(b.opt.Layout.Runtime(), id),
	}
}

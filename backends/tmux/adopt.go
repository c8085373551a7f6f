package tmux

import (
	"context"
	"fmt"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/holder"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// Adopt attaches to the generation in the bundle. If it has ended, Adopt makes
// sure that exit.json records it, ends what survived it, and returns
// CodeNotFound.
func (b *Backend) Adopt(ctx context.Context, dir team.Bundle) (backends.Attached, error) {
	if err := b.errClosed(); err != nil {
		return nil, err
	}
	if err := b.Check(ctx); err != nil {
		return nil, err
	}
	l, err := bundle.ReadLaunch(dir, "")
	if err != nil {
		return nil, fmt.Errorf("adopt: %w", err)
	}
	l.Bundle = dir
	p, err := bundle.ReadPane(dir, l.Generation)
	if err != nil && !team.IsCode(err, team.CodeNotFound) {
		return nil, fmt.Errorf("adopt %s: %w", l.Agent, err)
	}
	if p.Backend != "" && p.Backend != Name {
		return nil, team.Errorf(team.CodeInvalid, "adopt %s: it was started by the backend %s", l.Agent, p.Backend)
	}
	pr, err := holder.AwaitProc(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("adopt %s: %w", l.Agent, err)
	}
	s, serr := b.serverOf(p, pr.Shim.BootID)
	if serr != nil {
		s, p = b.search(ctx, l, p, pr)
	}
	if !proc.Alive(pr.Shim) {
		b.conclude(l, pr, p, s)
		return nil, team.Errorf(team.CodeNotFound, "adopt %s: generation %s has ended", l.Agent, l.Generation)
	}
	if s != nil {
		b.repair(ctx, s, l, p)
	}
	return b.attach(l, pr, p, s)
}

// search finds the pane of a shim whose pane.json is missing (the supervisor
// died before writing it) by the shim's pid.
func (b *Backend) search(ctx context.Context, l backends.Launch, p team.Pane, pr backends.Proc) (*server, team.Pane) {
	if p.PaneID != "" {
		return nil, p // known, but its server has exited
	}
	var cand []*server
	if l.Place.TMUX != "" {
		if s, _, _, err := b.person(ctx, l.Place); err == nil {
			cand = append(cand, s)
		}
	}
	r := &execRunner{tmux: b.opt.Tmux, socket: b.opt.Layout.TmuxSocket()}
	if s, err := b.existing(ctx, r); err == nil {
		cand = append(cand, s)
	}
	for _, s := range cand {
		ps, err := s.panes(ctx, "-a")
		if err != nil {
			continue
		}
		for _, q := range ps {
			if q.pid != pr.Shim.PID {
				continue
			}
			p = team.Pane{
				Generation: l.Generation, Backend: Name, Socket: s.socket,
				ServerPID: s.id.PID, ServerStart: s.id.StartTicks,
				PaneID: q.id, WindowID: q.window, SessionID: q.session, Private: s.private,
			}
			if err := bundle.WritePane(l.Bundle, p); err != nil {
				b.log.Warn("record a pane", "agent", l.Agent, "err", err)
			}
			return s, p
		}
	}
	return nil, p
}

// repair performs the steps that the dead supervisor may have missed.
func (b *Backend) repair(ctx context.Context, s *server, l backends.Launch, p team.Pane) {
	q, ok, err := s.find(ctx, p.PaneID)
	if err != nil || !ok {
		return
	}
	if q.agent == "" {
		err = s.batch(ctx, decorate(q.id, l)...)
	}
	if err == nil && !q.piped && !q.dead {
		if err = bundle.CreateLog(l.Bundle.Log()); err == nil {
			err = s.batch(ctx, b.pipe(q.id, l))
		}
	}
	if err != nil {
		b.log.Warn("repair an adopted pane", "agent", l.Agent, "pane", p.PaneID, "err", err)
	}
}

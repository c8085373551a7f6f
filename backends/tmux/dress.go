package tmux

import (
	"context"
	"errors"
)

// The user's window gets a few options while teammates are in it. The previous
// values are saved in user options of the window, so that any later supervisor
// can restore them.
var windowOptions = []struct{ option, saved, value string }{
	{"pane-border-status", "@teamctl_saved_status", "top"},
	{"pane-border-format", "@teamctl_saved_format", borderFormat},
	{"pane-border-style", "@teamctl_saved_style", borderStyle},
}

// unset is the saved value of an option that was not set on the window.
const unset = "-"

func (s *server) setOptions(ctx context.Context, window string) error {
	for _, d := range windowOptions {
		saved, err := s.run(ctx, "show-options", "-wqv", "-t", window, d.saved)
		if err != nil {
			return err
		}
		if saved != "" {
			continue // an earlier supervisor has set it
		}
		old, err := s.run(ctx, "show-options", "-wqv", "-t", window, d.option)
		if err != nil {
			return err
		}
		if old == "" {
			old = unset
		}
		if err := s.batch(ctx, []string{"set-option", "-w", "-t", window, d.saved, old}); err != nil {
			return err
		}
		err = s.batch(ctx, []string{"set-option", "-w", "-t", window, d.option, d.value})
		var ref *refused
		if err != nil && !errors.As(err, &ref) { // refused: before 3.2 a style cannot be a format; keep the old one
			return err
		}
	}
	return nil
}

// restoreOptions restores the window's options once no teammate is in it.
func (s *server) restoreOptions(ctx context.Context, window string) error {
	ps, err := s.panes(ctx, "-t", window)
	if err != nil {
		return err
	}
	for _, p := range ps {
		if p.agent != "" {
			return nil
		}
	}
	for _, d := range windowOptions {
		old, err := s.run(ctx, "show-options", "-wqv", "-t", window, d.saved)
		if err != nil {
			return err
		}
		switch old {
		case "":
			continue
		case unset:
			err = s.batch(ctx, []string{"set-option", "-wu", "-t", window, d.option})
		default:
			err = s.batch(ctx, []string{"set-option", "-w", "-t", window, d.option, old})
		}
		if err == nil {
			err = s.batch(ctx, []string{"set-option", "-wu", "-t", window, d.saved})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leave removes this team's dead panes from a server that is not the team's
// own.
func (b *Backend) leave(ctx context.Context, s *server) error {
	ps, err := s.panes(ctx, "-a")
	if err != nil {
		return err
	}
	var rs []*removal
	for _, p := range ps {
		if p.agent != "" && p.team == b.opt.Layout.Key && p.dead {
			rs = append(rs, &removal{pane: p.id, agent: p.agent, pid: p.pid})
		}
	}
	s.removeAll(ctx, rs)
	var all []error
	for _, r := range rs {
		all = append(all, r.err)
	}
	return errors.Join(all...)
}

package tmux

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// AttachArgv returns the command that shows a teammate's pane to a user with
// the environment env, and the environment to run it with: it attaches, or only
// switches the client if the user is already on that server. The zero Pane is
// the team's private session with its lead, whose program the command starts again
// if it has exited. A pane that does not exist is CodeNotFound.
func (b *Backend) AttachArgv(ctx context.Context, p team.Pane, env []string) (argv, runEnv []string, err error) {
	if err := b.Check(ctx); err != nil {
		return nil, nil, err
	}
	path, err := exec.LookPath(b.opt.Tmux)
	if err != nil {
		return nil, nil, team.Errorf(team.CodeUnavailable, "find tmux: %w", err).WithHint(installHint)
	}
	socket, session := p.Socket, ""
	var goTo []string
	if p.PaneID == "" {
		r := &execRunner{tmux: b.opt.Tmux, socket: b.opt.Layout.TmuxSocket()}
		s, err := b.existing(ctx, r)
		if err != nil {
			return nil, nil, team.Errorf(team.CodeNotFound, "attach to team %s: %w", b.opt.Layout.Key, err).
				WithHint("teamctl ps shows where its members run")
		}
		socket, session = s.socket, s.sessionID()
		if goTo, err = b.reviveLead(ctx, r, session); err != nil {
			return nil, nil, err
		}
	} else {
		_, q, err := b.locate(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		session = q.session
		goTo = []string{"select-window", "-t", q.window, ";", "select-pane", "-t", q.id, ";"}
	}
	verb := "attach-session"
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "TMUX="); ok {
			if at, _, _ := strings.Cut(v, ","); samePath(at, socket) {
				verb = "switch-client"
			}
			continue // tmux refuses to nest while it is set
		}
		runEnv = append(runEnv, kv)
	}
	if verb == "switch-client" {
		runEnv = env // tells tmux which client to switch
	}
	argv = append([]string{path, "-u", "-S", socket}, goTo...)
	return append(argv, verb, "-t", session), runEnv, nil
}

// reviveLead returns the command that starts the program of the lead's pane again,
// nothing if it runs or if there is none.
func (b *Backend) reviveLead(ctx context.Context, r runner, session string) ([]string, error) {
	if len(b.opt.LeadArgv) == 0 {
		return nil, nil
	}
	out, err := r.run(ctx, "list-panes", "-s", "-t", session, "-F", "#{pane_id} #{pane_dead} #{@teamctl_role}")
	if err != nil {
		return nil, err
	}
	for l := range strings.Lines(out) {
		if f := strings.Fields(l); len(f) == 3 && f[1] == "1" && f[2] == "lead" {
			return append(append([]string{"respawn-pane", "-t", f[0], "--"}, escapeAll(b.leadArgv())...), ";"), nil
		}
	}
	return nil, nil
}

func samePath(a, b string) bool {
	ra, err := filepath.EvalSymlinks(a)
	if err != nil {
		return a == b
	}
	rb, err := filepath.EvalSymlinks(b)
	return err == nil && ra == rb
}

// thisBoot returns the boot id under which a recorded pid is meaningful.
func thisBoot() (string, error) {
	id, err := proc.Self()
	return id.BootID, err
}

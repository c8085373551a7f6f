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
	argv = append(append([]string{path, "-u", "-S", socket}, goTo...), verb)
	if verb == "switch-client" {
		runEnv = env // tells tmux which client to switch
		if client := b.popupClient(ctx, socket, env); client != "" {
			argv = append(argv, "-c", client)
		}
	}
	return append(argv, "-t", session), runEnv, nil
}

// InPopup reports whether a process with the environment env runs in a popup of the server at socket. tmux
// gives it no pane.
func InPopup(socket string, env []string) bool {
	in := false
	for _, kv := range env {
		switch name, value, _ := strings.Cut(kv, "="); {
		case name == "TMUX_PANE" && value != "":
			return false
		case name == "TMUX":
			at, _, _ := strings.Cut(value, ",")
			in = at != "" && samePath(at, socket)
		}
	}
	return in
}

// popupClient returns the client that shows the popup in which a process with the environment env
// runs, "" if that is unknown. Left to itself tmux chooses the client that was used last,
// which may be the supervisor's: what is typed into a popup does not count as use of its client.
func (b *Backend) popupClient(ctx context.Context, socket string, env []string) (client string) {
	if !InPopup(socket, env) {
		return ""
	}
	session := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "TMUX="); ok {
			session = v[strings.LastIndexByte(v, ',')+1:]
		}
	}
	r := &execRunner{tmux: b.opt.Tmux, socket: socket}
	out, err := r.run(ctx, "list-clients", "-t", "$"+session, "-F", "#{client_control_mode} #{client_activity} #{client_name}")
	if err != nil { // the session has ended
		return ""
	}
	last := ""
	for l := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSpace(l), " ", 3)
		if len(f) == 3 && f[0] == "0" && (client == "" || f[1] > last) { // seconds since 1970, of one length
			last, client = f[1], f[2]
		}
	}
	return client
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
			start := line(append([]string{"respawn-pane", "-t", f[0], "--"}, b.leadArgv()...))
			// Another command that attaches may be first.
			return []string{"if-shell", "-F", "-t", f[0], "#{pane_dead}", start, ";"}, nil
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

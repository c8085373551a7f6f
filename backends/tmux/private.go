package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/cgroup"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// config returns the configuration that the private server reads when it
// starts. remain-on-exit must be in it: set later, it is too late for a command
// that exits at once. history-limit is small because tmux copies its whole
// memory at every spawn, and the output is in output.log. window-size stays
// automatic: "manual" crashes the 3.3 server when a window is created without
// an attached client.
func config(teamKey string, line []string, cols, rows int, v version) string {
	style := ""
	if v.atLeast(3, 2) {
		style = "set -gw pane-border-style '" + borderStyle + "'\nset -gw pane-active-border-style '" + borderStyle + ",bold'\n"
	}
	return `# written by teamctl for team ` + teamKey + `; replaced when its tmux server is started
set -s exit-empty off
set -s escape-time 10
set -g default-terminal screen-256color
set -g default-shell /bin/sh
set -g default-size ` + fmt.Sprintf("%dx%d", cols, rows) + `
set -g destroy-unattached off
set -g history-limit 1000
set -g mouse on
set -g update-environment ''
set -g visual-activity off
set -g bell-action none
set -g set-titles off
set -g status-interval 5
set -g status-left ` + quote(statusLeft(teamKey, line)) + `
set -g status-left-length 80
set -g status-right ' #{prefix} d: back '
set -gw remain-on-exit on
set -gwq remain-on-exit-format ''
set -gw allow-rename off
set -gw automatic-rename off
set -gw aggressive-resize off
set -gw pane-border-status top
set -gw pane-border-format '` + borderFormat + `'
` + style
}

// statusLeft is the left part of the status line: what a command prints, which tmux runs every
// status-interval while a client is attached, and the team's name where it fails. A command
// with a character that tmux or its clock would read as a sign is not run.
func statusLeft(teamKey string, line []string) string {
	name := "[" + teamKey + "] "
	if len(line) == 0 || strings.ContainsAny(strings.Join(line, ""), "#%()'\"") {
		return name
	}
	return "#(" + team.ShellLine(line) + " 2>/dev/null || echo " + team.ShellQuote(name) + ") "
}

// borderFormat shows a teammate's own title, which the program in the pane
// cannot change, in the member's colour.
const borderFormat = ` #{?#{@teamctl_title},#[fg=#{@teamctl_color}]#{@teamctl_title}#[default],#{pane_title}} `

// borderStyle colours the border of each pane. tmux evaluates it per pane since
// 3.2; there is no style option for a single pane.
const borderStyle = "fg=#{?#{@teamctl_color},#{@teamctl_color},default}"

// ensurePrivate returns the private server with its session, and starts what is
// missing. The caller holds b.place.
func (b *Backend) ensurePrivate(ctx context.Context) (*server, error) {
	socket := b.opt.Layout.TmuxSocket()
	if len(socket) > 107 {
		return nil, team.Errorf(team.CodeInvalid, "socket path %s is longer than 107 bytes", socket).
			WithHint("set " + team.EnvRuntime + " to a short directory")
	}
	b.mu.Lock()
	known := b.servers[socket]
	b.mu.Unlock()
	if known != nil && known.sessionID() != "" {
		if _, err := known.run(ctx, "has-session", "-t", known.sessionID()); err == nil {
			return known, nil
		}
	}
	if err := backends.SecureRuntime(b.opt.Layout.Runtime()); err != nil {
		return nil, err
	}
	b.mu.Lock()
	conf := config(b.opt.Layout.Key, b.opt.LineArgv, b.opt.Cols, b.opt.Rows, b.version)
	b.mu.Unlock()
	r := &execRunner{tmux: b.opt.Tmux, socket: socket, conf: filepath.Join(filepath.Dir(socket), "tmux.conf")}
	if err := os.WriteFile(r.conf, []byte(conf), 0o600); err != nil {
		return nil, fmt.Errorf("write tmux.conf: %w", err)
	}
	// A server that is just exiting answers "server exited unexpectedly", one
	// that another teamctl process is just starting "duplicate session". On a busy machine
	// one call of tmux takes seconds, so the number of tries counts as well.
	deadline := time.Now().Add(5 * time.Second)
	for tries := 1; ; tries++ {
		s, err := b.tryPrivate(ctx, r)
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil || tries >= 10 && time.Now().After(deadline) {
			return nil, team.Errorf(team.CodeUnavailable, "start the team's tmux server: %w", err)
		}
		t := time.NewTimer(50 * time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// errNoSession means that the private server, or its session, does not exist.
var errNoSession = errors.New("the team has no tmux session")

// existing returns the private server if it has the team's session. A living
// server that cannot be reached is an error: another one must not be started.
func (b *Backend) existing(ctx context.Context, r *execRunner) (*server, error) {
	if id, ok := b.living(r.socket); ok {
		if err := b.adoptServer(r.socket, id, "").reach(ctx); err != nil && !errors.Is(err, errServerGone) {
			return nil, err
		}
	}
	out, err := r.run(ctx, "list-sessions", "-F", "#{pid} #{session_id} #{session_name}")
	var ref *refused
	if err != nil && !errors.As(err, &ref) { // refused: no server yet
		return nil, err
	}
	for l := range strings.Lines(out) {
		if f := strings.Fields(l); len(f) == 3 && f[2] == b.session() {
			return b.pin(r.socket, f[0], f[1])
		}
	}
	return nil, errNoSession
}

func (b *Backend) tryPrivate(ctx context.Context, r *execRunner) (*server, error) {
	if s, err := b.existing(ctx, r); !errors.Is(err, errNoSession) {
		return s, err
	}
	args := []string{"new-session", "-d", "-s", b.session(), "-n", "team",
		"-x", strconv.Itoa(b.opt.Cols), "-y", strconv.Itoa(b.opt.Rows),
		"-P", "-F", "#{pid} #{session_id} #{pane_id}", "--"}
	out, err := r.run(ctx, append(args, b.leadArgv()...)...)
	if err != nil {
		return nil, err
	}
	f := strings.Fields(out)
	if len(f) != 3 {
		return nil, fmt.Errorf("tmux new-session printed %q", out)
	}
	s, err := b.pin(r.socket, f[0], f[1])
	if err != nil {
		return nil, err
	}
	return s, s.batch(ctx, append(s.fit(f[2]),
		[]string{"set-option", "-p", "-t", f[2], "@teamctl_role", "lead"},
		[]string{"set-option", "-p", "-t", f[2], "@teamctl_title", team.LeadName},
		[]string{"set-option", "-p", "-t", f[2], "@teamctl_color", "colour255"},
		[]string{"select-pane", "-t", f[2], "-T", team.LeadName},
		[]string{"set-option", "-w", "-t", f[2], "@teamctl_grid", "1"},
	)...)
}

// leadArgv returns the command of the lead's pane.
func (b *Backend) leadArgv() []string {
	if len(b.opt.LeadArgv) == 0 {
		return []string{"cat", "/dev/null"} // an empty pane: it stays, dead
	}
	return append([]string{"/bin/sh", "-c", leadLoop, "sh"}, b.opt.LeadArgv...)
}

// leadLoop starts the program of the lead's pane again however it has ended. tmux cannot: it may
// lose the exit of a pane's program, and then runs no hook. The pause doubles up to a minute, and
// begins anew once the program has run for a minute. One that was killed leaves modes of the
// terminal behind, and its other screen.
const leadLoop = `pause=0
while :; do
	began=$(date +%s)
	"$@"
	code=$?
	if [ $(($(date +%s) - began)) -ge 60 ]; then pause=0; fi
	if [ $pause -eq 0 ]; then pause=1; else pause=$((pause * 2)); fi
	if [ $pause -gt 60 ]; then pause=60; fi
	stty sane 2>/dev/null
	printf '\033[?1049l\033[?1000l\033[?1002l\033[?1003l\033[?1004l\033[?1006l\033[?2004l\033[?25h\033[0m\r\n'
	echo "the screen has ended (exit $code): it starts again in $pause s"
	sleep $pause
done`

func (b *Backend) pin(socket, pid, session string) (*server, error) {
	n, err := strconv.Atoi(pid)
	if err != nil {
		return nil, fmt.Errorf("read tmux's pid %q: %w", pid, err)
	}
	id, err := proc.Identify(n)
	if err != nil {
		return nil, fmt.Errorf("identify the tmux server: %w", err)
	}
	s := b.adoptServer(socket, id, session)
	b.record(s)
	return s, nil
}

// CloseTeam ends the private server and restores what was set on other servers.
func (b *Backend) CloseTeam(ctx context.Context) error {
	b.place.Lock()
	defer b.place.Unlock()
	b.mu.Lock()
	servers := make([]*server, 0, len(b.servers))
	for _, s := range b.servers {
		servers = append(servers, s)
	}
	b.mu.Unlock()
	for _, s := range servers {
		if s.private {
			continue
		}
		if err := b.leave(ctx, s); err != nil && !errors.Is(err, errServerGone) {
			b.log.Warn("clean up the user's tmux server", "socket", s.socket, "err", err)
		}
	}
	defer cgroup.Sweep(b.opt.Layout.Key)
	return b.killPrivate(ctx)
}

// killPrivate asks the server on the team's own socket for its pid and ends
// exactly that process, verified.
func (b *Backend) killPrivate(ctx context.Context) error {
	socket := b.opt.Layout.TmuxSocket()
	b.mu.Lock()
	known := b.servers[socket]
	delete(b.servers, socket)
	b.mu.Unlock()
	var id backends.ProcID
	if known != nil {
		known.close()
		id = known.id
	} else if last, ok := b.living(socket); ok {
		id = last
	} else {
		if _, err := os.Lstat(socket); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		r := &execRunner{tmux: b.opt.Tmux, socket: socket}
		out, err := r.run(ctx, "display-message", "-p", "#{pid}")
		var ref *refused
		if errors.As(err, &ref) { // no server is listening
			return b.removePrivate()
		}
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(out))
		if err != nil {
			return fmt.Errorf("read tmux's pid %q: %w", out, err)
		}
		if id, err = proc.Identify(pid); err != nil {
			return b.removePrivate()
		}
	}
	r := &execRunner{tmux: b.opt.Tmux, socket: socket}
	if proc.Alive(id) {
		_ = (&server{socket: socket, id: id, private: true}).reach(ctx)
		_, _ = r.run(ctx, "kill-server") // also ends the sessions of attached clients properly
	}
	w, err := proc.Watch(id)
	if err != nil {
		return err
	}
	defer w.Close()
	t := time.NewTimer(3 * time.Second)
	defer t.Stop()
	select {
	case <-w.Done():
	case <-t.C:
		if _, err := proc.KillTree(ctx, []backends.ProcID{id}, "", time.Second); err != nil {
			return fmt.Errorf("end the team's tmux server: %w", err)
		}
	}
	return b.removePrivate()
}

func (b *Backend) removePrivate() error {
	socket := b.opt.Layout.TmuxSocket()
	for _, p := range []string{b.opt.Layout.TmuxServer(), socket, filepath.Join(filepath.Dir(socket), "tmux.conf")} {
		if err := os.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", p, err)
		}
	}
	return nil
}

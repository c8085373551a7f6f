package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/teamctl/teamctl/backends/pty"
	"github.com/teamctl/teamctl/backends/tmux"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newAttach(a *app) *cobra.Command {
	var cc, readOnly bool
	cmd := &cobra.Command{
		Use:   "attach [MEMBER]",
		Short: "Attach to a member's pane, or to the team's tmux session",
		Long: `Attach to the pane of a member, or without a name to the team's session, which has the
board. Ctrl-b d detaches, in tmux and in a separate terminal (--backend pty) alike;
the team keeps running. What you type in a pane goes to the agent. A board that has
exited is started again.

In iTerm2, --cc shows every member as a native split pane of its own: iTerm2
drives the team's tmux session by control mode (tmux -CC).`,
		Example: `  teamctl attach
  teamctl attach builder
  teamctl attach --cc`,
		Args:              takes(0, 1, "the name of one member"),
		ValidArgsFunction: first(a.completeMembers(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			pane, layout, err := a.attachTo(cmd.Context(), args)
			if err != nil {
				return err
			}
			if pane.Backend == pty.Name {
				if cc {
					return team.Errorf(team.CodeInvalid, "--cc needs tmux: this member has a terminal of its own").WithReason(team.ReasonNotInTmux)
				}
				return a.attachPTY(cmd.Context(), pane, readOnly)
			}
			argv, env, err := attachArgv(cmd.Context(), layout, pane)
			if err != nil {
				return err
			}
			if readOnly && len(argv) > 1 && slices.Contains(argv, "attach-session") {
				argv = slices.Insert(argv, slices.Index(argv, "attach-session")+1, "-r")
			}
			if cc {
				if os.Getenv("TMUX") != "" {
					return team.Errorf(team.CodeInvalid, "--cc does not work inside tmux").WithReason(team.ReasonInsideTmux).
						WithHint("run it in a plain iTerm2 tab")
				}
				argv = slices.Insert(argv, 1, "-CC")
			}
			if a.out.value(map[string]any{"argv": argv}) {
				return nil
			}
			if _, err := a.terminal(); err != nil && os.Getenv("TMUX") == "" {
				return err
			}
			path, err := exec.LookPath(argv[0])
			if err != nil {
				return team.Errorf(team.CodeUnavailable, "find %s: %w", argv[0], err).WithHint("teamctl doctor")
			}
			err = syscall.Exec(path, argv, env)
			return team.Errorf(team.CodeUnavailable, "run %s: %w", path, err)
		},
	}
	cmd.Flags().BoolVar(&cc, "cc", false, "drive iTerm2's native panes (tmux -CC)")
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "read-only: nothing that you type reaches the agent")
	return cmd
}

// terminal opens the person's terminal for reading and writing.
func (a *app) terminal() (*os.File, error) {
	in, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) || a.out.screen == nil {
		return nil, team.Errorf(team.CodeInvalid, "attach needs a terminal").WithReason(team.ReasonNoTerminal).
			WithHint("teamctl capture MEMBER prints its screen, teamctl logs MEMBER its output")
	}
	return in, nil
}

// attachPTY connects this terminal to a member's until the person detaches or the agent exits.
func (a *app) attachPTY(ctx context.Context, pane team.Pane, readOnly bool) error {
	if a.out.value(map[string]any{"socket": pane.Socket, "generation": pane.Generation}) {
		return nil
	}
	in, err := a.terminal()
	if err != nil {
		return err
	}
	cols, rows, err := term.GetSize(int(a.out.screen.Fd()))
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "size of the terminal: %w", err)
	}
	winch := make(chan os.Signal, 1)
	signal.Notify(winch, syscall.SIGWINCH)
	defer signal.Stop(winch)
	resized := make(chan struct{}, 1)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-winch:
				select {
				case resized <- struct{}{}:
				default:
				}
			case <-quit:
				return
			}
		}
	}()
	res, err := pty.Attach(ctx, pty.AttachIn{
		Socket: pane.Socket, Generation: pane.Generation, In: in, Out: a.out.screen,
		ReadOnly: readOnly, Cols: cols, Rows: rows, Winch: resized,
	})
	close(quit)
	<-done
	switch {
	case err != nil:
		return err
	case res.Detached:
		a.out.note("detached: it keeps running")
	case res.Exit != nil:
		a.out.note("it has ended: %s", supervisor.ExitText(*res.Exit))
	}
	return nil
}

// attachTo returns the pane of the named member, or of the first member that has one. The zero
// Pane means the team's session.
func (a *app) attachTo(ctx context.Context, args []string) (pane team.Pane, l team.Layout, err error) {
	err = a.withTeam(ctx, func(t *tool.Team, _ tool.Caller) error {
		l = t.Layout
		if err := memberNames(ctx, t, args); err != nil {
			return err
		}
		pane, err = attachPane(ctx, t, args)
		return err
	})
	return pane, l, err
}

// attachArgv returns the command that shows a pane.
func attachArgv(ctx context.Context, l team.Layout, pane team.Pane) (argv, env []string, err error) {
	exe, err := executable()
	if err != nil {
		return nil, nil, err
	}
	b := tmux.New(tmux.Options{Layout: l, LeadArgv: leadArgv(exe, l), LineArgv: lineArgv(exe, l)})
	argv, env, err = b.AttachArgv(ctx, pane, os.Environ())
	return argv, env, errors.Join(err, b.Close())
}

func attachPane(ctx context.Context, t *tool.Team, args []string) (team.Pane, error) {
	if len(args) == 1 {
		return t.Pane(ctx, args[0])
	}
	if _, err := os.Lstat(t.Layout.TmuxSocket()); err == nil {
		return team.Pane{}, nil // the private session, with the board
	}
	members, _, err := t.Members(ctx)
	if err != nil {
		return team.Pane{}, err
	}
	for _, m := range members {
		if m.Name == team.LeadName || m.PaneID == "" {
			continue
		}
		if p, err := t.Pane(ctx, m.Name); err == nil {
			return p, nil
		}
	}
	return team.Pane{}, team.Errorf(team.CodeConflict, "no member of team %q is running", t.Layout.Key).
		WithReason(team.ReasonNotRunning).WithHint("teamctl spawn builder --team " + t.Layout.Key)
}

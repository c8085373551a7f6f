package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/agent/models"
	"github.com/teamctl/teamctl/agent/program"
	"github.com/teamctl/teamctl/agent/specfile"
	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// app is what the commands share: global flags, output, and what they open. Nothing is opened
// before a command needs it.
type app struct {
	watch  team.Watcher // shared by the agents in one process; if nil, each team opens its own
	opener opener       // likewise
	out    *output
	stdin  io.Reader
	team   string   // --team
	as     string   // --as
	given  []string // the arguments of the command

	served bool // runs for a program of the person's, which may withhold variables

	past bool // set once a signal no longer interrupts the command: its result decides the exit status

	// interrupt takes what a person means by ctrl-c, and reports whether it did; nil: the
	// command ends.
	interrupt atomic.Pointer[func() bool]

	due time.Duration // interval of --watch without changes; 0: none
}

// opener is how ledgers are opened and written. Its zero value opens one for each team, and writes
// through the team's supervisor.
type opener struct {
	ledgers *ledger.Shared
	writer  func(l team.Layout, direct ledger.Writer) (ledger.Writer, tool.Settler)
}

// Groups of commands in the help, in order.
const (
	groupTeam   = "team"
	groupMember = "member"
	groupTask   = "task"
	groupTree   = "tree"
	groupTalk   = "talk"
	groupMore   = "more"
)

var rootLong = `Run a team of coding agents on this machine. Every member is a supervised
process in its own tmux pane, with its own git worktree and branch; the team shares
its tasks, and has one mailbox per member.

The verbs of every day are short: teamctl spawn is teamctl member spawn, and so on;
team, member, task and message are nouns with all of theirs. Without a verb, in a
terminal, teamctl opens the full screen: what waits for you, what runs, and the answer
to both.

A team is started by hand, verb by verb, or from a file (teamctl up). The supervisor
behind it starts and exits by itself; nothing is lost when it, a member or this
command is killed.`

var rootExample = `  teamctl create demo --repo .
  teamctl spawn builder -n 3
  teamctl task add "vet" --run 'go vet ./...'
  teamctl task add "test" --run 'go test ./...' --depends-on 1
  teamctl wait --progress
  teamctl shutdown && teamctl delete`

func (a *app) root(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:           "teamctl",
		Short:         "Run a team of coding agents on one machine",
		Long:          rootLong,
		Example:       rootExample,
		Args:          unknownVerb,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	asked := root.Flags().Bool("version", false, "print the version")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *asked {
			return newVersion(a).RunE(cmd, nil)
		}
		if a.opensScreen() {
			return a.screen(cmd.Context(), screenFlags{})
		}
		if a.atTerminal() {
			return a.welcome(cmd.Context())
		}
		return cmd.Help()
	}
	root.SetOut(a.out.stdout)
	root.SetErr(a.out.stderr)
	root.SetIn(a.stdin)
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().StringVar(&a.team, "team", "", "team to work on (default $TEAMCTL_TEAM, else the only team, else the one of the current directory)")
	a.outputFlags(root)
	a.complete(root, "team", a.completeTeams)
	a.asFlag(root)
	root.AddGroup(
		&cobra.Group{ID: groupTeam, Title: "Teams (also teamctl team VERB):"},
		&cobra.Group{ID: groupMember, Title: "Members (also teamctl member VERB):"},
		&cobra.Group{ID: groupTask, Title: "Tasks:"},
		&cobra.Group{ID: groupTree, Title: "Worktrees and merging:"},
		&cobra.Group{ID: groupTalk, Title: "Messages, approvals and notifications:"},
		&cobra.Group{ID: groupMore, Title: "Setting up, other programs, looking inside:"},
	)
	only := only(args)
	for _, g := range verbs {
		for _, v := range g.all {
			if only != "" && v.name != only {
				continue
			}
			c := v.make(a)
			c.GroupID = g.group
			root.AddCommand(c)
		}
	}
	if only == "" {
		a.addNouns(root, args)
	}
	root.CompletionOptions.DisableDefaultCmd = only != ""
	a.addWatch(root)
	root.SetHelpCommand(newHelp(a, root))
	a.helps(root)
	root.SetHelpCommandGroupID(groupMore)
	root.SetCompletionCommandGroupID(groupMore)
	root.InitDefaultCompletionCmd(args...)
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Short, c.Example = "Generate a completion script for a shell", "  teamctl completion bash\n  teamctl completion zsh"
			// without it, a shell that is not supported is not an error
			c.Args, c.RunE = unknownVerb, needsVerb
		}
	}
	return root
}

// run runs one command line and returns its exit status.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root(args)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = a.out.failure()
	}
	var sig signalError
	if err != nil && !a.past && errors.As(context.Cause(ctx), &sig) {
		if team.ReasonOf(err) == team.ReasonMembersEnded {
			a.out.error(err)
		} else { // caused by the interruption, or no longer relevant
			a.out.interrupted()
		}
		return 128 + int(sig.signal)
	}
	var status exitError
	if errors.As(err, &status) {
		return int(status)
	}
	if s := (*slip)(nil); errors.As(err, &s) {
		err = s.err.WithHint("did you mean: " + s.mended(args))
	}
	if err != nil && !errors.Is(err, errSaid) {
		a.out.error(withHelp(cmd, err))
	}
	return team.ExitStatus(err)
}

// signalError is the cause of a context cancelled by a signal.
type signalError struct{ signal syscall.Signal }

func (e signalError) Error() string { return "ended by " + e.signal.String() }

// insist is the minimum time between the first signal and a second one that counts as a person's
// insistence. Earlier ones are echoes: timeout(1) and shells signal both the process and its
// group.
const insist = time.Second

// signals cancels the context at SIGINT and SIGTERM, so that the command rolls back or completes.
// A second signal from a person ends the program at once.
func (a *app) signals(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ch := make(chan os.Signal, 8) // an interrupt may be at work while others come, and SIGTERM after them
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var first time.Time
		for {
			select {
			case s := <-ch:
				n, _ := s.(syscall.Signal) // always true on Unix
				if take := a.interrupt.Load(); n == syscall.SIGINT && take != nil && (*take)() {
					continue
				}
				if first.IsZero() {
					first = time.Now()
					cancel(signalError{n})
					continue
				}
				if time.Since(first) > insist {
					signal.Reset(s)
					_ = syscall.Kill(os.Getpid(), n) // end as if the signal had not been caught
				}
			case <-quit:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(ch)
		close(quit)
		<-done
		cancel(nil)
	}
}

// findHome returns the home directory after making sure that no other user can enter it or the
// directory of the sockets.
func findHome() (team.Home, error) {
	home, err := team.FindHome()
	if err != nil {
		return home, err
	}
	return home, tool.SecurePlaces(home)
}

// tools returns the environment of operations.
func (a *app) tools() (*tool.Env, error) {
	home, err := findHome()
	if err != nil {
		return nil, err
	}
	return a.toolsIn(home)
}

func (a *app) toolsIn(home team.Home) (*tool.Env, error) {
	exe, err := executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = "" // the directory was removed: it selects no team
	}
	writer := a.opener.writer
	if writer == nil {
		writer = control.Writer
	}
	return &tool.Env{Home: home, Dial: control.DialerFrom([]string{exe}, a.origin), Writer: writer, Ping: control.Ping, Watch: a.watch, Ledgers: a.opener.ledgers, Dir: dir,
		CheckModel: models.Check(home), Price: models.Price(home), CheckConfine: program.CheckConfine, Models: models.List(home),
		OwnSpecs:     func() ([]team.AgentSpec, []error) { return specfile.ReadAll(specfile.Dir(home)) },
		BrokenSkills: program.BrokenSkills(home),
		CheckAgent:   a.knownAgent,
	}, nil
}

// executable returns the path of this program, for starting it again.
func executable() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", team.Errorf(team.CodeUnavailable, "find the path of teamctl: %w", err)
	}
	return exe, nil
}

// key returns the team that the command works on.
func (a *app) key(ctx context.Context, env *tool.Env) (string, error) {
	return env.Resolve(ctx, a.team)
}

// open opens the team that the command works on and identifies the caller.
func (a *app) open(ctx context.Context) (*tool.Team, tool.Caller, error) {
	env, err := a.tools()
	if err != nil {
		return nil, tool.Caller{}, err
	}
	key, err := a.key(ctx, env)
	if err != nil {
		return nil, tool.Caller{}, err
	}
	t, err := env.Open(ctx, key)
	if err != nil {
		return nil, tool.Caller{}, err
	}
	c, err := a.caller(ctx, t)
	if err != nil {
		return nil, tool.Caller{}, errors.Join(err, t.Close())
	}
	return t, c, nil
}

// withTeam runs f on the open team and closes the team.
func (a *app) withTeam(ctx context.Context, f func(*tool.Team, tool.Caller) error) (err error) {
	t, c, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := t.Close(); err == nil {
			err = cerr
		}
	}()
	switch err := t.Awake(ctx); {
	case team.ReasonOf(err) == team.ReasonHung:
		return err
	case err != nil: // the command may work without a team
		a.out.note("members should run, and no supervisor is up yet: %v", err)
	}
	err = a.suggestTask(ctx, t, f(t, c))
	if err == nil && t.Elsewhere != nil {
		a.out.note("%s", t.Elsewhere)
		a.out.hint("%s", team.HintOf(t.Elsewhere))
	}
	return err
}

// place returns where the person is.
func place() team.Place {
	return team.Place{TMUX: os.Getenv("TMUX"), TMUXPane: os.Getenv("TMUX_PANE")}
}

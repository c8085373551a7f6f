package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/teamctl/teamctl/agent"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/dirwatch"
	runner "github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/worktree"
)

func newWorker(a *app) *cobra.Command { return newWorkerAt(a, nil) }

// newWorkerAt is the worker at a workplace; nil is this process.
func newWorkerAt(a *app, at *workplace) *cobra.Command {
	return builtInCommand("worker", "The built-in agent (started by the supervisor)", func(ctx context.Context, id agent.Identity) error {
		if at == nil {
			at = &workplace{environ: os.Environ()}
		}
		return a.work(ctx, id, *at)
	})
}

// builtInCommand returns the command of a built-in agent. It calls run with the identity that its
// flags give.
func builtInCommand(use, short string, run func(context.Context, agent.Identity) error) *cobra.Command {
	var (
		id     agent.Identity
		mode   string
		bypass bool
	)
	cmd := &cobra.Command{
		Use:    use,
		Short:  short,
		Hidden: true,
		Args:   takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := completeIdentity(cmd, &id, mode, bypass); err != nil {
				return err
			}
			return run(cmd.Context(), id)
		},
	}
	identityFlags(cmd.Flags(), &id, &mode, &bypass)
	return cmd
}

// identityFlags defines the flags by which a launch passes an identity to a built-in agent.
func identityFlags(f *pflag.FlagSet, id *agent.Identity, mode *string, bypass *bool) {
	f.StringVar(&id.AgentID, "agent-id", "", "name@team")
	f.StringVar(&id.Name, "agent-name", "", "name")
	f.StringVar(&id.Team, "team-name", "", "team")
	f.StringVar(&id.Color, "agent-color", "", "colour")
	f.StringVar(&id.ParentSession, "parent-session-id", "", "session of the lead")
	f.BoolVar(&id.PlanModeRequired, "plan-mode-required", false, "a plan must be approved first")
	f.StringVar(&id.AgentType, "agent-type", "", "agent type")
	f.StringVar(&id.Model, "model", "", "model")
	f.StringVar(mode, "permission-mode", "", "permission mode")
	f.BoolVar(bypass, "dangerously-skip-permissions", false, "permission mode bypassPermissions")
}

// completeIdentity checks what the flags gave and fills in what follows from it.
func completeIdentity(cmd *cobra.Command, id *agent.Identity, mode string, bypass bool) error {
	var err error
	if id.Mode, err = team.ParseMode(mode); err != nil {
		return err
	}
	if bypass {
		id.Mode = team.ModeBypass
	}
	if id.AgentID == "" && id.Name != "" && id.Team != "" {
		id.AgentID = team.AgentID(id.Name, id.Team)
	}
	name, key, ok := team.ParseAgentID(id.AgentID)
	if !ok {
		return usage(cmd, "--agent-id takes NAME@TEAM, not %q", id.AgentID)
	}
	if id.Name == "" {
		id.Name = name
	}
	if id.Team == "" {
		id.Team = key
	}
	return nil
}

// workplace is where a worker runs: a process of its own, or a goroutine of the supervisor.
type workplace struct {
	dir     string // empty: the working directory
	environ []string
	out     io.Writer // nil: the output of the command
}

// getenv is os.Getenv for the workplace.
func (p workplace) getenv(key string) string {
	for _, kv := range slices.Backward(p.environ) {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return ""
}

// station has what a built-in agent uses of its team.
type station struct {
	team   *tool.Team
	caller tool.Caller
	member ledger.Member
	env    agent.Env
	watch  *inbox.Watcher
}

func (s *station) close() error { return errors.Join(s.watch.Close(), s.team.Close()) }

// enter opens the team for the agent that id names, and completes id.
func (a *app) enter(ctx context.Context, id *agent.Identity, at workplace) (_ *station, err error) {
	env, err := a.tools()
	if err != nil {
		return nil, err
	}
	if at.out == nil {
		at.out = a.out.stdout
	}
	if env.Watch == nil { // otherwise it is the supervisor's, which logs errors
		env.Watch = &dirwatch.Hub{Degraded: degraded(at.out)}
	}
	if env.Ledgers == nil { // for the operations of this agent
		env.Ledgers = new(ledger.Shared)
	}
	t, err := env.Open(ctx, id.Team)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	c, err := t.Identify(ctx, id.AgentID, at.getenv(team.EnvToken))
	if err != nil {
		return nil, err
	}
	m, err := t.Ledger.MemberBySession(ctx, c.Session)
	if err != nil {
		return nil, err
	}
	id.Session, id.Role = m.SessionKey, m.Role
	box, err := inbox.Open(t.Layout.Inboxes(), t.Layout.Locks(), m.Name)
	if err != nil {
		return nil, err
	}
	dir := at.dir
	if dir == "" {
		if dir, err = os.Getwd(); err != nil {
			return nil, team.Errorf(team.CodeUnavailable, "find the working directory: %w", err)
		}
	}
	watch, err := inbox.WatchBy(ctx, t.Watch, t.Layout.Inboxes())
	if err != nil {
		return nil, err
	}
	return &station{team: t, caller: c, member: m, watch: watch, env: agent.Env{
		Ledger: t.Ledger.As(m.Name), Tasks: t.WorkOf(c), Box: box, Post: t.PostAs(c), Mail: watch.Changes(m.Name),
		Dir: dir, Out: at.out, Environ: at.environ, Commands: runner.BookOf(t.Layout), Ready: readiness(t.Layout.Bundle(m.Name), m.Name, at),
	}}, nil
}

// work runs the worker at its workplace.
func (a *app) work(ctx context.Context, id agent.Identity, at workplace) (err error) {
	s, err := a.enter(ctx, &id, at)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := s.close(); err == nil {
			err = cerr
		}
	}()
	done, err := s.enterWorktree(ctx)
	if err != nil {
		return err
	}
	defer done()
	return agent.Run(ctx, id, s.env)
}

// enterWorktree gives the agent its worktree, if it has one; done is called when the
// agent has ended.
func (s *station) enterWorktree(ctx context.Context) (done func(), err error) {
	t, m := s.team, s.member
	if m.Worktree == "" {
		return func() {}, nil
	}
	repo, tree, err := worktree.OpenWorktree(ctx, m.Worktree)
	if err != nil {
		return nil, err
	}
	ws := workspace{repo: repo, path: tree.Path, name: m.Name, id: m.AgentID}
	s.env.Workspace, s.env.Dir = ws, tree.Path
	if m.Spec.WorktreeMode != "own" {
		return repo.Wait, nil
	}
	// A kill of an earlier life of this agent may have interrupted git.
	notes, err := repo.Recover(ctx, tree.Path, t.Layout.Key, m.Name)
	for _, n := range notes {
		_, _ = fmt.Fprintf(s.env.Out, "%s: %s\n", m.AgentID, n)
	}
	if err != nil {
		repo.Wait()
		return nil, err
	}
	s.env.Workspace = ownWorkspace{workspace: ws, team: t, member: m}
	return repo.Wait, nil
}

// degraded reports in a worker's log that no events wake it, and when they do again.
func degraded(out io.Writer) func(error) {
	return func(reason error) {
		if reason == nil {
			_, _ = fmt.Fprintln(out, "watching for changes again")
			return
		}
		_, _ = fmt.Fprintf(out, "cannot watch for changes (%v): looking once a second\nhint: %s\n", reason, dirwatch.Advice)
	}
}

// readiness reports to the supervisor once that the worker takes messages. It does not wait for a
// supervisor: the next one finds the report in the bundle.
func readiness(b team.Bundle, name string, at workplace) func() {
	socket, gen := at.getenv(team.EnvNotify), at.getenv(team.EnvGen)
	if socket == "" {
		return nil
	}
	return sync.OnceFunc(func() {
		if err := bundle.SayReady(b, socket, name, gen); err != nil {
			_, _ = fmt.Fprintf(at.out, "%s: ready, and the next supervisor cannot know: %v\n", name, err)
		}
	})
}

// workspace is a member's worktree as the worker wants it.
type workspace struct {
	repo *worktree.Repo
	path string
	name string
	id   string
}

// ownWorkspace is a worktree that teamctl made for the member.
type ownWorkspace struct {
	workspace
	team   *tool.Team
	member ledger.Member
}

// Checkpoint is agent.Checkpointer.
func (w ownWorkspace) Checkpoint(ctx context.Context, why string) error {
	return w.team.SaveTree(ctx, w.member, why)
}

// Merge saves the state first, as does every step that may go wrong.
func (w ownWorkspace) Merge(ctx context.Context, commits []string, message string) error {
	_, err := w.repo.MergeSaving(ctx, w.path, commits, message, w.team.Layout.Key, w.name)
	return err
}

// Merge is agent.Workspace.
func (w workspace) Merge(ctx context.Context, commits []string, message string) error {
	_, err := w.repo.Merge(ctx, w.path, commits, message)
	return err
}

// Commit is agent.Workspace.
func (w workspace) Commit(ctx context.Context, message string) (string, []string, bool, error) {
	return w.repo.Commit(ctx, w.path, worktree.CommitIn{Message: message, AuthorName: w.name, AuthorEmail: w.id})
}

// Since is program.History.
func (w workspace) Since(ctx context.Context, from string) ([]string, error) {
	return w.repo.Since(ctx, w.path, from)
}

// Head is agent.Workspace.
func (w workspace) Head(ctx context.Context) (string, error) {
	return w.repo.HeadOf(ctx, w.path)
}

package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/teamfile"
)

const defaultFile = tool.DefaultFile

func newUp(a *app) *cobra.Command {
	var in tool.UpIn
	cmd := &cobra.Command{
		Use:   "up [-f FILE]",
		Short: "Start a whole team from a file",
		Long: `Create the team, the tasks and the members that a file describes. The file is checked
first; a mistake is reported with line and column and changes nothing. If a member of
a new team cannot be started the team is deleted again.

On an existing team, up applies additions and changes of the file: members and tasks
are added, stopped members start, a changed member is shut down and restarted in its
worktree with its new settings, a pending task is changed. What is no longer in the
file stays, unless --remove is given. --dry-run only shows the difference. The next up
completes a killed one.

  team: demo
  repo: .
  members:
    - {name: worker, count: 3}
  tasks:
    - {id: vet,  subject: vet the code, run: go vet ./...}
    - {id: test, subject: run the tests, run: go test ./..., dependsOn: [vet]}

The commands of a file in a repository run only after a person has consented to
exactly these: up shows them and asks, or uses --agree without a terminal. A file that
others own or can write to is refused.

Editors check the file with docs/teamctl.schema.json.`,
		Example: `  teamctl up
  teamctl up -f team.yaml && teamctl wait --progress
  teamctl up --dry-run
  teamctl down`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.up(cmd.Context(), in)
		},
	}
	cmd.Flags().StringVarP(&in.File, "file", "f", defaultFile, "team file")
	cmd.Flags().BoolVar(&in.DryRun, "dry-run", false, "show what would be changed, and change nothing")
	cmd.Flags().BoolVar(&in.Remove, "remove", false, "also remove members and pending tasks of an earlier up that the file no longer has")
	cmd.Flags().BoolVar(&in.Agree, "agree", false, "consent to all commands of a file in a repository: of members, tasks, setup and hooks")
	cmd.Flags().BoolVar(&in.AllowSetup, "allow-setup", false, "allow the file's setup commands although it is in the repository")
	cmd.Flags().BoolVar(&in.Bypass, "dangerously-skip-permissions", false, "allow the file's members in mode bypassPermissions, which skips all permission prompts")
	cmd.Flags().BoolVar(&in.AllowHooks, "allow-hooks", false, "allow the file's hooks although it is in the repository")
	cmd.Flags().BoolVar(&in.AllowPermissions, "allow-permissions", false, "apply the file's allow rules although it is in the repository")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json")
	return cmd
}

// up brings the team of a file up, and tells what was done.
func (a *app) up(ctx context.Context, in tool.UpIn) error {
	env, err := a.tools()
	if err != nil {
		return err
	}
	at := place()
	in.Team, in.TMUX, in.TMUXPane = a.team, at.TMUX, at.TMUXPane
	c := a.outsider()
	if a.atTerminal() && c.Person {
		in.Consent = func(repo string, commands []string) bool { return a.consents(in.File, repo, "commands", commands) }
	}
	in.Started = func(t *tool.Team) (end func()) { return a.checkouts(ctx, t) }
	out, err := env.Up(ctx, c, in)
	for _, w := range out.Waiting {
		a.out.note("%s", w.Text)
		for _, what := range w.What {
			a.out.note("  %s", plain.Visible(what))
		}
		if w.Hint != "" {
			a.out.hint("%s", w.Hint)
		}
	}
	if out.Undone != nil {
		a.rescued(*out.Undone, a.out.note)
	}
	if err != nil {
		return err
	}
	a.upped(out)
	if !a.out.json && !in.DryRun {
		a.spawned(&tool.Team{Layout: env.Home.Team(out.Team.TeamName)}, out.Members)
	}
	return nil
}

// upped reports what was changed, or would be.
func (a *app) upped(out tool.UpOut) {
	if a.out.value(out) {
		return
	}
	if out.Created {
		a.out.line("team %s is up: %d members, %d tasks", out.Team.TeamName, len(out.Members), len(out.Tasks))
		return
	}
	sign := map[string]string{tool.ChangeAdd: "+", tool.ChangeChange: "~", tool.ChangeStart: ">", tool.ChangeRemove: "-"}
	done := 0
	for _, c := range out.Changes {
		line := sign[c.Op] + " " + c.What + " " + c.Name
		if len(c.Fields) > 0 {
			line += ": " + strings.Join(c.Fields, ", ")
		}
		if c.Op == tool.ChangeStart {
			line += ": start"
		}
		if c.Skipped != "" {
			line += " (not done: " + c.Skipped + ")"
		} else {
			done++
		}
		a.out.line("%s", printable(line))
	}
	switch {
	case out.DryRun && done == 0:
		a.out.line("nothing would be changed")
	case out.DryRun:
		a.out.line("%d changes would be made", done)
	case done == 0:
		a.out.line("team %s is up already, as the file says", out.Team.TeamName)
	default:
		a.out.line("team %s is up: %d changes made", out.Team.TeamName, done)
	}
}

func newDown(a *app) *cobra.Command {
	var (
		file  string
		force bool
		wait  time.Duration
	)
	cmd := &cobra.Command{
		Use:   "down [-f FILE | --team NAME]",
		Short: "Shut a team down and delete it",
		Long: `Shut down every member of the team and delete the team, like shutdown and delete. The
team is the one of --team, else of the file (teamctl.yaml in the current directory),
else the only one. With --force members are not asked, and unsaved work is saved as a
snapshot.`,
		Example: `  teamctl down
  teamctl down --team demo --force`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if a.team == "" {
				f, err := teamfile.Read(file)
				switch {
				case err == nil:
					a.team = f.Team
				case !team.IsCode(err, team.CodeNotFound) || cmd.Flags().Changed("file"):
					return err
				}
			}
			env, key, c, err := a.target(ctx)
			if err != nil {
				return a.deletedBefore(err)
			}
			if !force {
				if err := a.shutdownAll(ctx, env, key, c, wait); err != nil {
					return err
				}
			}
			return a.remove(ctx, env, key, c, force)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", defaultFile, "team file")
	cmd.Flags().BoolVar(&force, "force", false, "do not ask members, and save unsaved work as a snapshot")
	cmd.Flags().DurationVar(&wait, "wait", 10*time.Second, "how long to wait for a member's answer and exit")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json")
	return cmd
}

func (a *app) shutdownAll(ctx context.Context, env *tool.Env, key string, c tool.Caller, wait time.Duration) (err error) {
	t, err := env.Open(ctx, key)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := t.Close(); err == nil {
			err = cerr
		}
	}()
	members, err := t.Ledger.Members(ctx, false)
	if err != nil || len(members) <= 1 {
		return err
	}
	stopped, err := t.Stop(ctx, c, team.StopRequest{Wait: wait, Reason: "the team is taken down"})
	if !a.out.json {
		a.stopped(stopped)
	}
	if err != nil {
		return err
	}
	return notStopped(stopped)
}

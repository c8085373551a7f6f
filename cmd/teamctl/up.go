package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/trees"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/teamfile"
	"github.com/teamctl/teamctl/worktree"
)

const defaultFile = "teamctl.yaml"

func newUp(a *app) *cobra.Command {
	var from source
	cmd := &cobra.Command{
		Use:   "up [-f FILE]",
		Short: "Start a whole team from a file",
		Long: `Create the team, the tasks and the members that a file describes. The file is
checked first; a mistake in it is told with line and column and changes nothing.
If a member of a new team cannot be started the team is taken down again.

On a team that exists, up makes what the file has more or has changed: members and
tasks are added, stopped members start, a changed member is shut down and comes back to
its worktree with its new settings, a pending task is changed. What is no longer in the
file stays, unless --remove is given. --dry-run shows the difference only. An up that
was killed is completed by the next one.

  team: demo
  repo: .
  members:
    - {name: worker, count: 3}
  tasks:
    - {id: vet,  subject: vet the code, run: go vet ./...}
    - {id: test, subject: run the tests, run: go test ./..., dependsOn: [vet]}

The commands of a file that lies in a repository run only once a person has agreed to
exactly these: up shows them and asks, or takes --agree where there is no terminal. A
file that somebody else owns or can write to is refused.

Editors check the file with docs/teamctl.schema.json.`,
		Example: `  teamctl up                     # teamctl.yaml here
  teamctl up -f team.yaml && teamctl wait --progress
  teamctl up --dry-run           # what the file would change
  teamctl down`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.up(cmd.Context(), from)
		},
	}
	cmd.Flags().StringVarP(&from.file, "file", "f", defaultFile, "team file")
	cmd.Flags().BoolVar(&from.dry, "dry-run", false, "show what would be changed, and change nothing")
	cmd.Flags().BoolVar(&from.remove, "remove", false, "also remove members and pending tasks that an earlier up made and the file no longer has")
	cmd.Flags().BoolVar(&from.agreed, "agree", false, "agree to all commands of the file although it lies in a repository: of members, tasks, setup and hooks")
	cmd.Flags().BoolVar(&from.allow, "allow-setup", false, "allow the file's setup commands although it lies in the repository")
	cmd.Flags().BoolVar(&from.bypass, "dangerously-skip-permissions", false, "allow the file's members in the mode bypassPermissions, which asks nobody")
	cmd.Flags().BoolVar(&from.hooks, "allow-hooks", false, "allow the file's hooks although it lies in the repository")
	cmd.Flags().BoolVar(&from.permissions, "allow-permissions", false, "let hold what the file's permissions allow although it lies in the repository")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json")
	return cmd
}

// upOut is the result of up.
type upOut struct {
	Team    tool.TeamCreateOut `json:"team"`
	Tasks   []string           `json:"tasks"`   // new ones
	Members []tool.Spawned     `json:"members"` // new ones
	Changes []tool.Change      `json:"changes"` // what differed from the file
	DryRun  bool               `json:"dryRun,omitempty"`
	Outcome string             `json:"outcome,omitempty"` // already_up: nothing differed
}

func (a *app) up(ctx context.Context, from source) (err error) {
	file := from.file
	f, err := teamfile.Read(file)
	if err != nil {
		return err
	}
	if a.team != "" {
		f.Team = a.team
	}
	for _, m := range f.Members {
		if m.Mode == team.ModeBypass && !from.bypass {
			return team.Errorf(team.CodeDenied, "%s of %s would skip all permission prompts: its mode is %s", m.Name, file, m.Mode).
				WithReason(team.ReasonBypass).WithHint("teamctl up -f " + file + " --dangerously-skip-permissions, if you mean it")
		}
		if m.Agent == "" {
			continue
		}
		if err := a.knownAgent(m.Agent); err != nil {
			return err
		}
	}
	tasks, err := teamfile.NewTasks(f.Tasks)
	if err != nil {
		return err
	}
	env, err := a.tools()
	if err != nil {
		return err
	}
	c := a.outsider()
	in := tool.TeamCreateIn{TeamName: f.Team, Description: f.Description, Base: f.Base}
	if f.Repo != "" {
		in.Repo = f.Repo
		if !filepath.IsAbs(in.Repo) {
			in.Repo = filepath.Join(filepath.Dir(file), in.Repo)
		}
	}
	for name, path := range f.Repos {
		if in.Repos == nil {
			in.Repos = map[string]string{}
		}
		if in.Repos[name], err = besides(file, path); err != nil {
			return err
		}
	}
	if in.WorktreeDir, err = besides(file, f.Worktrees.Root); err != nil {
		return err
	}
	out := upOut{Tasks: []string{}, Members: []tool.Spawned{}, Changes: []tool.Change{}, DryRun: from.dry}
	d, err := declared(f, from, tasks)
	if err != nil {
		return err
	}
	key, err := team.TeamKey(f.Team)
	if err != nil {
		return err
	}
	if from.dry {
		if t, err := env.Open(ctx, key); err == nil {
			out.Team = tool.TeamCreateOut{TeamName: key}
			diff, err := t.Compare(ctx, d, from.remove)
			if err = errors.Join(err, t.Close()); err != nil {
				return err
			}
			out.Changes = append(out.Changes, diff.Changes...)
		} else if !team.IsCode(err, team.CodeNotFound) {
			return err
		} else {
			out.Changes = append(append(out.Changes, tool.Change{Op: tool.ChangeAdd, What: "team", Name: key}), d.All()...)
		}
		a.upped(out, false)
		return nil
	}
	if from.agreed, err = a.agreeUp(ctx, env, c, f, from); err != nil {
		return err
	}
	made, err := env.TeamCreate(ctx, c, in)
	fresh := err == nil
	if team.ReasonOf(err) == "team_exists" {
		made, err = there(ctx, env, key, in, file)
	}
	if err != nil {
		return err
	}
	out.Team = made
	if err := a.fill(ctx, env, c, f, from, d, &out); err != nil {
		if !fresh {
			return err
		}
		a.takeBack(ctx, env, c, made.TeamName)
		if team.ReasonOf(err) == team.ReasonSetup { // its log went with the team
			err = team.Errorf(team.CodeOf(err), "%w", err).WithReason(team.ReasonSetup).
				WithHint("try the command in a checkout of the repository, then teamctl up -f " + file)
		}
		return err
	}
	if !fresh && !slices.ContainsFunc(out.Changes, func(c tool.Change) bool { return c.Skipped == "" }) {
		out.Outcome = "already_up"
	}
	a.upped(out, fresh)
	if !a.out.json {
		a.spawned(&tool.Team{Layout: env.Home.Team(made.TeamName)}, out.Members)
	}
	return nil
}

// agreeUp asks for the consent to the commands of a team file. Setup commands and hooks
// alone need none to come up: they are left out until they are allowed.
func (a *app) agreeUp(ctx context.Context, env *tool.Env, c tool.Caller, f *teamfile.File, from source) (bool, error) {
	commands, later := f.Commands()
	if len(commands) == 0 {
		return from.agreed, nil
	}
	again := "teamctl up"
	if from.file != defaultFile {
		again += " -f " + team.ShellQuote(from.file)
	}
	return a.agree(ctx, env, c, from.file, append(commands, later...), from.agreed, again)
}

// upped reports what was changed, or would be.
func (a *app) upped(out upOut, fresh bool) {
	if a.out.value(out) {
		return
	}
	if fresh {
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

// there is the team that exists already. Its repository is the file's, or it is another
// team that happens to have the name.
func there(ctx context.Context, env *tool.Env, key string, in tool.TeamCreateIn, file string) (made tool.TeamCreateOut, err error) {
	t, err := env.Open(ctx, key)
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return made, err
	}
	repo := ""
	if in.Repo != "" {
		r, err := worktree.OpenRepo(ctx, in.Repo)
		if err != nil {
			return made, err
		}
		repo = r.Root()
	}
	if repo != row.Repo {
		return made, team.Errorf(team.CodeConflict, "there is a team %s already, which works on %s and not on %s", key, dash(row.Repo), dash(repo)).
			WithReason(team.ReasonTeamExists).WithHint("teamctl up -f " + file + " --team NAME")
	}
	more, err := trees.RepositoriesOf(ctx, t.Ledger)
	return tool.TeamCreateOut{TeamName: key, TeamFilePath: t.Layout.Config(), LeadAgentID: team.AgentID(team.LeadName, key), Repo: row.Repo, Base: row.Base, Repos: more}, err
}

// declared returns the content of the file, each member with a name of its own.
func declared(f *teamfile.File, from source, tasks []ledger.NewTask) (d tool.Declared, err error) {
	d.Tasks = tasks
	at := place()
	for _, m := range f.Members {
		in := m.Spawn
		in.Bypass = from.bypass && m.Mode == team.ModeBypass
		in.Origin = team.Origin{TMUX: at.TMUX, TMUXPane: at.TMUXPane}
		if in.Declared, err = m.Entry(); err != nil {
			return d, err
		}
		if in.Cwd, err = besides(from.file, in.Cwd); err != nil {
			return d, err
		}
		in.Writable = slices.Clone(in.Writable)
		for i, path := range in.Writable {
			if in.Writable[i], err = besides(from.file, path); err != nil {
				return d, err
			}
		}
		if !slices.Contains([]string{"", "own", "none"}, in.WorktreeMode) {
			if in.WorktreeMode, err = besides(from.file, in.WorktreeMode); err != nil {
				return d, err
			}
		}
		for _, name := range m.Names() {
			in.Name, in.Count, in.Exact = name, 1, true
			d.Members = append(d.Members, in)
		}
	}
	for _, e := range f.Edges {
		d.Edges = append(d.Edges, team.Edge{From: e.From, Type: e.Type, To: e.To})
	}
	return d, nil
}

// fill makes the team match the file.
func (a *app) fill(ctx context.Context, env *tool.Env, c tool.Caller, f *teamfile.File, from source, d tool.Declared, out *upOut) (err error) {
	t, err := env.Open(ctx, out.Team.TeamName)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := t.Close(); err == nil {
			err = cerr
		}
	}()
	lock, err := t.UpLock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	if err := a.furnish(ctx, t, c, f, from, out.Team); err != nil {
		return err
	}
	if err := a.rules(ctx, t, c, f, from, out.Team); err != nil {
		return err
	}
	if err := a.permissions(ctx, t, c, f, from, out.Team); err != nil {
		return err
	}
	if err := budgets(ctx, t, c, f); err != nil {
		return err
	}
	if err := t.SetServers(ctx, c, f.MCP); err != nil {
		return err
	}
	defer a.checkouts(ctx, t)()
	for try := 0; ; try++ {
		diff, err := t.Compare(ctx, d, from.remove)
		if err != nil {
			return err
		}
		if try == 0 {
			out.Changes = append(out.Changes, diff.Changes...)
		}
		applied, err := t.Apply(ctx, c, diff)
		out.Tasks, out.Members = append(out.Tasks, applied.Tasks...), append(out.Members, applied.Members...)
		// The last request of an up that was killed may be carried out only now.
		if team.ReasonOf(err) != team.ReasonNameTaken || try == 3 {
			return err
		}
	}
}

// budgets sets those of the file, before anybody starts.
func budgets(ctx context.Context, t *tool.Team, c tool.Caller, f *teamfile.File) error {
	b := team.Budgets{Team: f.Budget, Members: map[string]team.Budget{}, Resume: f.OnLimit == teamfile.OnLimitResume}
	for _, m := range f.Members {
		for _, name := range m.Names() {
			if !m.Budget.None() {
				b.Members[name] = m.Budget
			}
		}
	}
	if b.Team.None() && len(b.Members) == 0 && !b.Resume {
		return nil
	}
	return t.SetBudgets(ctx, c, b)
}

// takeBack deletes a team that did not come up whole. Its members had seconds at
// most; what they wrote is saved all the same, as delete --force does.
func (a *app) takeBack(ctx context.Context, env *tool.Env, c tool.Caller, key string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	res, err := env.Delete(ctx, c, key, tool.DeleteIn{Force: true})
	a.rescued(res, a.out.note)
	if err != nil {
		a.out.note("could not take team %s back: %v", key, err)
		a.out.hint("teamctl delete %s --force", key)
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
		Long: `Shut down every member of the team and delete the team, as shutdown and delete
do. The team is the one of --team, else of the file (teamctl.yaml here), else the
only one. With --force nobody is asked, and unsaved work is saved as a snapshot.`,
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
				return err
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
	cmd.Flags().BoolVar(&force, "force", false, "ask nobody, and save unsaved work as a snapshot")
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

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
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
If a member cannot be started the team is taken down again.

  team: demo
  repo: .
  members:
    - {name: worker, count: 3}
  tasks:
    - {id: vet,  subject: vet the code, run: go vet ./...}
    - {id: test, subject: run the tests, run: go test ./..., dependsOn: [vet]}

Editors check the file with docs/teamctl.schema.json.`,
		Example: `  teamctl up                     # teamctl.yaml here
  teamctl up -f team.yaml && teamctl wait --progress
  teamctl down`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.up(cmd.Context(), from)
		},
	}
	cmd.Flags().StringVarP(&from.file, "file", "f", defaultFile, "team file")
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
	Tasks   []string           `json:"tasks"`
	Members []tool.Spawned     `json:"members"`
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
			return team.Errorf(team.CodeDenied, "%s of %s would ask nobody: its mode is %s", m.Name, file, m.Mode).
				WithReason(tool.ReasonBypass).WithHint("teamctl up -f " + file + " --dangerously-skip-permissions, if you mean it")
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
	made, err := env.TeamCreate(ctx, c, in)
	if err != nil {
		if team.ReasonOf(err) == "team_exists" {
			return team.Errorf(team.CodeConflict, "team %q is up already", f.Team).WithReason("team_exists").
				WithHint("teamctl down -f " + file + ", or teamctl task add -f FILE for more tasks")
		}
		return err
	}
	out := upOut{Team: made, Tasks: []string{}, Members: []tool.Spawned{}}
	if err := a.fill(ctx, env, c, f, from, tasks, &out); err != nil {
		a.takeBack(ctx, env, c, made.TeamName)
		if team.ReasonOf(err) == worktree.ReasonSetup { // its log went with the team
			err = team.Errorf(team.CodeOf(err), "%w", err).WithReason(worktree.ReasonSetup).
				WithHint("try the command in a checkout of the repository, then teamctl up -f " + file)
		}
		return err
	}
	if a.out.value(out) {
		return nil
	}
	a.out.line("team %s is up: %d members, %d tasks", made.TeamName, len(out.Members), len(out.Tasks))
	a.spawned(&tool.Team{Layout: env.Home.Team(made.TeamName)}, out.Members)
	return nil
}

// fill puts tasks and members into the new team, the tasks first: a worker that
// comes up finds them.
func (a *app) fill(ctx context.Context, env *tool.Env, c tool.Caller, f *teamfile.File, from source, tasks []ledger.NewTask, out *upOut) (err error) {
	t, err := env.Open(ctx, out.Team.TeamName)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := t.Close(); err == nil {
			err = cerr
		}
	}()
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
	if len(tasks) > 0 {
		added, err := t.TaskAdd(ctx, c, tool.TaskAddIn{Tasks: tasks})
		if err != nil {
			return err
		}
		for _, task := range added {
			out.Tasks = append(out.Tasks, task.ID)
		}
	}
	defer a.checkouts(ctx, t)()
	var list []tool.SpawnIn
	for _, m := range f.Members {
		in := spawnIn(m)
		in.Bypass = from.bypass && m.Mode == team.ModeBypass
		list = append(list, in)
	}
	spawned, err := t.SpawnAll(ctx, c, list)
	if err != nil {
		return err
	}
	out.Members = append(out.Members, spawned...)
	for _, e := range f.Edges {
		if _, _, err := t.EdgeAdd(ctx, c, team.Edge{From: e.From, Type: e.Type, To: e.To}); err != nil {
			return err
		}
	}
	return nil
}

// budgets sets those of the file, before anybody starts.
func budgets(ctx context.Context, t *tool.Team, c tool.Caller, f *teamfile.File) error {
	b := supervisor.Budgets{Team: f.Budget, Members: map[string]team.Budget{}, Resume: f.OnLimit == teamfile.OnLimitResume}
	for _, m := range f.Members {
		for i := range max(1, m.Count) {
			name := m.Name
			if i > 0 {
				name = fmt.Sprintf("%s-%d", m.Name, i+1)
			}
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

// spawnIn is a member of a file as spawn takes it.
func spawnIn(m teamfile.Member) tool.SpawnIn {
	layout := backends.Layout(m.Layout)
	if m.Layout == "auto" {
		layout = backends.LayoutAuto
	}
	return tool.SpawnIn{
		Name: m.Name, Agent: m.Agent, Command: m.Command, Backend: m.Backend, Layout: layout,
		Prompt: m.Prompt, AgentType: m.Type, Model: m.Model, Mode: string(m.Mode), Role: string(m.Role),
		Restart: string(m.Restart), Env: m.Env, Repo: m.Repo, Worktree: m.Worktree, Branch: m.Branch, Count: max(1, m.Count), Place: place(layout),
		Limits: m.Limits,
	}
}

// takeBack deletes a team that did not come up whole. Its members had seconds at
// most; what they wrote is saved all the same, as delete --force does.
func (a *app) takeBack(ctx context.Context, env *tool.Env, c tool.Caller, key string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	res, err := env.Delete(ctx, c, key, true)
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
	stopped, err := t.Stop(ctx, c, supervisor.StopIn{Wait: wait, Reason: "the team is taken down"})
	if !a.out.json {
		a.stopped(stopped)
	}
	if err != nil {
		return err
	}
	return notStopped(stopped)
}

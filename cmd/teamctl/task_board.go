package main

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Commands for the lead: which tasks the board has, and who gets them.

func newTaskUpdate(a *app) *cobra.Command {
	var (
		text     = map[string]*string{"subject": nil, "description": nil, "active-form": nil, "verify": nil}
		status   string
		priority int
		meta     []string
		depends  []string
		run      string
	)
	cmd := &cobra.Command{
		Use:     "edit ID",
		Aliases: []string{"update"},
		Short:   "Edit a task: text, command, dependencies, priority",
		Long: `Edit a task. Only the given fields change. --depends-on 1,2 replaces the dependencies,
+3 adds one and -4 removes one; an empty list removes all. --meta KEY=null deletes a
key of the metadata. --status works like the commands: in_progress claims and starts,
completed completes, pending releases the task.`,
		Example: `  teamctl task edit 3 --subject "vet everything" --priority 5
  teamctl task edit 3 --run 'go vet ./...' --meta area=cli --meta owner=null
  teamctl task edit 3 --depends-on +1,-2`,
		Args:              takes(1, 1, "the id of a task"),
		ValidArgsFunction: first(a.completeTasks(ledger.TaskFilter{OpenOnly: true})),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := tool.TaskUpdateIn{TaskID: taskID(args[0])}
			set := false
			for name, to := range map[string]**string{
				"subject": &in.Subject, "description": &in.Description, "active-form": &in.ActiveForm, "verify": &in.Verify,
			} {
				if cmd.Flags().Changed(name) {
					*to, set = text[name], true
				}
			}
			if cmd.Flags().Changed("priority") {
				in.Priority, set = &priority, true
			}
			if status != "" {
				s, err := team.ParseTaskStatus(status)
				if err != nil {
					return err
				}
				in.Status, set = &s, true
			}
			var err error
			if in.Metadata, err = metadata(cmd, meta, run); err != nil {
				return err
			}
			if !set && len(in.Metadata) == 0 && !cmd.Flags().Changed("depends-on") {
				return usage(cmd, "no change given").WithHint("teamctl task edit " + in.TaskID + " --subject 'what is to be done'")
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				if cmd.Flags().Changed("depends-on") {
					now, err := t.Ledger.Task(cmd.Context(), in.TaskID)
					if err != nil {
						return err
					}
					if in.AddDependsOn, in.RemoveDependsOn, err = dependencies(cmd, now.DependsOn, depends); err != nil {
						return err
					}
				}
				task, err := t.TaskUpdate(cmd.Context(), c, in)
				if err != nil {
					return err
				}
				if !a.out.value(task) {
					a.out.line("updated %s: %s", task.ID, view.Clean(task.Subject))
					if task.Verification != 0 {
						a.out.line("%s is being verified: %s", task.ID, view.Clean(task.Verify))
					}
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	for name, what := range map[string]string{
		"subject": "the new subject", "description": "what is to be done",
		"active-form": "text to show while it is in progress", "verify": "command that must pass before it counts as completed; empty for none",
	} {
		text[name] = f.String(name, "", what)
	}
	f.IntVar(&priority, "priority", 0, "higher first")
	f.StringVar(&status, "status", "", "pending, claimed, in_progress, completed or failed")
	f.StringArrayVar(&meta, "meta", nil, "KEY=VALUE for the metadata, KEY=null deletes; may be repeated")
	f.StringVar(&run, "run", "", "command that a worker runs with bash")
	f.StringSliceVar(&depends, "depends-on", nil, "ids of tasks that must be completed first: 1,2, or +3 and -4")
	a.complete(cmd, "status", words("pending", "in_progress", "completed", "failed"))
	a.complete(cmd, "depends-on", a.completeTasks(ledger.TaskFilter{OpenOnly: true}))
	return cmd
}

// dependencies computes which dependencies --depends-on adds and removes.
func dependencies(cmd *cobra.Command, now, given []string) (add, drop []string, err error) {
	var exactly []string
	changes := 0
	for _, g := range given {
		g = strings.TrimSpace(g)
		switch id := taskID(strings.TrimLeft(g, "+-")); {
		case g == "":
		case g[0] == '+':
			add, changes = append(add, id), changes+1
		case g[0] == '-':
			drop, changes = append(drop, id), changes+1
		default:
			exactly = append(exactly, id)
		}
	}
	if changes > 0 && len(exactly) > 0 {
		return nil, nil, usage(cmd, "--depends-on takes ids, or changes as +3 and -4, not both").
			WithHint("teamctl task edit --depends-on +" + strings.Join(exactly, ",+"))
	}
	if changes > 0 {
		return add, drop, nil
	}
	for _, id := range exactly {
		if !slices.Contains(now, id) {
			add = append(add, id)
		}
	}
	for _, id := range now {
		if !slices.Contains(exactly, id) {
			drop = append(drop, id)
		}
	}
	return add, drop, nil
}

func newTaskAssign(a *app) *cobra.Command {
	var nobody bool
	cmd := &cobra.Command{
		Use:   "assign ID MEMBER | assign ID --nobody",
		Short: "Assign a task to a member instead of its owner",
		Long: `Assign a task that is not done to a member, which is notified and the only one that
can claim it. A member working on it loses it: its reports about it are refused. With
--nobody any ready member may claim it.`,
		Example: `  teamctl task assign 3 builder-2
  teamctl task assign 3 --nobody`,
		Args: func(cmd *cobra.Command, args []string) error {
			if nobody {
				return takes(1, 1, "the id of a task")(cmd, args)
			}
			return takes(2, 2, "the id of a task and the name of a member")(cmd, args)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return a.completeMembers(false)(cmd, nil, part)
			}
			return first(a.completeTasks(ledger.TaskFilter{OpenOnly: true}))(cmd, args, part)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				member := ""
				if !nobody {
					member = args[1]
				}
				task, err := t.TaskAssign(cmd.Context(), c, taskID(args[0]), member)
				if err != nil {
					return err
				}
				if a.out.value(task) {
					return nil
				}
				a.out.line("%s is for %s: %s", task.ID, cmp.Or(task.OwnerName, "any ready member"), view.Clean(task.Subject))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&nobody, "nobody", false, "let any ready member take it")
	return cmd
}

func newTaskAuto(a *app) *cobra.Command {
	var member string
	cmd := &cobra.Command{
		Use:   "auto [on|off]",
		Short: "Show or switch automatic claiming of tasks",
		Long: `Show or set whether members claim the next ready task by themselves. An idle foreign
agent is offered one, and claims it or not. If off, members work only on tasks
assigned to them. --member sets it for one member; without it, it is set for all, and
settings of single members are removed.`,
		Example: `  teamctl task auto off
  teamctl task auto on --member builder
  teamctl task auto`,
		Args:              takes(0, 1, "on or off"),
		ValidArgsFunction: first(words("on", "off")),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] != "on" && args[0] != "off" {
				return usage(cmd, "expected on or off, not %q", args[0])
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				if len(args) == 1 {
					if err := t.TaskAuto(cmd.Context(), c, member, args[0] == "on"); err != nil {
						return err
					}
				}
				auto, err := t.Ledger.AutoClaim(cmd.Context())
				if err != nil {
					return err
				}
				members, err := t.Ledger.Members(cmd.Context(), false)
				if err != nil {
					return err
				}
				on := map[string]bool{}
				for _, m := range members {
					if m.Name != team.LeadName && (member == "" || m.Name == member) {
						on[m.Name] = auto.On(m.Name)
					}
				}
				if a.out.value(map[string]any{"autoClaim": !auto.Off, "members": on}) {
					return nil
				}
				a.out.line("%-16s %s", "team", onOff(!auto.Off))
				for _, m := range members {
					if v, ok := on[m.Name]; ok {
						a.out.line("%-16s %s", m.Name, onOff(v))
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&member, "member", "", "only for this member")
	a.complete(cmd, "member", a.completeMembers(false))
	return cmd
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func newTaskExport(a *app) *cobra.Command {
	var file, dir string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Export all tasks, as JSON or as task files",
		Long: `Write every task with its state, result and dependencies: as one JSON document to
standard output or --file, or as one file per task (<id>.json and .highwatermark),
the format that other clients keep their boards in.`,
		Example: `  teamctl task export > board.json
  teamctl task export --dir ~/.claude/tasks/demo`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file != "" && dir != "" {
				return usage(cmd, "--file and --dir do not go together")
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				dump, err := t.TaskExport(cmd.Context())
				if err != nil {
					return err
				}
				switch {
				case dir != "":
					if err := tool.WriteTaskDir(cmd.Context(), dir, dump); err != nil {
						return err
					}
				case file != "":
					data, err := json.MarshalIndent(dump, "", "  ")
					if err != nil {
						return err
					}
					if err := tool.WriteFile(file, append(data, '\n')); err != nil {
						return err
					}
				default:
					a.out.encode(dump, "  ")
					return nil
				}
				if !a.out.value(map[string]any{"tasks": len(dump.Tasks), "highwatermark": dump.HighWater}) {
					a.out.line("%d tasks", len(dump.Tasks))
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "write the document to this file")
	cmd.Flags().StringVar(&dir, "dir", "", "write one file per task into this directory")
	_ = cmd.MarkFlagFilename("file", "json")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

func newTaskImport(a *app) *cobra.Command {
	var renumber bool
	cmd := &cobra.Command{
		Use:   "import PATH",
		Short: "Import exported tasks, or a directory of task files",
		Long: `Import all tasks of a file written by "teamctl task export" (- is standard input) or
of a directory with one file per task, or none of them. They keep their ids, which
must be higher than every id assigned here so far; --renumber assigns new ones. A task
that was in progress is pending again, and assigned to its owner if a member has that
name.`,
		Example: `  teamctl task import board.json
  teamctl task import ~/.claude/tasks/demo --renumber`,
		Args: takes(1, 1, "a file or a directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dump, err := a.readDump(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				got, err := t.TaskImport(cmd.Context(), c, dump, renumber)
				if err != nil {
					return err
				}
				if a.out.value(got) {
					return nil
				}
				for _, task := range dump.Tasks {
					a.out.line("%s", got.IDs[task.ID])
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&renumber, "renumber", false, "assign new ids to the tasks")
	return cmd
}

// maxDump is the maximum size of a document, in bytes.
const maxDump = 64 << 20

func (a *app) readDump(ctx context.Context, path string) (d tool.TaskDump, err error) {
	if fi, err := os.Stat(path); err == nil && fi.IsDir() {
		return tool.ReadTaskDir(ctx, path)
	}
	in := a.stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return d, team.Errorf(team.CodeNotFound, "read tasks: %w", err)
		}
		defer f.Close()
		in = f
	}
	if err := json.NewDecoder(io.LimitReader(in, maxDump)).Decode(&d); err != nil {
		return d, team.Errorf(team.CodeInvalid, "read tasks of %s: %w", path, err)
	}
	return d, nil
}

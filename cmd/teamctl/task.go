package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/look"
	"github.com/teamctl/teamctl/tool/teamfile"
)

func newTask(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "task VERB",
		Short: "Manage tasks: add, ls, show, edit, cancel and more",
		Long: `Manage the tasks of the team. A task is pending until a member claims it; a claim is
exclusive and held by a lease: as long as the member's process is alive, or, for the
lead and programs that have joined, until two minutes after their last call about the
task. A task whose dependencies are not completed cannot be claimed.`,
		Example: `  teamctl task add "vet" --run 'go vet ./...'
  teamctl task ls --open
  teamctl task show 1`,
		Args: unknownVerb,
		RunE: needsVerb,
	}
	for _, m := range []func(*app) *cobra.Command{newTaskAdd, newTaskLs, newTaskShow, newTaskClaim, newTaskComplete,
		newTaskFail, newTaskRelease, newTaskRetry, newTaskCancel, newTaskHistory,
		newTaskUpdate, newTaskAssign, newTaskRm, newTaskAuto, newTaskExport, newTaskImport} {
		cmd.AddCommand(m(a))
	}
	return cmd
}

func newTaskAdd(a *app) *cobra.Command {
	var (
		file, run string
		agreed    bool
		commands  []string // of the file
		depends   []string
		meta      []string
		t         ledger.NewTask
		backoff   time.Duration
	)
	cmd := &cobra.Command{
		Use:   "add SUBJECT | add -f FILE",
		Short: "Add tasks and print their ids",
		Long: `Add a task to the board, or all tasks of a file at once. --run is the command that a
worker runs with bash in its worktree. --verify is a command that must pass before the
task counts as completed, whoever completes it: it runs in the owner's worktree, and
if it fails the owner continues. Only a person or the lead may set it. A worker that
claims a task first merges the commits of its dependencies.

A file is a list of tasks with the keys id, subject, description, run, dependsOn,
verify, priority and metadata (YAML or JSON). dependsOn may name ids of the file and
numbers of tasks on the board. Either all of them are added or none. The commands of a
file in a repository need a person's consent, like those of a team file (teamctl up
--help).`,
		Example: `  teamctl task add "vet" --run 'go vet ./...'
  teamctl task add "test" --run 'go test ./...' --depends-on 1 --priority 5
  teamctl task add "docs" --description "describe the new flag" --meta area=cli
  teamctl task add -f tasks.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case file != "" && len(args) > 0:
				return usage(cmd, "a subject and -f do not go together")
			case file == "":
				return takes(1, 1, "one subject, in quotes, or -f FILE")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var tasks []ledger.NewTask
			if file != "" {
				for _, f := range []string{"run", "description", "depends-on", "priority", "verify", "meta", "active-form", "retries", "retry-backoff"} {
					if cmd.Flags().Changed(f) {
						return usage(cmd, "--%s and -f do not go together: the file has it", f)
					}
				}
				list, err := readTasks(file, a.stdin)
				if err != nil {
					return err
				}
				if tasks, err = teamfile.NewTasks(list); err != nil {
					return err
				}
				commands = teamfile.TaskCommands(list)
			} else {
				t.Subject, t.RetryBackoff = args[0], backoff.Milliseconds()
				for _, d := range depends {
					if d = strings.TrimPrefix(strings.TrimSpace(d), "#"); d != "" {
						t.DependsOn = append(t.DependsOn, d)
					}
				}
				var err error
				if t.Metadata, err = metadata(cmd, meta, run); err != nil {
					return err
				}
				tasks = []ledger.NewTask{t}
			}
			return a.withTeam(cmd.Context(), func(tm *tool.Team, c tool.Caller) error {
				if file != "" && file != "-" && c.Person { // members may give any command
					if _, err := a.agree(cmd.Context(), tm.Env, c, file, commands, agreed, "teamctl task add -f "+team.ShellQuote(file)); err != nil {
						return err
					}
				}
				added, err := tm.TaskAdd(cmd.Context(), c, tool.TaskAddIn{Tasks: tasks})
				if err != nil {
					return err
				}
				if a.out.value(map[string]any{"tasks": added}) {
					return nil
				}
				for _, t := range added {
					a.out.line("%s", t.ID)
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVarP(&file, "file", "f", "", "add all tasks of a file; - is standard input")
	f.BoolVar(&agreed, "agree", false, "consent to the commands of a file in a repository")
	f.StringVar(&run, "run", "", "command that a worker runs with bash")
	f.StringVar(&t.Description, "description", "", "what is to be done")
	f.StringVar(&t.ActiveForm, "active-form", "", "text to show while it is in progress")
	f.StringSliceVar(&depends, "depends-on", nil, "ids of tasks that must be completed first: 1,2")
	f.IntVar(&t.Priority, "priority", 0, "higher first")
	f.StringVar(&t.Verify, "verify", "", "command that must pass before it counts as completed")
	f.IntVar(&t.MaxRetries, "retries", 0, "number of automatic retries after a failure")
	f.DurationVar(&backoff, "retry-backoff", 0, "wait before the first retry, doubled for each further one (default 1s)")
	f.StringArrayVar(&meta, "meta", nil, "KEY=VALUE for the metadata; JSON values are taken as such; may be repeated")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json")
	a.complete(cmd, "depends-on", a.completeTasks(ledger.TaskFilter{Newest: true}))
	return cmd
}

func readTasks(file string, stdin io.Reader) ([]teamfile.Task, error) {
	if file != "-" {
		return teamfile.ReadTasks(file)
	}
	data, err := io.ReadAll(stdin)
	if err != nil {
		return nil, team.Errorf(team.CodeInvalid, "read standard input: %w", err)
	}
	return teamfile.ParseTasks("stdin", data)
}

// metadata returns the JSON object of --meta and --run.
func metadata(cmd *cobra.Command, meta []string, run string) (json.RawMessage, error) {
	kv, err := pairs(cmd, "meta", meta)
	if err != nil || len(kv) == 0 && run == "" {
		return nil, err
	}
	m := make(map[string]any, len(kv)+1)
	for k, v := range kv {
		m[k] = v
		if json.Valid([]byte(v)) {
			m[k] = json.RawMessage(v)
		}
	}
	if run != "" {
		m["run"] = run
	}
	return json.Marshal(m)
}

func newTaskLs(a *app) *cobra.Command {
	var (
		f      ledger.TaskFilter
		status string
		owner  string
		table  bool
	)
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List tasks",
		Example: `  teamctl task ls
  teamctl task ls --open
  teamctl task ls --status failed --json
  teamctl task ls --metadata area=api
  teamctl task ls --table`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if status != "" {
				s, err := team.ParseTaskStatus(status)
				if err != nil {
					return err
				}
				f.Status = s
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				if owner != "" {
					m, err := t.Member(cmd.Context(), owner)
					if err != nil {
						return err
					}
					f.Owner = m.SessionKey
				}
				tasks, err := t.Ledger.Tasks(cmd.Context(), f)
				if err != nil {
					return err
				}
				counts, err := t.Ledger.Counts(cmd.Context())
				if err != nil {
					return err
				}
				if tasks == nil {
					tasks = []ledger.Task{}
				}
				if a.out.value(map[string]any{"tasks": tasks, "counts": counts}) {
					return nil
				}
				if len(tasks) == 0 {
					a.out.note("no tasks")
					return nil
				}
				if table {
					a.taskTable(tasks)
				} else {
					a.taskList(tasks)
				}
				return nil
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&status, "status", "", "pending, claimed, in_progress, completed or failed")
	fl.StringVar(&owner, "owner", "", "tasks of this member")
	fl.BoolVar(&f.OpenOnly, "open", false, "neither completed nor failed")
	fl.StringToStringVar(&f.Metadata, "metadata", nil, "tasks that have this in their metadata, as KEY=VALUE")
	fl.BoolVar(&f.Newest, "newest", false, "newest first")
	fl.IntVar(&f.Limit, "limit", 0, "at most so many (default all)")
	fl.BoolVar(&table, "table", false, "owner, duration, result and commit of each task")
	var states []string
	for _, s := range team.TaskStatuses() {
		states = append(states, string(s))
	}
	a.complete(cmd, "status", words(states...))
	a.complete(cmd, "owner", a.completeMembers(true))
	return cmd
}

func (a *app) taskList(tasks []ledger.Task) {
	var rows [][]string
	for _, t := range tasks {
		note := ""
		switch {
		case t.Status == team.TaskPending && len(t.BlockedBy) > 0:
			note = "depends on " + strings.Join(t.BlockedBy, ", ")
		case t.Status == team.TaskFailed && t.Result != nil:
			note = look.Failure(*t.Result)
		default:
			note = look.HandedIn(t)
		}
		rows = append(rows, []string{t.ID, a.status(t.Status), view.Cut(view.Clean(t.Subject), 60), dash(t.OwnerName), took(t), dash(note)})
	}
	a.out.table([]string{"ID", "STATUS", "SUBJECT", "OWNER", "TIME", "NOTE"}, rows, false)
}

func (a *app) taskTable(tasks []ledger.Task) {
	var rows [][]string
	for _, t := range tasks {
		result, commit := "", ""
		if t.Result != nil {
			result, commit = t.Result.Summary, t.Result.Commit
			if t.Status == team.TaskFailed {
				result = look.Failure(*t.Result)
			}
		}
		result = cmp.Or(result, look.HandedIn(t))
		text := a.status(t.Status)
		if result = view.Cut(view.Clean(result), 60); result != "" {
			text += ": " + result
		}
		rows = append(rows, []string{t.ID, view.Cut(view.Clean(t.Subject), 48), dash(t.OwnerName), took(t), text, dash(short(commit))})
	}
	a.out.table([]string{"ID", "SUBJECT", "OWNER", "DURATION", "RESULT", "COMMIT"}, rows, false)
}

func (a *app) status(s team.TaskStatus) string {
	switch s {
	case team.TaskCompleted:
		return a.out.style.Green(string(s))
	case team.TaskFailed:
		return a.out.style.Red(string(s))
	case team.TaskInProgress, team.TaskClaimed:
		return a.out.style.Cyan(string(s))
	case team.TaskPending:
	}
	return string(s)
}

// took is how long a task has been in progress, or was.
func took(t ledger.Task) string {
	v := look.Task(t, false)
	if v.Began.IsZero() {
		return "-"
	}
	if v.Ended.IsZero() {
		return view.Elapsed(v.Took(time.Now()))
	}
	return view.Duration(v.Took(time.Now()))
}

// short abbreviates a commit for people.
func short(commit string) string {
	if len(commit) > 10 {
		return commit[:10]
	}
	return commit
}

func newTaskShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "show ID",
		Short:             "Show all details of a task",
		Example:           "  teamctl task show 3\n  teamctl task show 3 --json",
		Args:              takes(1, 1, "the id of a task"),
		ValidArgsFunction: first(a.completeTasks(ledger.TaskFilter{Newest: true})),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(tm *tool.Team, c tool.Caller) error {
				t, err := tm.Ledger.Task(cmd.Context(), taskID(args[0]))
				if err != nil {
					return err
				}
				tm.Used(cmd.Context(), c, t)
				if a.out.value(t) {
					return nil
				}
				a.showTask(t)
				return nil
			})
		},
	}
}

func (a *app) showTask(t ledger.Task) {
	put := func(name, value string) {
		if value != "" {
			a.out.line("%-12s %s", name, value)
		}
	}
	block := func(name, value string) {
		if value = plain.Text(value); strings.TrimSpace(value) != "" {
			a.out.line("%s\n  %s", name, strings.ReplaceAll(strings.TrimRight(value, "\n"), "\n", "\n  "))
		}
	}
	put("task", t.ID)
	put("subject", view.Clean(t.Subject))
	put("status", a.status(t.Status))
	put("owner", t.OwnerName)
	if t.Verification != 0 {
		put("verifying", t.Verify)
	}
	if t.Review != 0 {
		put("review", fmt.Sprintf("waits for approval %d", t.Review))
	}
	put("depends on", strings.Join(t.DependsOn, ", "))
	put("incomplete", strings.Join(t.BlockedBy, ", ")) // a subset of the dependencies
	if t.Priority != 0 {
		put("priority", strconv.Itoa(t.Priority))
	}
	put("created", when(t.CreatedAt))
	put("claimed", when(t.ClaimedAt))
	put("ended", when(t.CompletedAt))
	if t.Attempt > 0 {
		put("attempt", strconv.Itoa(t.Attempt))
		put("time", took(t))
	}
	if r := t.Result; r != nil {
		put("result", view.Clean(r.Summary))
		put("commit", r.Commit)
		put("files", view.Clean(strings.Join(r.Files, ", ")))
		if r.ExitCode != 0 {
			put("exit status", strconv.Itoa(r.ExitCode))
		}
	}
	block("description", t.Description)
	verify := "verify"
	switch {
	case t.Verify != "" && t.VerifyBy == "":
		verify += " (by a built-in worker only: it is not known who gave it)"
	case t.Verify != "":
		verify += " (given by " + t.VerifyBy + ")"
	}
	block(verify, t.Verify)
	a.showMetadata(t.Metadata, block)
	if t.Result != nil {
		block("error", t.Result.Error)
	}
}

// showMetadata shows strings as text, and other values as JSON.
func (a *app) showMetadata(raw json.RawMessage, block func(name, value string)) {
	var meta map[string]json.RawMessage
	if json.Unmarshal(raw, &meta) != nil {
		block("metadata", string(raw))
		return
	}
	for _, k := range slices.Sorted(maps.Keys(meta)) {
		var text string
		if json.Unmarshal(meta[k], &text) != nil {
			text = string(meta[k])
		}
		block(view.Clean(k), text)
	}
}

func when(ms int64) string {
	if ms == 0 {
		return ""
	}
	return fmt.Sprintf("%s (%s ago)", time.UnixMilli(ms).Format("2006-01-02 15:04:05"), age(ms))
}

// taskID accepts #3 for 3.
func taskID(s string) string { return strings.TrimPrefix(strings.TrimSpace(s), "#") }

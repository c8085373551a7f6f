package teamfile

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/teamctl/teamctl/team"
)

// Commands lists what a team of the file would run, one line each: the position in the file, and
// the command. It includes the members' environments, which influence their commands. started are
// those that run when the team comes up: of the members, the MCP servers and the tasks; later are
// those of worktrees and hooks, which need separate consents.
func (f *File) Commands() (started, later []string) {
	for _, m := range f.Members {
		where := "member " + m.Name + ": "
		for _, k := range slices.Sorted(maps.Keys(m.Env)) {
			started = append(started, where+k+"="+m.Env[k])
		}
		if len(m.Command) > 0 {
			started = append(started, where+team.ShellLine(m.Command))
		}
	}
	started = append(started, f.MCP.commands()...)
	started = append(started, TaskCommands(f.Tasks)...)
	worktrees := func(where string, w Furnishing) {
		for _, run := range w.Setup {
			later = append(later, where+" setup: "+run)
		}
		for _, run := range w.Teardown {
			later = append(later, where+" teardown: "+run)
		}
	}
	worktrees("worktrees", f.Worktrees.Furnishing)
	for _, name := range slices.Sorted(maps.Keys(f.Worktrees.Repos)) {
		worktrees("worktrees of "+name, f.Worktrees.Repos[name])
	}
	for _, command := range f.Hooks.Commands() {
		later = append(later, "hook "+command)
	}
	return started, later
}

// TaskCommands lists what the workers of the tasks would run, as Commands does.
func TaskCommands(tasks []Task) (out []string) {
	for _, t := range tasks {
		where := "task " + t.ID
		if t.ID == "" {
			where = "task " + t.Subject
		}
		run := t.Run
		if v, ok := t.Metadata["run"]; ok && run == "" {
			if text, plain := v.(string); plain {
				run = text
			} else {
				data, _ := json.Marshal(v) // it was read from a file
				run = string(data)
			}
		}
		if run != "" {
			out = append(out, where+" run: "+run)
		}
		if t.Verify != "" {
			out = append(out, where+" verify: "+t.Verify)
		}
	}
	return out
}

package teamfile

import (
	"encoding/json"
	"maps"

	"github.com/teamctl/teamctl/internal/hooks"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// File is teamctl.yaml.
type File struct {
	Team        string           `json:"team" jsonschema:"name of the team"`
	Description string           `json:"description,omitempty" jsonschema:"what the team is for"`
	Repo        string           `json:"repo,omitempty" jsonschema:"git repository to work on, relative to this file; without it members get no worktrees"`
	Repos       Repos            `json:"repos,omitempty"`
	Base        string           `json:"base,omitempty" jsonschema:"revision that the members' branches start from, default HEAD"`
	Worktrees   Worktrees        `json:"worktrees,omitempty"`
	Hooks       hooks.Set        `json:"hooks,omitempty"`
	Permissions team.Permissions `json:"permissions,omitzero"`
	Budget      team.Budget      `json:"budget,omitzero"`
	OnLimit     OnLimit          `json:"onLimit,omitempty"`
	Confine     bool             `json:"confine,omitempty" jsonschema:"confine all members of agent llm, which then can write in their worktrees only"`
	Writable    []string         `json:"writable,omitempty" jsonschema:"further files and directories for all confined members, relative to this file"`
	MCP         Servers          `json:"mcp,omitempty"`
	Members     []Member         `json:"members,omitempty" jsonschema:"teammates to spawn"`
	Edges       []Edge           `json:"edges,omitempty" jsonschema:"who works with whom, and how; they grant nothing"`
	Tasks       []Task           `json:"tasks,omitempty" jsonschema:"tasks to put on the board"`
}

// Member is one entry of members: what "teamctl spawn" takes.
type Member struct {
	Name     string             `json:"name" jsonschema:"name of the teammate; with count, the further ones get -2, -3"`
	Agent    string             `json:"agent,omitempty" jsonschema:"kind of agent, default worker, or command when a command is given"`
	Command  Command            `json:"command,omitempty"`
	Backend  string             `json:"backend,omitempty" jsonschema:"where it runs, default auto"`
	Count    int                `json:"count,omitempty" jsonschema:"how many of them, default 1"`
	Prompt   string             `json:"prompt,omitempty" jsonschema:"first message to the agent"`
	Role     team.Role          `json:"role,omitempty"`
	Restart  team.RestartPolicy `json:"restart,omitempty"`
	Env      map[string]string  `json:"env,omitempty" jsonschema:"environment variables for the agent"`
	Repo     string             `json:"repo,omitempty" jsonschema:"name of one of repos to work on, default the team's repo"`
	Branch   string             `json:"branch,omitempty" jsonschema:"existing branch to work on, default a new one"`
	Worktree string             `json:"worktree,omitempty" jsonschema:"own (default), none, or the path of a directory to work in"`
	Model    string             `json:"model,omitempty" jsonschema:"model for agents that have one"`
	Type     string             `json:"type,omitempty" jsonschema:"agent type handed to the agent"`
	Mode     team.Mode          `json:"mode,omitempty"`
	Layout   Layout             `json:"layout,omitempty"`
	Limits   team.Limits        `json:"limits,omitzero"`
	Budget   team.Budget        `json:"budget,omitzero"`
	Asks     bool               `json:"asks,omitempty" jsonschema:"it answers shutdown requests: ask it before it is ended, even if it has read no mail"`
	MCP      team.Servers       `json:"mcp,omitempty"`
	Confine  *bool              `json:"confine,omitempty" jsonschema:"for agent llm: what its tools start can write in its worktree, the git directory and a temporary directory only; default that of the team"`
	Writable []string           `json:"writable,omitempty" jsonschema:"with confine: further files and directories, relative to this file"`
}

// Repos are further repositories of the team: path, relative to the file, by name.
type Repos map[string]string

// Command is an argv. In the file it may also be one string, which bash runs.
type Command []string

// Layout is where a terminal backend puts a teammate: auto, split, window or session.
type Layout string

var layouts = []string{"auto", "split", "window", "session"}

// Task is one entry of tasks. Run is short for metadata.run.
type Task struct {
	ID          string         `json:"id,omitempty"`
	Subject     string         `json:"subject" jsonschema:"one line that names the task"`
	Description string         `json:"description,omitempty" jsonschema:"what is to be done"`
	Run         string         `json:"run,omitempty" jsonschema:"command that a worker runs with bash in its worktree"`
	DependsOn   []string       `json:"dependsOn,omitempty"`
	Verify      string         `json:"verify,omitempty" jsonschema:"command that must pass before the task counts as completed, whoever does it"`
	Priority    int            `json:"priority,omitempty" jsonschema:"higher first, default 0"`
	Metadata    map[string]any `json:"metadata,omitempty" jsonschema:"further facts for the agent that does it"`
}

// New is the task as the ledger takes it: its id becomes the reference of the
// batch, run goes into the metadata.
func (t Task) New() (ledger.NewTask, error) {
	n := ledger.NewTask{
		Ref: t.ID, Subject: t.Subject, Description: t.Description,
		DependsOn: t.DependsOn, Priority: t.Priority, Verify: t.Verify,
	}
	meta := maps.Clone(t.Metadata)
	if t.Run != "" {
		if meta == nil {
			meta = map[string]any{}
		}
		meta["run"] = t.Run
	}
	if meta == nil {
		return n, nil
	}
	raw, err := json.Marshal(meta)
	if err != nil {
		return n, team.Errorf(team.CodeInvalid, "metadata of task %q: %w", t.Subject, err)
	}
	n.Metadata = raw
	return n, nil
}

// NewTasks converts a list of tasks for the ledger, in order.
func NewTasks(tasks []Task) ([]ledger.NewTask, error) {
	out := make([]ledger.NewTask, 0, len(tasks))
	for _, t := range tasks {
		n, err := t.New()
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

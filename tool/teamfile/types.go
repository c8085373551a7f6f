package teamfile

import (
	"encoding/json"
	"maps"
	"reflect"

	"github.com/teamctl/teamctl/internal/hooks"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// File is the content of teamctl.yaml.
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
	Lanes       Lanes            `json:"lanes,omitempty"`
	Model       string           `json:"model,omitempty" jsonschema:"provider/model for members of agent llm that have none of their own or of their agent"`
	Agents      []team.AgentSpec `json:"agents,omitempty" jsonschema:"agents for members of agent llm, with the fields of agent.toml"`
	MCP         Servers          `json:"mcp,omitempty"`
	Members     []Member         `json:"members,omitempty" jsonschema:"teammates to spawn"`
	Edges       []Edge           `json:"edges,omitempty" jsonschema:"who works with whom, and how; they grant nothing"`
	Tasks       []Task           `json:"tasks,omitempty" jsonschema:"tasks to put on the board"`
}

// Member is one entry of members, with the fields of teamctl spawn.
type Member struct {
	team.Spawn
	Budget team.Budget `json:"budget,omitzero" yaml:"budget"`
}

// Names returns the names of the entry's members.
func (m Member) Names() []string {
	names := make([]string, max(1, m.Count))
	for i := range names {
		names[i] = numbered(m.Name, i)
	}
	return names
}

// Entry returns the entry as JSON with the keys of the file, without its count and its budget: a
// change of this restarts its members.
func (m Member) Entry() (json.RawMessage, error) {
	m.Count = 0
	entry := map[string]json.RawMessage{}
	v := reflect.ValueOf(m.Spawn)
	for _, f := range team.DoorFields(v.Type(), "yaml") {
		if x := v.FieldByIndex(f.Index); f.Name != "-" && !x.IsZero() {
			b, err := json.Marshal(x.Interface())
			if err != nil {
				return nil, team.Errorf(team.CodeInvalid, "member %s: %w", m.Name, err)
			}
			entry[f.Name] = b
		}
	}
	return json.Marshal(entry)
}

// Repos are further repositories of the team by name: paths relative to the file.
type Repos map[string]string

// layoutAuto is the file's value for PaneAuto.
const layoutAuto = "auto"

var layouts = []string{layoutAuto, string(team.PaneSplit), string(team.PaneWindow), string(team.PaneSession)}

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

// New converts the task for the ledger: its id becomes the reference in the batch, run goes into
// the metadata.
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

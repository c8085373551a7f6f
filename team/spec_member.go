package team

import (
	"encoding/json"
	"reflect"
	"strings"
)

// MemberSpec says what a member is and how it is started: every door takes it, the
// ledger keeps it, and a launch is planned from it. The tags name each field at each
// door: json in the ledger and in what is printed, call in the operations (where it
// differs from json), yaml in the team file; "-" is a field that the door does not set.
type MemberSpec struct {
	Agent        string            `json:"agent" yaml:"agent" jsonschema:"Kind of agent to start: worker (the built-in one, the default), command (the default with a command), or another that teamctl agents lists."`
	Command      []string          `json:"command,omitempty" yaml:"command" jsonschema:"Program and arguments, for a member that is any command."`
	Backend      string            `json:"backend" yaml:"backend" jsonschema:"Where it runs: auto (default), tmux, pty or in-process."`
	Layout       PaneLayout        `json:"layout,omitempty" yaml:"layout" jsonschema:"Where tmux shows it: split, window or session; the default splits the window of a caller inside tmux."`
	Prompt       string            `json:"prompt,omitempty" yaml:"prompt" jsonschema:"First message to the agent."`
	AgentType    string            `json:"agentType,omitempty" call:"agent_type" yaml:"type" jsonschema:"Type handed to the agent, for example reviewer."`
	Model        string            `json:"model,omitempty" yaml:"model" jsonschema:"Model, for agents that have one."`
	Mode         Mode              `json:"mode,omitempty" yaml:"mode" jsonschema:"Permission mode; plan makes it ask for approval of a plan first."`
	Bypass       bool              `json:"bypass,omitempty" call:"dangerously_skip_permissions" yaml:"-" jsonschema:"Must be true as well where mode is bypassPermissions."`
	Restart      RestartPolicy     `json:"restart" yaml:"restart" jsonschema:"When an exited member is started again: never, on-failure (default) or always."`
	Env          map[string]string `json:"env,omitempty" yaml:"env" jsonschema:"Further environment variables."`
	WorktreeMode string            `json:"worktreeMode" call:"worktree" yaml:"worktree" jsonschema:"own (default where the team has a repository), none, or the path of a directory."`
	Fresh        bool              `json:"fresh,omitempty" yaml:"fresh" jsonschema:"Make a new worktree and branch, even if an earlier member of the name left one."`
	Asks         bool              `json:"asks,omitempty" yaml:"asks" jsonschema:"It answers shutdown requests: ask it before it is ended, even if it has read no mail."`
	Repo         string            `json:"repo,omitempty" yaml:"repo" jsonschema:"Name of a further repository of the team to work on."`
	Cwd          string            `json:"cwd" yaml:"cwd" jsonschema:"Directory to run in without a worktree of its own."`
	Limits       Limits            `json:"limits,omitzero" yaml:"limits" jsonschema:"Maximum that the member may use, with all that it starts."`
	MCP          Servers           `json:"mcp,omitempty" yaml:"mcp" jsonschema:"MCP servers that it starts with: all (default), those of its program's configuration as well, or team, teamctl's only."`
	Confine      bool              `json:"confine,omitempty" yaml:"confine" jsonschema:"For agent llm: what its tools start can write in its worktree, the git directory and a temporary directory only."`
	Writable     []string          `json:"writable,omitempty" yaml:"writable" jsonschema:"With confine: further files and directories that it can write."`
	Origin
}

// Origin is what teamctl notes in the spec of a member. No door sets it; the
// operations overwrite what a caller puts there.
type Origin struct {
	PlanRequired  bool   `json:"planRequired,omitempty" call:"-" yaml:"-"` // planning was required when it joined, whatever its mode is now
	ParentSession string `json:"parentSession,omitempty" call:"-" yaml:"-"`
	SpawnedBy     string `json:"spawnedBy,omitempty" call:"-" yaml:"-"` // session key
	Lane          string `json:"lane,omitempty" call:"-" yaml:"-"`      // "teammate"
	TMUX          string `json:"tmux,omitempty" call:"-" yaml:"-"`      // $TMUX of the person who spawned it
	TMUXPane      string `json:"tmuxPane,omitempty" call:"-" yaml:"-"`
	// Declared is the entry of the team file from which the member was spawned,
	// if any.
	Declared json.RawMessage `json:"declared,omitempty" call:"-" yaml:"-"`
	// Approval and Nth identify the approval that allowed the spawn, and the
	// spawn among those that it allowed: at most one member exists for each,
	// ever. 0: no approval was needed.
	Approval int64 `json:"approval,omitempty" call:"-" yaml:"-"`
	Nth      int   `json:"nth,omitempty" call:"-" yaml:"-"`
}

// Spawn asks for members, all alike: what the command line, the team file, MCP and Go
// programs fill.
type Spawn struct {
	Name   string `json:"name" yaml:"name" jsonschema:"Name of the member: others address it by this. With count, the further ones get -2, -3."`
	Count  int    `json:"count,omitempty" yaml:"count" jsonschema:"How many members to start in parallel; 1 if left out."`
	Exact  bool   `json:"exact,omitempty" yaml:"exact" jsonschema:"Fail where the name is taken, instead of taking NAME-2."`
	Role   Role   `json:"role,omitempty" yaml:"role" jsonschema:"What it may do in the team: executor (default), reviewer, observer, leader or operator."`
	Base   string `json:"base,omitempty" yaml:"base" jsonschema:"Revision that its new branch starts from; the team's base if left out."`
	Branch string `json:"branch,omitempty" yaml:"branch" jsonschema:"Existing branch to work on, instead of a new one."`
	MemberSpec
}

// DoorField is a field of a struct as a door has it.
type DoorField struct {
	Index    []int // as reflect.Value.FieldByIndex takes it
	JSON     string
	Name     string // at the door; "-" for none
	Optional bool   // at every door, whatever its JSON tag says
}

// DoorFields are the fields of a struct, those of embedded structs included, with the
// names that the tag of a door gives them. A field without the tag has its JSON name.
func DoorFields(t reflect.Type, door string) (out []DoorField) {
	spec := reflect.TypeFor[MemberSpec]()
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "-" {
			continue
		}
		d := DoorField{Index: f.Index, JSON: name, Name: name}
		if n, _, _ := strings.Cut(f.Tag.Get(door), ","); n != "" {
			d.Name = n
		}
		if owner := t.FieldByIndex(f.Index[:max(1, len(f.Index)-1)]); len(f.Index) > 1 && owner.Type == spec || t == spec {
			d.Optional = true
		}
		out = append(out, d)
	}
	return out
}

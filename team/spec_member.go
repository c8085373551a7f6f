package team

import "encoding/json"

// MemberSpec is the spawn request: enough to start the member again.
type MemberSpec struct {
	Agent         string            `json:"agent"` // "worker", "command", ...
	Command       []string          `json:"command,omitempty"`
	Backend       string            `json:"backend"` // "tmux", ...
	Layout        string            `json:"layout,omitempty"`
	Prompt        string            `json:"prompt,omitempty"`
	AgentType     string            `json:"agentType,omitempty"`
	Model         string            `json:"model,omitempty"`
	Mode          Mode              `json:"mode,omitempty"`
	PlanRequired  bool              `json:"planRequired,omitempty"` // planning was required when it joined, whatever its mode is now
	Bypass        bool              `json:"bypass,omitempty"`       // mode bypassPermissions was allowed at spawn
	Restart       RestartPolicy     `json:"restart"`
	Env           map[string]string `json:"env,omitempty"`
	WorktreeMode  string            `json:"worktreeMode"`    // "own", "none", or a path
	Fresh         bool              `json:"fresh,omitempty"` // a new worktree, even if an earlier member of the name left one
	Asks          bool              `json:"asks,omitempty"`  // it answers shutdown requests, regardless of its kind
	Repo          string            `json:"repo,omitempty"`  // name of the repository; "" for the team's own
	Cwd           string            `json:"cwd"`
	ParentSession string            `json:"parentSession,omitempty"`
	SpawnedBy     string            `json:"spawnedBy,omitempty"` // session key
	Lane          string            `json:"lane,omitempty"`      // "teammate"
	TMUX          string            `json:"tmux,omitempty"`      // $TMUX of the person who spawned it
	TMUXPane      string            `json:"tmuxPane,omitempty"`
	Limits        Limits            `json:"limits,omitzero"`
	MCP           Servers           `json:"mcp,omitempty"`      // "" is all
	Confine       bool              `json:"confine,omitempty"`  // what its tools start may write in few places only
	Writable      []string          `json:"writable,omitempty"` // further places for it: absolute paths
	// Declared is the entry of the team file from which the member was spawned,
	// if any.
	Declared json.RawMessage `json:"declared,omitempty"`
	// Approval and Nth identify the approval that allowed the spawn, and the
	// spawn among those that it allowed: at most one member exists for each,
	// ever. 0: no approval was needed.
	Approval int64 `json:"approval,omitempty"`
	Nth      int   `json:"nth,omitempty"`
}

package adapter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// Info describes one agent kind, for the list of kinds that can be spawned.
type Info struct {
	Name            string `json:"name"`
	Description     string `json:"description"`
	TakesCommand    bool   `json:"takesCommand"`        // runs the argument vector of the spawn
	AnswersShutdown bool   `json:"answersShutdown"`     // reads its mailbox and answers a shutdown_request
	ReportsReady    bool   `json:"reportsReady"`        // reports over the notify socket when it takes messages
	NeedsModel      bool   `json:"needsModel"`          // talks to a model: needs a key or a login
	TakesArgs       bool   `json:"takesArgs,omitempty"` // the arguments of the spawn are added to its own
	Custom          bool   `json:"custom,omitempty"`    // from the user's own file
}

// Names of the agent kinds.
const (
	Worker   = team.AgentWorker
	LLM      = team.AgentLLM
	Command  = team.AgentCommand
	Claude   = team.AgentClaude
	Codex    = team.AgentCodex
	Gemini   = team.AgentGemini
	Opencode = team.AgentOpencode
	ACP      = team.AgentACP
	Generic  = team.AgentGeneric
)

type kind struct {
	info Info
	// argv returns the argument vector, env what the kind adds to the environment that every agent
	// gets; nil for nothing.
	argv func(exe string, in Input) ([]string, error)
	env  func(in Input) map[string]string
	caps Capabilities
	cli  *cli // a foreign CLI; argv, env and caps are empty then
}

// kinds is the table of agent kinds, in the order in which they are listed. A new foreign CLI is
// one file and one row.
var kinds = []kind{
	{
		info: Info{
			Name:            Worker,
			Description:     "built-in worker: runs metadata.run of ready tasks with bash, needs no model",
			AnswersShutdown: true,
			ReportsReady:    true,
		},
		argv: ownArgv, caps: workerCaps,
	},
	{
		info: Info{
			Name:            LLM,
			Description:     "built-in agent: a model with tools; without a model of its own a deterministic script",
			AnswersShutdown: true,
			ReportsReady:    true,
			NeedsModel:      true,
		},
		argv: ownArgv, caps: llmCaps,
	},
	{
		info: Info{
			Name:         Command,
			Description:  "any command in its own pane: teamctl spawn NAME -- COMMAND ARG...",
			TakesCommand: true,
		},
		argv: commandArgv,
		env:  commandEnv,
		caps: commandCaps,
	},
	{info: Info{Name: Claude, Description: "Claude Code", AnswersShutdown: true, NeedsModel: true, TakesArgs: true}, cli: &claude},
	{info: Info{Name: Codex, Description: "Codex CLI", AnswersShutdown: true, NeedsModel: true, TakesArgs: true}, cli: &codex},
	{info: Info{Name: Gemini, Description: "Gemini CLI", AnswersShutdown: true, NeedsModel: true, TakesArgs: true}, cli: &gemini},
	{info: Info{Name: Opencode, Description: "opencode", AnswersShutdown: true, NeedsModel: true, TakesArgs: true}, cli: &opencode},
	{
		info: Info{Name: ACP, Description: "any agent that speaks the Agent Client Protocol: spawn NAME --agent acp -- COMMAND ARG...",
			TakesCommand: true, AnswersShutdown: true, ReportsReady: true, NeedsModel: true},
		cli: &acp,
	},
	{
		info: Info{Name: Generic, Description: "any other agent in a terminal: spawn NAME --agent generic -- COMMAND ARG...",
			TakesCommand: true, NeedsModel: true},
		cli: &generic,
	},
}

// all returns the table followed by the user's own kinds.
func (l Launcher) all() []kind {
	out := slices.Clone(kinds)
	for _, c := range l.Custom {
		out = append(out, c.kind())
	}
	return out
}

// Agents lists the agent kinds that can be spawned.
func (l Launcher) Agents() []Info {
	all := l.all()
	out := make([]Info, len(all))
	for i, k := range all {
		out[i] = k.info
	}
	return out
}

// Agents lists the agent kinds that come with teamctl.
func Agents() []Info { return Launcher{}.Agents() }

// Lookup returns the kind with the name. An unknown name is CodeInvalid; the error lists the known
// ones, closest first.
func (l Launcher) Lookup(name string) (Info, error) {
	k, err := l.find(name)
	if err != nil {
		return Info{}, err
	}
	return k.info, nil
}

// Lookup is Launcher.Lookup among the built-in kinds.
func Lookup(name string) (Info, error) { return Launcher{}.Lookup(name) }

func (l Launcher) find(name string) (kind, error) {
	kinds := l.all()
	names := make([]string, len(kinds))
	for i, k := range kinds {
		if k.info.Name == name {
			return k, nil
		}
		names[i] = k.info.Name
	}
	hint := "known agents: " + strings.Join(names, ", ") + "; teamctl agents --help says how to add one"
	if near := team.Closest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q? %s", near, hint)
	}
	return kind{}, team.Errorf(team.CodeInvalid, "unknown agent %q", name).
		WithReason(team.ReasonUnknownAgent).WithHint(hint)
}

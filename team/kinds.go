package team

// The kinds of agent by name, as a member's spec has them. A kind of any other name
// comes from the user's own file and is an agent CLI.
const (
	AgentWorker   = "worker"   // built in: runs the commands of tasks
	AgentLLM      = "llm"      // built in: a model with tools, in a session of its own
	AgentCommand  = "command"  // the command of its spawn, in its own terminal
	AgentLead     = "lead"     // the lead of the team
	AgentExternal = "external" // a program that has joined
	AgentClaude   = "claude"   // Claude Code
	AgentCodex    = "codex"    // Codex CLI
	AgentGemini   = "gemini"   // Gemini CLI
	AgentOpencode = "opencode" // opencode
	AgentACP      = "acp"      // any agent that speaks the Agent Client Protocol
	AgentGeneric  = "generic"  // an agent CLI that nothing else is known of
)

// AgentKind is what teamctl does differently for a kind of agent. Its zero value is an
// agent CLI: a supervised program that uses a model and has its mail delivered. How a
// program is launched and spoken to is the adapter's.
type AgentKind struct {
	Worker        bool // claims tasks that have a command, runs them, saves and verifies its own work; has no turns
	Command       bool // runs the command of its spawn, and needs one
	External      bool // joined by itself: its process is not supervised
	ReadsMailbox  bool // finds a message in its mailbox by itself
	MayIgnoreMail bool // nothing shows that it reads mail until it has
	NoModel       bool // uses no model, so its usage is not counted
	NeedsNoFile   bool // its name alone is enough to start it
	SavesAtRest   bool // saves its worktree when it comes to rest
	InProcess     bool // runs as a goroutine of the supervisor's as well
	Sessions      bool // keeps its conversation in the team's ledger
}

// agentKinds has a row for each kind that differs from the zero value.
var agentKinds = map[string]AgentKind{
	"":            {ReadsMailbox: true, NoModel: true},
	AgentLead:     {ReadsMailbox: true, Sessions: true},
	AgentWorker:   {Worker: true, SavesAtRest: true, ReadsMailbox: true, NoModel: true, NeedsNoFile: true, InProcess: true},
	AgentLLM:      {ReadsMailbox: true, SavesAtRest: true, NeedsNoFile: true, InProcess: true, Sessions: true},
	AgentCommand:  {Command: true, ReadsMailbox: true, MayIgnoreMail: true, NoModel: true},
	AgentExternal: {External: true, MayIgnoreMail: true},
	AgentACP:      {ReadsMailbox: true},
	AgentClaude:   {NeedsNoFile: true},
	AgentCodex:    {NeedsNoFile: true},
	AgentGemini:   {NeedsNoFile: true},
	AgentOpencode: {NeedsNoFile: true},
}

// KindOf returns what is known of the kind of agent with this name.
func KindOf(agent string) AgentKind { return agentKinds[agent] }

// IsAgentKind reports whether name is a kind of agent that teamctl knows by itself.
func IsAgentKind(name string) bool {
	_, ok := agentKinds[name]
	return ok && name != "" || name == AgentGeneric
}

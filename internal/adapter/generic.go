package adapter

import (
	"slices"

	"github.com/teamctl/teamctl/team"
)

// EnvMCPConfig names a file that registers teamctl's tools, for commands that can use it.
const EnvMCPConfig = "TEAMCTL_MCP_CONFIG"

var genericCaps = Capabilities{
	Ways:         []Way{WayPull, WayTyping},
	MidTurn:      "not: mail waits until it is idle, or until it asks",
	Idle:         "woken by typing",
	States:       []string{"process", "title", "screen"},
	Conversation: "none",
	Tools:        "MCP, where it is told to use " + EnvMCPConfig,
	Approvals:    "at its own dialog",
	PlanMode:     "none",
	NewMode:      AtItsNextStart,
	Interrupt:    "Ctrl-C",
	Stop:         "the process tree",
	Config:       "a file in the member's bundle, named by " + EnvMCPConfig,
}

// generic is any command that is an agent: mail is typed when it is idle.
var generic = cli{plan: planGeneric, caps: genericCaps}

func planGeneric(exe string, in Input, _ Version) (launch, error) {
	argv, err := commandArgv(exe, in)
	if err != nil {
		return launch{}, err
	}
	l := launch{argv: argv, env: commandEnv(in), link: Link{Ways: []Way{WayTyping}}, files: []File{{"mcp.json", mcpFile(exe, in), 0o600}}}
	if l.env == nil {
		l.env = map[string]string{}
	}
	l.env[EnvMCPConfig] = bundleFile(in, "mcp.json")
	return l, nil
}

// mcpFile returns the registration of teamctl's tools in the form that most clients read.
func mcpFile(exe string, in Input) string {
	return jsonText(map[string]any{"mcpServers": map[string]any{"teamctl": map[string]any{
		"type": "stdio", "command": exe, "args": []string{"mcp"}, "env": toolEnv(in),
	}}})
}

// acp is any agent that speaks the Agent Client Protocol; teamctl acp speaks it with the agent,
// shows the conversation, and fetches mail as the worker does.
var acp = cli{plan: planACP, caps: Capabilities{
	Ways:         []Way{WayACP},
	MidTurn:      "one prompt at a time: mail waits for the end of the turn",
	Idle:         "the next prompt",
	States:       []string{"process", "session/update"},
	Conversation: "of one process: a restart begins a new one",
	Tools:        "MCP by session/new",
	Approvals:    "session/request_permission",
	PlanMode:     "session/set_mode, where it has a mode of that kind",
	NewMode:      "at once (session/set_mode), where it has a mode of that kind",
	Interrupt:    "session/cancel",
	Stop:         "shutdown request, then the process tree",
	Config:       "none is needed",
}}

func planACP(exe string, in Input, _ Version) (launch, error) {
	cmd, err := commandArgv(exe, in)
	if err != nil {
		return launch{}, err
	}
	argv := append([]string{exe, "acp"}, flags(in)...)
	argv = append(argv, "--briefing", briefing(in)) // the protocol has no field for instructions
	if in.Prompt != "" {
		argv = append(argv, "--prompt", in.Prompt)
	}
	return launch{argv: append(append(argv, "--"), slices.Clone(cmd)...), link: Link{Ways: []Way{WayACP}}}, nil
}

var workerCaps = Capabilities{
	Ways: []Way{WayMailbox}, MidTurn: "between tasks; a shutdown request at once", Idle: "it watches its mailbox",
	States: []string{"process", "its own word"}, Conversation: "none", Tools: "its own", Approvals: "none",
	PlanMode: "it takes no task", NewMode: "before its next task",
	Interrupt: "Ctrl-C", Stop: "shutdown request, then the process tree", Config: "none is needed",
}

var llmCaps = Capabilities{
	Ways: []Way{WayMailbox}, MidTurn: "at the next boundary between two tool calls; a shutdown request at once", Idle: "it watches its mailbox",
	States: []string{"process", "its own word"}, Conversation: "in the team's ledger", Tools: "its own, and the team's operations",
	Approvals: "the team's queue", PlanMode: "it reads, talks and submits its plan", NewMode: "with its next turn",
	Interrupt: "a mark on its turn, or Ctrl-C", Stop: "shutdown request, then the process tree", Config: "$TEAMCTL_HOME/config.yaml",
}

var commandCaps = Capabilities{
	Ways: []Way{WayMailbox}, MidTurn: "it reads its mailbox if it wants to", Idle: "it reads its mailbox if it wants to",
	States: []string{"process"}, Conversation: "none", Tools: "the command line", Approvals: "none", PlanMode: "none",
	NewMode: AtItsNextStart, Interrupt: "Ctrl-C", Stop: "the process tree", Config: "none is needed",
	Modes: []ModeMap{{team.ModeDefault, "by variables only"}},
}

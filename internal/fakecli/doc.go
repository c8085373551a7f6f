// Package fakecli has stand-ins for agent CLIs: they talk to a scripted model, run
// its tool calls, and take mail, approvals and interrupts as the real programs were
// seen to do, so that the tests of everything around them need none installed.
//
// Engine is the loop that all of them share: one conversation, one turn at a time.
// What differs between the programs is when a text that comes in mid-turn reaches
// the model, and over which wire: AppServer, OpenCode and Agent are those wires.
//
// Main is the whole program, with a terminal, files below the home directory, hooks
// and MCP servers, for a test binary that runs itself again under the name of a CLI:
//
//	claude    hooks of --settings, tools of --mcp-config, sessions/PID.json, the trust
//	          dialog, a permission dialog that a hook may answer first
//	codex     app-server on a socket, and the TUI that shows it (--remote)
//	gemini    hooks and tools of its settings file, two processes, deaf to SIGHUP
//	opencode  TUI with an HTTP server
//	acp-agent the Agent Client Protocol on its standard input and output
//
// All of them ask the model at $ANTHROPIC_BASE_URL. A shell command that begins with
// "touch" has to be allowed; others are free.
package fakecli

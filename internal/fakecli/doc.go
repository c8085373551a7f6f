// Package fakecli has stand-ins for agent CLIs: they talk to a scripted model, run its tool calls,
// and handle mail, approvals and interrupts as the real programs were seen to do, so that other tests
// need no installed CLI.
//
// Engine is the loop that all of them share: one conversation, one turn at a time. The programs
// differ in when a text that arrives during a turn reaches the model, and in their protocols:
// AppServer, OpenCode and Agent.
//
// Main is the whole program, with a terminal, files below the home directory, hooks and MCP servers,
// for a test binary that runs itself again under the name of a CLI:
//
//	claude    hooks of --settings, tools of --mcp-config, sessions/PID.json, the trust
//	          dialog, a permission dialog that a hook may answer first
//	codex     app-server on a socket, and the TUI that shows it (--remote)
//	gemini    hooks and tools of its settings file, two processes, ignores SIGHUP
//	opencode  TUI with an HTTP server
//	acp-agent the Agent Client Protocol on its standard input and output
//
// All of them use the model at $ANTHROPIC_BASE_URL. A shell command that begins with "touch" needs
// permission; others do not.
package fakecli

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
)

// mcpClients says how to register a stdio server with each client.
var mcpClients = []struct {
	name, where string
	text        func(r registration) string
}{
	{"claude", "a file for claude --mcp-config FILE --strict-mcp-config, or .mcp.json in the project", registration.claude},
	{"codex", "~/.codex/config.toml", registration.codex},
	{"gemini", "~/.gemini/settings.json", registration.gemini},
	{"opencode", "~/.config/opencode/opencode.json", registration.opencode},
	{"json", "any other client", registration.plain},
}

// registration is how clients start this program as a server.
type registration struct {
	command string
	args    []string
	env     map[string]string
}

const serverName = "teamctl"

func newMCPConfig(a *app) *cobra.Command {
	names := make([]string, len(mcpClients))
	for i, c := range mcpClients {
		names[i] = c.name
	}
	return &cobra.Command{
		Use:   "config " + strings.ToUpper("client"),
		Short: "Print how to register teamctl mcp with a client",
		Long: `Print the exact registration of this program as an MCP server for a client: claude,
codex, gemini, opencode, or json for any other. Nothing is written anywhere: put it
where the note says. --team binds the server to one team.`,
		Example: `  teamctl mcp config claude > team-mcp.json
  teamctl mcp config codex --team demo >> ~/.codex/config.toml`,
		Args:              takes(1, 1, "the name of a client: "+strings.Join(names, ", ")),
		ValidArgsFunction: first(words(names...)),
		RunE: func(_ *cobra.Command, args []string) error {
			exe, err := executable()
			if err != nil {
				return err
			}
			r := registration{command: exe, args: []string{"mcp"}, env: map[string]string{}}
			if a.team != "" {
				key, err := team.TeamKey(a.team)
				if err != nil {
					return err
				}
				r.args = append(r.args, "--team", key)
			}
			for _, name := range []string{team.EnvHome, team.EnvRuntime} { // otherwise the server would look elsewhere
				if v := os.Getenv(name); v != "" {
					r.env[name] = v
				}
			}
			for _, c := range mcpClients {
				if c.name != args[0] {
					continue
				}
				text := c.text(r)
				if !a.out.value(map[string]any{"client": c.name, "where": c.where, "text": text}) {
					a.out.line("%s", strings.TrimSuffix(text, "\n"))
					a.out.hint("this goes into %s", c.where)
				}
				return nil
			}
			return team.Errorf(team.CodeInvalid, "unknown client %q", args[0]).WithReason(team.ReasonUnknownClient).
				WithHint(strings.Join(names, ", ") + "; json is for every other one")
		},
	}
}

func pretty(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // maps of strings always encode
	}
	return string(b)
}

func (r registration) servers(extra map[string]any) map[string]any {
	entry := map[string]any{"command": r.command, "args": r.args, "env": r.env}
	for k, v := range extra {
		entry[k] = v
	}
	return map[string]any{"mcpServers": map[string]any{serverName: entry}}
}

// claude sets alwaysLoad: without it, newer versions hide the tools behind a search.
func (r registration) claude() string {
	return pretty(r.servers(map[string]any{"type": "stdio", "alwaysLoad": true}))
}

// codex sets env_vars, the only way to pass on an agent's identity, and the approval mode, without
// which Codex asks for every call.
func (r registration) codex() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[mcp_servers.%s]\ncommand = %s\nargs = [", serverName, tomlString(r.command))
	for i, arg := range r.args {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(tomlString(arg))
	}
	b.WriteString("]\n")
	if len(r.env) > 0 {
		b.WriteString("env = {")
		sep := " "
		for _, name := range []string{team.EnvHome, team.EnvRuntime} {
			if v, ok := r.env[name]; ok {
				fmt.Fprintf(&b, "%s%s = %s", sep, name, tomlString(v))
				sep = ", "
			}
		}
		b.WriteString(" }\n")
	}
	b.WriteString("env_vars = [")
	for i, name := range []string{team.EnvTeam, team.EnvAgentID, team.EnvAgentName, team.EnvToken, "TMUX", "TMUX_PANE"} {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(tomlString(name))
	}
	b.WriteString("]\ndefault_tools_approval_mode = \"approve\"\n")
	return b.String()
}

// tomlString returns a TOML basic string; its escapes are those of JSON.
func tomlString(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings always encode
	}
	return string(b)
}

func (r registration) gemini() string { return pretty(r.servers(map[string]any{"trust": true})) }

func (r registration) plain() string { return pretty(r.servers(nil)) }

func (r registration) opencode() string {
	return pretty(map[string]any{"mcp": map[string]any{serverName: map[string]any{
		"type": "local", "command": append([]string{r.command}, r.args...), "environment": r.env, "enabled": true,
	}}})
}

package agentlab

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/teamctl/teamctl/internal/strays"
)

// Client is one CLI: its program, how the model calls tools in it, and what makes it
// ask for permission.
type Client struct {
	Name    string
	Version string   // that is installed
	Program []string // below the cache: the native program, or node and a script
	Tool    string   // prefix of our tools in the model's words
	Ask     string   // a line of a script that makes it ask for permission
	Plan    string   // its tool that submits a plan; "" if teamctl is not notified of one
	// AsksTrust: it asks whether the user trusts a repository. Trusts is the key for yes, "" if no
	// key answers.
	AsksTrust bool
	Trusts    string
	Asks      string // its tool that asks the user a question; "" if teamctl is not notified of one
	// Escapes: what a hook adds reaches the model with its angle brackets as entities, the
	// result of a tool as JSON.
	Escapes bool
	Native  bool // it has native teams, which the bridge joins; the stand-ins have none
	// Sandboxed: its shell may not write to a git directory outside of the worktree, and it
	// asks its person for that.
	Sandboxed bool
	Older     bool // not the newest version
	// AsksInWorktree: its person's trust of a repository does not cover the worktrees.
	AsksInWorktree bool
	// NoFailures: it tells nobody that a turn has failed.
	NoFailures bool
}

// Label distinguishes it from other versions of the same program.
func (c Client) Label() string {
	if c.Older {
		return c.Name + "@" + c.Version
	}
	return c.Name
}

// Older are earlier versions of the CLIs, whose hooks have other manners.
func Older() []Client {
	var out []Client
	for _, v := range []string{"2.1.112", "2.1.34"} {
		c := Clients()[0]
		c.Version, c.Older, c.AsksInWorktree, c.NoFailures = v, true, v == "2.1.34", v == "2.1.34"
		c.Plan, c.Asks = "", "" // asked at its own screen
		c.Program = []string{"node", "anthropic-ai-claude-code-" + v + "/node_modules/@anthropic-ai/claude-code/cli.js"}
		out = append(out, c)
	}
	return out
}

// Clients are the CLIs, in the versions that scripts/test-clients installs.
func Clients() []Client {
	return []Client{
		{
			Name: "claude", Version: "2.1.329", Tool: "mcp__teamctl__",
			Program: []string{"anthropic-ai-claude-code-2.1.329/node_modules/@anthropic-ai/claude-code-linux-x64/claude"},
			Ask:     "@@shell touch asked", Plan: "ExitPlanMode", Asks: "AskUserQuestion", AsksTrust: true, Native: true,
		},
		{
			Name: "codex", Version: "0.169.0", Tool: "mcp__teamctl__",
			Program: []string{"openai-codex-0.169.0/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"},
			Ask:     `@@call exec_command {"cmd":"touch asked","sandbox_permissions":"require_escalated","justification":"need it"}`, AsksTrust: true, Trusts: "Enter", Sandboxed: true,
		},
		{
			Name: "gemini", Version: "0.61.0", Tool: "mcp_teamctl_",
			Program: []string{"node", "google-gemini-cli-0.61.0/node_modules/@google/gemini-cli/bundle/gemini.js"},
			Ask:     "@@shell touch asked", AsksTrust: true, Trusts: "Enter", Escapes: true,
		},
		{
			Name: "opencode", Version: "1.18.33", Tool: "teamctl_",
			Program: []string{"opencode-ai-1.18.33/node_modules/opencode-linux-x64/bin/opencode"},
			Ask:     "@@shell touch asked",
		},
	}
}

// StandIns returns the same CLIs as stand-ins: cache, a new directory, gets a link for each name
// to self, a program that first calls fakecli.Main.
func StandIns(self, cache string) ([]Client, error) {
	if err := os.Mkdir(cache, 0o700); err != nil {
		return nil, err
	}
	all := Clients()
	for i, c := range all {
		if err := os.Symlink(self, filepath.Join(cache, c.Name)); err != nil {
			return nil, err
		}
		all[i].Program, all[i].Native = []string{c.Name}, false
	}
	return all, nil
}

// install puts a program of the name into bin that runs the CLI.
func (c Client) install(bin, cache string) error {
	last := len(c.Program) - 1
	path := filepath.Join(cache, c.Program[last])
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%s is not installed: %w", c.Name, err)
	}
	if last == 0 {
		return os.Symlink(path, filepath.Join(bin, c.Name))
	}
	return strays.WriteProgram(filepath.Join(bin, c.Name), []byte("#!/bin/sh\nexec "+c.Program[0]+" '"+path+"' \"$@\"\n"))
}

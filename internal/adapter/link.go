package adapter

import (
	"io/fs"

	"github.com/teamctl/teamctl/team"
)

// File is a file that a launch needs. The caller writes it before it starts
// anything, below the member's bundle and nowhere else.
type File struct {
	Path    string      `json:"path"` // relative to the bundle, slash-separated
	Content string      `json:"content"`
	Mode    fs.FileMode `json:"mode"`
}

// Way is a way in which mail gets into a conversation.
type Way string

// Ways of mail.
const (
	WayMailbox   Way = "mailbox"    // the agent reads its teamctl mailbox by itself
	WayNative    Way = "native"     // Claude Code's own teammate mailbox
	WayAppServer Way = "app-server" // codex app-server on the agent's socket
	WayServer    Way = "server"     // opencode's HTTP server
	WayACP       Way = "acp"        // teamctl acp, which reads the mailbox
	WayHooks     Way = "hooks"      // context from hooks, and a waiter that wakes it
	WayPull      Way = "pull"       // the agent asks over MCP
	WayTyping    Way = "typing"     // the terminal, last
)

// Link is how one generation of an agent is reached. The launcher mints what has
// to be chosen (Conversation, Port, Secret, Socket), hands it to the plan, and
// writes it to the bundle (link.json), so that the next supervisor has it too.
type Link struct {
	Agent      string `json:"agent"`
	Generation string `json:"generation"`
	Version    string `json:"version,omitempty"` // of the CLI, "" unknown
	Assumed    string `json:"assumed,omitempty"` // version that it was started as, for it had not said its own
	Ways       []Way  `json:"ways"`              // in order of preference

	Conversation string `json:"conversation,omitempty"` // the CLI's id; learned where it cannot be minted
	Resumed      bool   `json:"resumed,omitempty"`      // an earlier conversation goes on
	Prompt       string `json:"prompt,omitempty"`       // first message that the channel has to give, "" where argv has it

	Mode     team.Mode `json:"mode,omitempty"`     // that it was started in
	Writable []string  `json:"writable,omitempty"` // directories that it may write to beside its own

	Socket string `json:"socket,omitempty"` // unix socket of its server
	URL    string `json:"url,omitempty"`    // http://127.0.0.1:PORT
	User   string `json:"user,omitempty"`
	Secret string `json:"secret,omitempty"` // password of its server
	// Config is the configuration directory that the CLI works with, to read in.
	Config string `json:"config,omitempty"`
	Team   string `json:"nativeTeam,omitempty"` // of WayNative
}

// StartedAs is the version whose flags and hooks the CLI was started with.
func (l Link) StartedAs() Version {
	text := l.Assumed
	if text == "" {
		text = l.Version
	}
	v, _ := ParseVersion(text)
	return v
}

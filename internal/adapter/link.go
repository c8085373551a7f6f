package adapter

import (
	"io/fs"

	"github.com/teamctl/teamctl/team"
)

// File is a file that a launch needs. The caller writes it before the start, and only below the
// member's bundle.
type File struct {
	Path    string      `json:"path"` // relative to the bundle, slash-separated
	Content string      `json:"content"`
	Mode    fs.FileMode `json:"mode"`
}

// Way is a way to deliver mail into a conversation.
type Way string

// Ways of mail.
const (
	WayMailbox   Way = "mailbox"    // the agent reads its teamctl mailbox itself
	WayNative    Way = "native"     // Claude Code's own teammate mailbox
	WayAppServer Way = "app-server" // codex app-server on the agent's socket
	WayServer    Way = "server"     // opencode's HTTP server
	WayACP       Way = "acp"        // teamctl acp, which reads the mailbox
	WayHooks     Way = "hooks"      // context from hooks, and a waiting hook that wakes the agent
	WayPull      Way = "pull"       // the agent fetches its mail over MCP
	WayTyping    Way = "typing"     // the terminal, as a last resort
)

// Link says how one generation of an agent is reached. The launcher chooses the values of Mint
// (Conversation, Port, Secret, Socket), passes them to the plan, and writes the link to the bundle
// (link.json), so that the next supervisor has it too.
type Link struct {
	Agent      string `json:"agent"`
	Generation string `json:"generation"`
	Version    string `json:"version,omitempty"` // of the CLI, "" if unknown
	Assumed    string `json:"assumed,omitempty"` // version assumed for the start, as the program had not printed its own
	Ways       []Way  `json:"ways"`              // in order of preference

	Conversation string `json:"conversation,omitempty"` // the CLI's id; learned later if it cannot be chosen
	Resumed      bool   `json:"resumed,omitempty"`      // an earlier conversation is resumed
	Prompt       string `json:"prompt,omitempty"`       // first message if the channel has to deliver it, "" if argv has it

	Mode     team.Mode `json:"mode,omitempty"`     // mode of the start
	Writable []string  `json:"writable,omitempty"` // writable directories beside its own

	Socket string `json:"socket,omitempty"` // unix socket of its server
	URL    string `json:"url,omitempty"`    // http://127.0.0.1:PORT
	User   string `json:"user,omitempty"`
	Secret string `json:"secret,omitempty"` // password of its server
	// Config is the CLI's configuration directory, which is only read.
	Config string `json:"config,omitempty"`
	Team   string `json:"nativeTeam,omitempty"` // of WayNative
}

// StartedAs returns the version whose flags and hooks the start used.
func (l Link) StartedAs() Version {
	text := l.Assumed
	if text == "" {
		text = l.Version
	}
	v, _ := ParseVersion(text)
	return v
}

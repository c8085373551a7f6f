package courier

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/private"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// The files of the courier in a member's bundle.
const (
	linkFile         = "link.json"
	conversationFile = "conversation.json"
)

// Conversation is what is known of the conversation of a member: written by its
// hooks and by the supervisor, read before the next start.
type Conversation struct {
	Agent      string `json:"agent"`
	Session    string `json:"session"`    // session key of the member: a later one of the name has another
	Generation string `json:"generation"` // that saw it last
	ID         string `json:"id"`
	Began      bool   `json:"began"`   // there is something to go on with
	Working    bool   `json:"working"` // in the middle of a turn
	Transcript string `json:"transcript,omitempty"`
}

// WriteFiles writes the files of a plan and its link below the bundle, which is
// made where it is missing. A path that leads out of it is CodeInvalid.
func WriteFiles(b team.Bundle, out adapter.Output) error {
	if err := os.MkdirAll(string(b), 0o700); err != nil {
		return team.Errorf(team.CodeUnavailable, "make %s: %w", b, err)
	}
	for _, f := range out.Files {
		if !filepath.IsLocal(f.Path) || strings.Contains(f.Path, "/") {
			return team.Errorf(team.CodeInvalid, "write %q: not a file of the bundle", f.Path)
		}
		if err := atomicfile.Write(filepath.Join(string(b), f.Path), []byte(f.Content), f.Mode, false); err != nil {
			return fmt.Errorf("write %s of the bundle: %w", f.Path, err)
		}
	}
	if out.Link == nil {
		return nil
	}
	return WriteLink(b, *out.Link)
}

// WriteLink replaces the link of the bundle.
func WriteLink(b team.Bundle, l adapter.Link) error { return WriteJSON(b, linkFile, l) }

// ReadLink reads the link of a generation, with the version that was learned since it
// started; generation "" takes any. CodeNotFound when the bundle has none of it.
func ReadLink(b team.Bundle, generation string) (adapter.Link, error) {
	var l adapter.Link
	if err := ReadJSON(b, linkFile, &l); err != nil {
		return l, err
	}
	if generation != "" && l.Generation != generation {
		return l, team.Errorf(team.CodeNotFound, "the link in %s is of generation %s, not %s", b, l.Generation, generation)
	}
	if l.Version == "" && l.Assumed != "" {
		l.Version = learned(b, l.Generation)
	}
	return l, nil
}

// ReadConversation reads what is known of the conversation of the member with the
// session key; the zero value when there is nothing.
func ReadConversation(b team.Bundle, session string) (Conversation, error) {
	var c Conversation
	err := ReadJSON(b, conversationFile, &c)
	if team.IsCode(err, team.CodeNotFound) || err == nil && c.Session != session {
		return Conversation{}, nil
	}
	return c, err
}

// WriteConversation replaces it.
func WriteConversation(b team.Bundle, c Conversation) error { return WriteJSON(b, conversationFile, c) }

// WriteJSON writes a file of a bundle.
func WriteJSON(b team.Bundle, name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	if err := atomicfile.Write(filepath.Join(string(b), name), append(data, '\n'), 0o600, false); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// ReadJSON reads one. CodeNotFound.
func ReadJSON(b team.Bundle, name string, v any) error {
	data, err := regular.ReadFile(filepath.Join(string(b), name))
	if errors.Is(err, fs.ErrNotExist) {
		return team.Errorf(team.CodeNotFound, "there is no %s in %s", name, b)
	}
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// LoadCustom reads the person's own kinds of agent, by name. The first broken file
// is the error.
func LoadCustom(home team.Home) ([]adapter.Custom, error) {
	dir := filepath.Join(home.Dir, "agents")
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	slices.Sort(files)
	var out []adapter.Custom
	for _, f := range files {
		data, err := private.ReadFile(f)
		if err != nil {
			return nil, team.Errorf(team.CodeUnavailable, "read %s: %w", f, err)
		}
		c, err := adapter.ParseCustom(f, data)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// LoadRules are the screen rules of a kind: the person's in $TEAMCTL_HOME/rules,
// those of the person's own kind, or those that come with teamctl. Nil: there are none.
func LoadRules(home team.Home, agent string) (*adapter.Rules, error) {
	file := filepath.Join(home.Dir, "rules", agent+".yaml")
	data, err := private.ReadFile(file)
	if err == nil {
		return adapter.ParseRules(file, data)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, team.Errorf(team.CodeUnavailable, "read %s: %w", file, err)
	}
	if r, ok, err := adapter.BuiltinRules(agent); ok || err != nil {
		return r, err
	}
	custom, err := LoadCustom(home)
	for _, c := range custom {
		if c.Name == agent {
			return c.Rules(), nil
		}
	}
	return nil, err
}

// FreePort is a port of loopback that nobody listens on now.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, team.Errorf(team.CodeUnavailable, "find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port // a TCP listener has one
	return port, l.Close()
}

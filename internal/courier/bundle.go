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
	"github.com/teamctl/teamctl/internal/glob"
	"github.com/teamctl/teamctl/internal/private"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// Files of the courier in a member's bundle.
const (
	linkFile         = "link.json"
	conversationFile = "conversation.json"
)

// Conversation describes the conversation of a member. Its hooks and the supervisor write it; the
// next start reads it.
type Conversation struct {
	Agent      string `json:"agent"`
	Session    string `json:"session"`    // session key of the member: a later member of the same name has another one
	Generation string `json:"generation"` // the generation that reported it last
	ID         string `json:"id"`
	Began      bool   `json:"began"`   // the conversation exists and can be resumed
	Working    bool   `json:"working"` // during a turn
	Transcript string `json:"transcript,omitempty"`
}

// WriteFiles writes the files of a plan and its link to the bundle, and creates the bundle if it
// is missing. A path that leads out of the bundle is CodeInvalid.
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

// WriteLink replaces the link in the bundle.
func WriteLink(b team.Bundle, l adapter.Link) error { return WriteJSON(b, linkFile, l) }

// ReadLink reads the link of a generation, with the version learned since it started; generation
// "" matches any. CodeNotFound if the bundle has no such link.
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

// ReadConversation reads the conversation of the member with the session key; the zero value if
// none is recorded.
func ReadConversation(b team.Bundle, session string) (Conversation, error) {
	var c Conversation
	err := ReadJSON(b, conversationFile, &c)
	if team.IsCode(err, team.CodeNotFound) || err == nil && c.Session != session {
		return Conversation{}, nil
	}
	return c, err
}

// ReportedBy reads the conversation that a generation of the member was the last to report; the zero
// value if another one was.
func ReportedBy(b team.Bundle, generation string) (Conversation, error) {
	var c Conversation
	err := ReadJSON(b, conversationFile, &c)
	if team.IsCode(err, team.CodeNotFound) || err == nil && c.Generation != generation {
		return Conversation{}, nil
	}
	return c, err
}

// WriteConversation replaces the conversation in the bundle.
func WriteConversation(b team.Bundle, c Conversation) error { return WriteJSON(b, conversationFile, c) }

// WriteJSON writes v to a file of the bundle.
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

// ReadJSON reads a file of the bundle into v. A missing file is CodeNotFound.
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

// LoadCustom reads the user's own agent kinds, by name. It stops at the first broken file.
func LoadCustom(home team.Home) ([]adapter.Custom, error) {
	dir := filepath.Join(home.Dir, "agents")
	files, err := filepath.Glob(filepath.Join(glob.Escape(dir), "*.yaml"))
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

// LoadRules returns the screen patterns of a kind: the user's in $TEAMCTL_HOME/rules, those of the
// user's own kind, or the built-in ones. Nil means that there are none.
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

// FreePort returns a loopback port that is free at the moment.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, team.Errorf(team.CodeUnavailable, "find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port // always a *net.TCPAddr
	return port, l.Close()
}

package fakecli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Programs are the names that Main answers to.
var Programs = []string{"claude", "codex", "gemini", "opencode", ACPAgent}

// ACPAgent is any program that speaks the Agent Client Protocol.
const ACPAgent = "acp-agent"

// EnvCodex sets the version that the stand-in of Codex prints.
const EnvCodex = "FAKECLI_CODEX"

// Main runs the program named by args[0] and returns its exit status; ok is false if it is not a
// stand-in.
func Main(args []string) (status int, ok bool) {
	name := filepath.Base(args[0])
	if !slices.Contains(Programs, name) {
		return 0, false
	}
	run := map[string]func([]string) error{"claude": claude, "codex": codex, "gemini": gemini, "opencode": opencode, ACPAgent: acpProgram}[name]
	if slices.Contains(args[1:], "--version") {
		fmt.Fprintln(os.Stdout, map[string]string{"claude": claudeVersion() + " (Claude Code)", "codex": "codex-cli " + cmp.Or(os.Getenv(EnvCodex), "0.169.0"), "gemini": "0.61.0", "opencode": "1.18.33"}[name])
		return 0, true
	}
	if err := run(args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		return 1, true
	}
	return 0, true
}

// arguments sorts a command line: values of the flags that take one, in order, and
// what is left.
func arguments(args []string, valued ...string) (flags map[string][]string, rest []string) {
	flags = map[string][]string{}
	for i := 0; i < len(args); i++ {
		a := args[i]
		name, value, joined := strings.Cut(a, "=")
		switch {
		case a == "--":
			return flags, append(rest, args[i+1:]...)
		case !strings.HasPrefix(a, "-"):
			rest = append(rest, a)
		case joined && strings.HasPrefix(a, "--"):
			flags[name] = append(flags[name], value)
		case slices.Contains(valued, a) && i+1 < len(args):
			i++
			flags[a] = append(flags[a], args[i])
		default:
			flags[a] = append(flags[a], "")
		}
	}
	return flags, rest
}

// one is the last value of a flag.
func one(flags map[string][]string, name string) string {
	if v := flags[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// harmless reports whether a call needs no permission: our tools, and every command that does not
// begin with "touch" or "npm".
func harmless(tool string, input json.RawMessage) bool {
	var in struct{ Command, Cmd string }
	_ = json.Unmarshal(input, &in) // of another tool
	command := strings.TrimSpace(in.Command + in.Cmd)
	return !strings.HasPrefix(command, "touch ") && !strings.HasPrefix(command, "npm ")
}

// mcpServer is one server as the CLIs' files name it.
type mcpServer struct {
	Command any               `json:"command"` // a string, or all words
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Environ map[string]string `json:"environment"`
}

func (m mcpServer) argv() []string {
	switch c := m.Command.(type) {
	case string:
		return append([]string{c}, m.Args...)
	case []any:
		var out []string
		for _, w := range c {
			out = append(out, fmt.Sprint(w))
		}
		return out
	}
	return nil
}

// tools starts MCP servers and names their tools as prefix(server) + tool. They are
// ended by the returned function.
func tools(ctx context.Context, servers map[string]mcpServer, env []string, prefix func(server string) string) (map[string]Tool, func(), error) {
	all := map[string]Tool{}
	var sessions []*mcp.ClientSession
	stop := func() {
		for _, s := range sessions {
			_ = s.Close() // it ends with us in any case
		}
	}
	for name, m := range servers {
		argv := m.argv()
		if len(argv) == 0 {
			continue
		}
		cmd := command(ctx, argv[0], argv[1:]...)
		cmd.Env = slices.Clone(env)
		for k, v := range m.Env {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		for k, v := range m.Environ {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		s, err := mcp.NewClient(&mcp.Implementation{Name: "fake", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("start the MCP server %s: %w", name, err)
		}
		sessions = append(sessions, s)
		list, err := s.ListTools(ctx, nil)
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("list the tools of %s: %w", name, err)
		}
		for _, t := range list.Tools {
			all[prefix(name)+t.Name] = func(ctx context.Context, input json.RawMessage) string {
				r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: t.Name, Arguments: input})
				if err != nil {
					return "error: " + err.Error()
				}
				var out []string
				for _, c := range r.Content {
					if text, ok := c.(*mcp.TextContent); ok {
						out = append(out, text.Text)
					}
				}
				return strings.Join(out, "\n")
			}
		}
	}
	return all, stop, nil
}

// kept is a conversation on disk: what a program that is started again reads.
type kept struct {
	Talk  json.RawMessage `json:"talk,omitempty"`
	Items []obj           `json:"items,omitempty"` // of its server
}

// homeFile is a file below the home directory, whose directory is made.
func homeFile(names ...string) (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(append([]string{home}, names...)...)
	return path, os.MkdirAll(filepath.Dir(path), 0o700)
}

func readKept(path string) (k kept, err error) {
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &k)
	}
	return k, err
}

// writeKept replaces it in one step: a program that is killed has the old one or the
// new one.
func writeKept(path string, k kept) {
	b, err := json.Marshal(k)
	if err == nil {
		err = os.WriteFile(path+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fake: keep the conversation:", err)
	}
}

// compactFile is the file that has a conversation compacted before its next answer, for
// tests: below the home directory, by the program.s name.
func compactFile(program string) string {
	path, err := homeFile(".compact", program)
	if err != nil {
		return ""
	}
	return path
}

// appendLine adds a line of JSON to a file that only grows.
func appendLine(path string, line obj) error {
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}

// conversation makes the engine of a program store its conversation in a file, and loads the
// stored one if resume is set.
func conversation(e *Engine, path string, resume bool) error {
	k, err := readKept(path)
	switch {
	case resume && err != nil:
		return fmt.Errorf("no conversation found: %w", err)
	case !resume && err == nil:
		return errors.New("the session id is in use already")
	case resume:
		if err := e.Load(k.Talk); err != nil {
			return fmt.Errorf("read the conversation: %w", err)
		}
	}
	e.Keep = func(talk json.RawMessage) { writeKept(path, kept{Talk: talk}) }
	return nil
}

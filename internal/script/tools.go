package script

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Tool is a tool that a request offers. Space is the namespace it is called in, where the
// protocol has such.
type Tool struct {
	Name, Space string
}

// Pick finds the tool that a script means: by its whole name, else by the end of it
// after a separator ("send_message" is "mcp__teamctl__send_message").
func Pick(tools []Tool, name string) (Tool, bool) {
	for _, t := range tools {
		if t.Name == name || t.Space+"__"+t.Name == name {
			return t, true
		}
	}
	for _, t := range tools {
		if strings.HasSuffix(t.Name, "_"+name) {
			return t, true
		}
	}
	return Tool{Name: name}, false
}

// Shells are the tools that run a command, and what they call the command.
var Shells = map[string]string{
	"Bash": "command", "bash": "command", "run_shell_command": "command", "exec_command": "cmd", "shell_command": "command",
	"shell": "command",
}

// Resolve turns a step into the call of a tool that the request offers. ok is false
// for a shell where there is none.
func Resolve(s Step, tools []Tool) (Tool, json.RawMessage, bool) {
	if s.Shell == "" {
		t, _ := Pick(tools, s.Tool) // one that is not offered is called all the same: CLIs hide some
		return t, s.Input, true
	}
	for _, t := range tools {
		key, ok := Shells[t.Name]
		if !ok {
			continue
		}
		in := map[string]string{key: s.Shell}
		if t.Name == "Bash" || t.Name == "bash" || t.Name == "run_shell_command" {
			in["description"] = "run it"
		}
		b, err := json.Marshal(in)
		return t, b, err == nil
	}
	return Tool{}, nil, false
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

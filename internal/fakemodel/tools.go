package fakemodel

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// offered is a tool of a request. space is the namespace it is called in, where the
// protocol has such.
type offered struct {
	name, space string
}

// pick finds the tool that a script means: by its whole name, else by the end of it
// after a separator ("send_message" is "mcp__teamctl__send_message").
func pick(tools []offered, name string) (offered, bool) {
	for _, t := range tools {
		if t.name == name || t.space+"__"+t.name == name {
			return t, true
		}
	}
	for _, t := range tools {
		if strings.HasSuffix(t.name, "_"+name) {
			return t, true
		}
	}
	return offered{name: name}, false
}

// shells are the tools that run a command, and what they call the command.
var shells = map[string]string{
	"Bash": "command", "bash": "command", "run_shell_command": "command", "exec_command": "cmd", "shell_command": "command",
}

// resolve turns a step into the call of a tool that the request offers. ok is false
// for a shell where there is none.
func resolve(s step, tools []offered) (offered, json.RawMessage, bool) {
	if s.shell == "" {
		t, _ := pick(tools, s.tool) // one that is not offered is called all the same: CLIs hide some
		return t, s.input, true
	}
	for _, t := range tools {
		key, ok := shells[t.name]
		if !ok {
			continue
		}
		in := map[string]string{key: s.shell}
		if t.name == "Bash" || t.name == "bash" || t.name == "run_shell_command" {
			in["description"] = "run it"
		}
		b, err := json.Marshal(in)
		return t, b, err == nil
	}
	return offered{}, nil, false
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

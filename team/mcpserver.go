package team

import "strings"

// MCPServer is one whose tools the built-in agent uses: a program that speaks over its
// standard input and output, or an address. Exactly one of Command and URL is set.
type MCPServer struct {
	Command []string          `json:"command,omitempty" yaml:"command"` // the program and its arguments
	Env     map[string]string `json:"env,omitempty" yaml:"env"`
	URL     string            `json:"url,omitempty" yaml:"url"`
	Headers map[string]string `json:"headers,omitempty" yaml:"headers"`
}

// webAddress reports whether s is an address of HTTP with a host.
func webAddress(s string) bool {
	rest, ok := strings.CutPrefix(s, "http://")
	if !ok {
		rest, ok = strings.CutPrefix(s, "https://")
	}
	return ok && rest != "" && rest[0] != '/' && !strings.ContainsAny(rest, " \t\n\f\r")
}

// Validate checks a server with its name. Errors are CodeInvalid (bad_mcp_server).
func (s MCPServer) Validate(name string) error {
	bad := func(format string, args ...any) error {
		return Errorf(CodeInvalid, "MCP server "+format, append([]any{name}, args...)...).WithReason(ReasonBadMCPServer)
	}
	switch {
	case !spelled(name, 32, lower+upper+digits, "-"):
		return bad("%q: a name is up to 32 letters, digits and -")
	case (len(s.Command) > 0) == (s.URL != ""):
		return bad("%s: give command or url")
	case len(s.Command) > 0 && (s.Command[0] == "" || len(s.Headers) > 0):
		return bad("%s: command is a program and its arguments, and has no headers")
	case s.URL != "" && len(s.Env) > 0:
		return bad("%s: env is for a command")
	}
	if s.URL != "" && !webAddress(s.URL) {
		return bad("%s: %q is not an address", s.URL)
	}
	return nil
}

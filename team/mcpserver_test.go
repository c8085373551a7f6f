package team

import "testing"

func TestMCPServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		s    MCPServer
		ok   bool
	}{
		{"files", MCPServer{Command: []string{"mcp-files", "--root", "."}, Env: map[string]string{"A": "b"}}, true},
		{"web", MCPServer{URL: "https://mcp.example.com/v1?x=1", Headers: map[string]string{"X": "y"}}, true},
		{"a__b", MCPServer{Command: []string{"x"}}, false}, // would part the names of its tools elsewhere
		{"", MCPServer{Command: []string{"x"}}, false},
		{"none", MCPServer{}, false},
		{"both", MCPServer{Command: []string{"x"}, URL: "https://x"}, false},
		{"empty", MCPServer{Command: []string{""}}, false},
		{"headers", MCPServer{Command: []string{"x"}, Headers: map[string]string{"X": "y"}}, false},
		{"env", MCPServer{URL: "https://x", Env: map[string]string{"X": "y"}}, false},
		{"address", MCPServer{URL: "mcp.example.com"}, false},
	} {
		if err := c.s.Validate(c.name); (err == nil) != c.ok || err != nil && CodeOf(err) != CodeInvalid {
			t.Errorf("%s %+v: %v", c.name, c.s, err)
		}
	}
}

package teamfile

import (
	"maps"
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/teamctl/teamctl/team"
)

// Servers are MCP servers whose tools members of kind llm can use, by name.
type Servers map[string]team.MCPServer

// servers reads {name: {command, env} or {url, headers}}.
func (r *reader) servers(into *Servers) func(ast.Node) {
	return func(n ast.Node) {
		pairs, ok := r.pairs(n, "mcp")
		if !ok {
			return
		}
		m := Servers{}
		for _, p := range pairs {
			name, ok := r.key(p)
			if !ok {
				continue
			}
			if _, twice := m[name]; twice {
				r.bad(p.Key, "MCP server %q is given twice", name)
				continue
			}
			var s team.MCPServer
			before := len(r.problems)
			r.mapping(p.Value, "an MCP server", []field{
				{"command", r.texts("command", &s.Command)}, {"env", r.env(&s.Env)}, {"url", r.text("url", &s.URL)}, {"headers", r.env(&s.Headers)},
			})
			if len(r.problems) > before {
				continue
			}
			if err := s.Validate(name); err != nil {
				r.bad(p.Key, "%v", err)
			}
			m[name] = s
		}
		*into = m
	}
}

// texts reads a list of strings.
func (r *reader) texts(what string, into *[]string) func(ast.Node) {
	return func(n ast.Node) {
		r.sequence(n, what, func(e ast.Node) {
			var s string
			r.scalar("an entry of "+what, &s)(e)
			*into = append(*into, s)
		})
	}
}

// commands lists what the servers would run or connect to, one line each.
func (s Servers) commands() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		where := "mcp " + name + ": "
		for _, k := range slices.Sorted(maps.Keys(s[name].Env)) {
			out = append(out, where+k+"="+s[name].Env[k])
		}
		for _, k := range slices.Sorted(maps.Keys(s[name].Headers)) {
			out = append(out, where+k+": "+s[name].Headers[k])
		}
		out = append(out, where+team.ShellLine(s[name].Command)+s[name].URL)
	}
	return out
}

// serversSchema is the schema of servers.
func serversSchema() *jsonschema.Schema {
	text := func(about string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", MinLength: jsonschema.Ptr(1), Description: about}
	}
	table := func(about string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "object", Description: about, AdditionalProperties: &jsonschema.Schema{Types: []string{"string", "number", "boolean"}}}
	}
	return &jsonschema.Schema{
		Type:          "object",
		Description:   "MCP servers whose tools members of agent llm have, by name",
		PropertyNames: &jsonschema.Schema{Pattern: "^[A-Za-z0-9][A-Za-z0-9-]{0,31}$"},
		AdditionalProperties: &jsonschema.Schema{
			Type: "object", AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
			Properties: map[string]*jsonschema.Schema{
				"command": {Type: "array", MinItems: jsonschema.Ptr(1), Items: text(""), Description: "program that speaks over its standard input and output, with its arguments"},
				"env":     table("environment variables for the program"),
				"url":     text("address of a server that speaks streamable HTTP, instead of command"),
				"headers": table("headers of every request to url"),
			},
		},
	}
}

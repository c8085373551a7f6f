package teamfile

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/teamctl/teamctl/internal/permit"
	"github.com/teamctl/teamctl/team"
)

// permissions reads {deny: [...], allow: [...]}, each a list of rules.
func (r *reader) permissions(into *team.Permissions) func(ast.Node) {
	return func(n ast.Node) {
		r.mapping(n, "permissions", []field{
			{"deny", r.permissionRules("deny", &into.Deny)},
			{"allow", r.permissionRules("allow", &into.Allow)},
		})
	}
}

func (r *reader) permissionRules(what string, into *[]team.PermissionRule) func(ast.Node) {
	return func(n ast.Node) {
		r.sequence(n, what, func(e ast.Node) {
			var rule team.PermissionRule
			before := len(r.problems)
			r.mapping(e, "a rule", []field{
				{"tool", r.text("tool", &rule.Tool)},
				{"path", r.text("path", &rule.Path)},
				{"command", r.text("command", &rule.Command)},
				{"members", func(n ast.Node) {
					r.sequence(n, "members", func(m ast.Node) {
						var name string
						r.text("a member", &name)(m)
						rule.Members = append(rule.Members, name)
					})
				}},
			})
			if len(r.problems) > before {
				return
			}
			if err := permit.Check(rule); err != nil {
				r.bad(e, "%v", err)
				return
			}
			*into = append(*into, rule)
		})
	}
}

// permissionsSchema is the schema of permissions.
func permissionsSchema() *jsonschema.Schema {
	text := func(about string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", MinLength: jsonschema.Ptr(1), Description: about}
	}
	rules := func(about string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "array", Description: about, Items: &jsonschema.Schema{
			Type: "object", Required: []string{"tool"}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
			Properties: map[string]*jsonschema.Schema{
				"tool":    text("an agent's name for a tool, with * for any text, or a class: shell, edit, read, fetch"),
				"path":    text("glob of files, from the member's directory or absolute; ** crosses directories"),
				"command": text("of a shell, with * for any text"),
				"members": {Type: "array", Items: text("name of a member, with * for any text"), Description: "whom the rule is about, default all"},
			},
		}}
	}
	return &jsonschema.Schema{
		Type:        "object",
		Description: "rules that answer permission requests; what none names waits for a person",
		Properties: map[string]*jsonschema.Schema{
			"deny":  rules("looked at first"),
			"allow": rules("what is allowed without a question"),
		},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
}

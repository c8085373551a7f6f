package teamfile

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/teamctl/teamctl/internal/hooks"
)

// hooks reads {TaskCompleted: command, ...}: a command, {command, timeout}, or a
// list of them.
func (r *reader) hooks(into *hooks.Set) func(ast.Node) {
	return func(n ast.Node) {
		set := hooks.Set{}
		fields := make([]field, 0, len(hooks.Kinds()))
		for _, k := range hooks.Kinds() {
			one := func(n ast.Node) {
				if rule, ok := r.rule(n); ok {
					set[k] = append(set[k], rule)
				}
			}
			fields = append(fields, field{string(k), func(n ast.Node) {
				if _, many := r.plain(n).(*ast.SequenceNode); many {
					r.sequence(n, string(k), one)
					return
				}
				one(n)
			}})
		}
		if r.mapping(n, "hooks", fields) && len(set) > 0 {
			*into = set
		}
	}
}

func (r *reader) rule(n ast.Node) (hooks.Hook, bool) {
	var command, timeout string
	before := len(r.problems)
	if _, long := r.plain(n).(*ast.MappingNode); long {
		r.mapping(n, "a hook", []field{{"command", r.text("command", &command)}, {"timeout", r.text("timeout", &timeout)}})
	} else {
		r.text("a hook", &command)(n)
	}
	if len(r.problems) > before {
		return hooks.Hook{}, false
	}
	rule, err := hooks.NewHook(command, timeout)
	if err != nil {
		r.bad(n, "%v", err)
	}
	return rule, err == nil
}

// hooksSchema is the schema of hooks.
func hooksSchema() *jsonschema.Schema {
	one := func() []*jsonschema.Schema {
		return []*jsonschema.Schema{
			{Type: "string", MinLength: jsonschema.Ptr(1)},
			{
				Type: "object", Required: []string{"command"}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
				Properties: map[string]*jsonschema.Schema{
					"command": {Type: "string", MinLength: jsonschema.Ptr(1), Description: "command that bash runs, with JSON on standard input"},
					"timeout": {Type: "string", Description: "how long it may take, default 1m"},
				},
			},
		}
	}
	s := &jsonschema.Schema{
		Type:                 "object",
		Description:          "people's own hooks: commands that are asked when something happens",
		Properties:           map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for _, k := range hooks.Kinds() {
		s.Properties[string(k)] = &jsonschema.Schema{AnyOf: append(one(), &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{AnyOf: one()}})}
	}
	return s
}

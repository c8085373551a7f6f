package teamfile

import (
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/google/jsonschema-go/jsonschema"
)

// Worktrees describes the setup of the members' worktrees.
type Worktrees struct {
	Root string // directory for the worktrees, relative to the file
	Furnishing
	Repos map[string]Furnishing // setup for a further repository, instead of the general one
}

// Furnishing is the setup of the worktrees of one repository.
type Furnishing struct {
	Copy     []string      // ignored paths of the repository, copied
	Link     []string      // ignored paths of the repository, as symbolic links
	Setup    []string      // commands, run by bash in each new worktree
	Teardown []string      // commands, run before one is removed
	Timeout  time.Duration // of each command
}

// worktrees reads {root, copy, link, setup, teardown, timeout, repos}; repos records the positions
// of the repositories, for checkRepos.
func (r *reader) worktrees(into *Worktrees, repos map[string]ast.Node) func(ast.Node) {
	return func(n ast.Node) {
		r.mapping(n, "worktrees", append([]field{
			{"root", r.text("root", &into.Root)},
			{"repos", func(n ast.Node) {
				pairs, _ := r.pairs(n, "repos")
				for _, p := range pairs {
					name, ok := r.key(p)
					if !ok {
						continue
					}
					if repos[name] != nil {
						r.bad(p.Key, "repository %q is given twice", name)
						continue
					}
					var one Furnishing
					r.mapping(p.Value, "repository "+name, r.furnishing(&one))
					if into.Repos == nil {
						into.Repos = map[string]Furnishing{}
					}
					into.Repos[name], repos[name] = one, p.Key
				}
			}},
		}, r.furnishing(&into.Furnishing)...))
	}
}

// furnishing returns the keys of one repository.
func (r *reader) furnishing(into *Furnishing) []field {
	list := func(what string, into *[]string) func(ast.Node) {
		return func(n ast.Node) {
			if _, many := r.plain(n).(*ast.SequenceNode); !many {
				var one string
				r.text(what, &one)(n)
				if one != "" {
					*into = append(*into, one)
				}
				return
			}
			r.sequence(n, what, func(e ast.Node) {
				var one string
				r.text("an entry of "+what, &one)(e)
				if one != "" {
					*into = append(*into, one)
				}
			})
		}
	}
	return []field{
		{"copy", list("copy", &into.Copy)},
		{"link", list("link", &into.Link)},
		{"setup", list("setup", &into.Setup)},
		{"teardown", list("teardown", &into.Teardown)},
		{"timeout", func(n ast.Node) {
			var text string
			r.text("timeout", &text)(n)
			if text == "" {
				return
			}
			d, err := time.ParseDuration(text)
			if err != nil || d <= 0 {
				r.bad(n, "timeout %q is not a duration such as 90s or 10m", text)
				return
			}
			into.Timeout = d
		}},
	}
}

// worktreesSchema is the schema of worktrees.
func worktreesSchema() *jsonschema.Schema {
	list := func(about string) *jsonschema.Schema {
		return &jsonschema.Schema{Description: about, AnyOf: []*jsonschema.Schema{
			{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}},
		}}
	}
	nothingElse := &jsonschema.Schema{Not: &jsonschema.Schema{}}
	furnishing := func() map[string]*jsonschema.Schema {
		return map[string]*jsonschema.Schema{
			"copy":     list("ignored paths of the repository that are copied"),
			"link":     list("ignored paths of the repository that are linked: all members share them"),
			"setup":    list("commands that bash runs in each new worktree"),
			"teardown": list("commands that bash runs in a worktree before it is removed"),
			"timeout":  {Type: "string", Description: "how long one of these commands may take, default 10m"},
		}
	}
	all := furnishing()
	all["root"] = &jsonschema.Schema{Type: "string", Description: "directory for the worktrees, relative to this file, default in the team's directory"}
	all["repos"] = &jsonschema.Schema{
		Type:                 "object",
		Description:          "what the worktrees of a further repository get instead, by its name",
		AdditionalProperties: &jsonschema.Schema{Type: "object", Properties: furnishing(), AdditionalProperties: nothingElse},
	}
	return &jsonschema.Schema{
		Type:                 "object",
		Description:          "what the members' worktrees get besides their commit; ignored files that .worktreeinclude names are copied in any case",
		Properties:           all,
		AdditionalProperties: nothingElse,
	}
}

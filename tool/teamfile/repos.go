package teamfile

import (
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/teamctl/teamctl/team"
)

// repos reads {name: path}.
func (r *reader) repos(into *Repos) func(ast.Node) {
	return func(n ast.Node) {
		pairs, ok := r.pairs(n, "repos")
		if !ok {
			return
		}
		m := Repos{}
		for _, p := range pairs {
			name, ok := r.key(p)
			if !ok {
				continue
			}
			if _, twice := m[name]; twice {
				r.bad(p.Key, "repository %q is given twice", name)
				continue
			}
			if !team.IsKey(name) {
				r.bad(p.Key, "%q cannot name a repository: use small letters, digits and '-'", name)
				continue
			}
			var path string
			r.text("repository "+name, &path)(p.Value)
			if path == "" && r.clean(position(p.Value)) {
				r.bad(p.Value, "repository %s has no path", name)
			}
			m[name] = path
		}
		*into = m
	}
}

// worktree reads own, none or a path; true and false mean own and none.
func (r *reader) worktree(into *string) func(ast.Node) {
	return func(n ast.Node) {
		if b, ok := r.plain(n).(*ast.BoolNode); ok {
			*into = map[bool]string{true: "own", false: "none"}[b.Value]
			return
		}
		r.text("worktree", into)(n)
	}
}

// checkRepos checks that the repositories of members exist, and those in sets, the worktree
// settings of single repositories.
func (r *reader) checkRepos(ms []placed[Member], sets map[string]ast.Node, f *File) {
	names := slices.Sorted(maps.Keys(f.Repos))
	none := func(at *token.Position, key, name string) {
		if c := team.Closest(name, names); c != "" {
			r.at(at, "%s names no repository: %q (did you mean %s?)", key, name, c)
			return
		}
		r.at(at, "%s names no repository: %q", key, name)
	}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		if _, ok := f.Repos[name]; !ok && r.clean(position(sets[name])) {
			none(position(sets[name]), "worktrees.repos", name)
		}
	}
	for _, p := range ms {
		m := p.v
		if m.Repo == "" {
			if f.Repo == "" && len(names) > 0 && m.WorktreeMode == "" && r.clean(p.at) {
				r.at(p.at, "which repository is %s to work on? add repo: %s, or worktree: none", m.Name, strings.Join(names, ", repo: "))
			}
			continue
		}
		if _, ok := f.Repos[m.Repo]; ok || !r.clean(p.where("repo")) {
			continue
		}
		none(p.where("repo"), "repo", m.Repo)
	}
}

// reposSchema is the schema of repos.
func reposSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type:                 "object",
		Description:          "further git repositories that members may work on: path, relative to this file, by name",
		AdditionalProperties: &jsonschema.Schema{Type: "string", MinLength: jsonschema.Ptr(1)},
		PropertyNames:        &jsonschema.Schema{Pattern: "^[a-z0-9][a-z0-9-]{0,31}$"},
	}
}

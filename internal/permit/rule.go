package permit

import (
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// globs are the characters that have a meaning in a path pattern.
const globs = `*?[]{}\`

// RuleFor returns the narrowest rule that allows a request: the very command, the very file, or the
// tool for that member alone if the request is about neither. ok is false if there is none: a
// pattern has no way to write a "*" that stands for itself, and a rule names one file.
func RuleFor(r Request) (rule team.PermissionRule, ok bool) {
	class := classOf(r.Tool)
	switch {
	case r.Command != "":
		rule = team.PermissionRule{Tool: r.Tool, Command: unwrap(r.Command)}
		if class != "" {
			rule.Tool = class
		}
		ok = rule.Command != "" && !strings.Contains(rule.Command, "*")
	case class == edit || class == read:
		if len(r.Paths) == 1 {
			rule, ok = r.fileRule(class, r.Paths[0])
		}
	case class != shell:
		rule, ok = team.PermissionRule{Tool: r.Tool, Members: []string{r.Member}}, r.Member != ""
	}
	if !ok || strings.Contains(r.Tool, "*") || Check(rule) != nil {
		return team.PermissionRule{}, false
	}
	if v, _ := Decide(team.Permissions{Allow: []team.PermissionRule{rule}}, r); v != Allow {
		return team.PermissionRule{}, false
	}
	return rule, true
}

// fileRule names one file, from the member's directory if it is below.
func (r Request) fileRule(class, file string) (team.PermissionRule, bool) {
	path := r.absolute(file)
	if rel, err := filepath.Rel(r.Dir, path); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		path = rel
	}
	return team.PermissionRule{Tool: class, Path: path}, !strings.ContainsAny(path, globs)
}

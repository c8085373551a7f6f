package permit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/teamctl/teamctl/team"
)

// By is the answerer of a request that a rule decided; no member can have this name.
const By = "rules of the team"

// Request is a request for permission.
type Request struct {
	Member  string
	Mode    team.Mode
	Dir     string   // where the member works; relative paths start there
	Tool    string   // as the agent calls it
	Command string   // of a shell; "" if unknown
	Paths   []string // of files; empty if unknown
}

// Verdict is the answer to a request.
type Verdict int

// Verdicts.
const (
	Ask   Verdict = iota // no rule matches
	Allow                // a rule allows it
	Deny                 // a rule denies it
)

// Decide answers a request; rule is the deciding rule, in the form that a person reads.
func Decide(p team.Permissions, r Request) (v Verdict, rule string) {
	doubt := false
	for _, d := range p.Deny {
		switch r.denied(d) {
		case match:
			return Deny, d.String()
		case unknown:
			doubt = true
		case noMatch:
		}
	}
	if doubt || r.Mode == team.ModePlan || r.Mode == team.ModeDelegate {
		return Ask, ""
	}
	for _, a := range p.Allow {
		if r.allowed(a) {
			return Allow, a.String()
		}
	}
	return Ask, ""
}

// Named reports whether a rule is about the tool of the request, for its member.
func Named(p team.Permissions, r Request) bool {
	return slices.ContainsFunc(slices.Concat(p.Deny, p.Allow), r.about)
}

// Check reports what is wrong with a rule.
func Check(r team.PermissionRule) error {
	switch {
	case r.Tool == "":
		return errors.New("a rule names a tool: an agent's name for it, or shell, edit, read, fetch, or *")
	case r.Path != "" && !doublestar.ValidatePattern(r.Path):
		return fmt.Errorf("%q is not a valid path pattern", r.Path)
	case r.Path != "" && slices.Contains(strings.Split(r.Path, "/"), ".."):
		return fmt.Errorf("%q: a path is given from the member's directory, or absolute, and has no .. in it", r.Path)
	case r.Path != "" && r.Command != "":
		return errors.New("a rule has a path or a command, not both")
	case r.Path != "" && classOf(r.Tool) == shell, r.Command != "" && !slices.Contains([]string{"", shell}, classOf(r.Tool)):
		return fmt.Errorf("tool %s: a rule about a shell has a command, one about files a path", r.Tool)
	case slices.Contains(r.Members, ""):
		return errors.New("members has an empty name")
	}
	return nil
}

type matched int

const (
	noMatch matched = iota
	match
	unknown // the rule is about a fact that the request does not contain
)

// about reports whether a rule is about the member and the tool at all.
func (r Request) about(rule team.PermissionRule) bool {
	if len(rule.Members) > 0 && !slices.ContainsFunc(rule.Members, func(m string) bool { return wild(m, r.Member, true) }) {
		return false
	}
	if wild(rule.Tool, r.Tool, true) {
		return true
	}
	class := classOf(r.Tool)
	return class != "" && rule.Tool == class // "Edit" is one tool of one agent, "edit" what edits anywhere
}

func (r Request) denied(rule team.PermissionRule) matched {
	switch {
	case !r.about(rule):
		return noMatch
	case rule.Command != "":
		if r.Command == "" {
			return r.unknownUnless(shell)
		}
		command := unwrap(r.Command)
		for _, c := range append(parts(command), command, r.Command) {
			if wild(rule.Command, c, false) {
				return match
			}
		}
		return noMatch
	case rule.Path != "":
		if len(r.Paths) == 0 {
			return r.unknownUnless(edit, read)
		}
		out := noMatch
		for _, p := range r.Paths {
			switch v := r.really(rule.Path, p, strings.ToLower); {
			case v == match || r.spelled(rule.Path, p):
				return match
			case v == unknown:
				out = unknown
			}
		}
		return out
	}
	return match
}

// unknownUnless: a tool of a class other than those has nothing that could match.
func (r Request) unknownUnless(classes ...string) matched {
	if c := classOf(r.Tool); c == "" || slices.Contains(classes, c) {
		return unknown
	}
	return noMatch
}

func (r Request) allowed(rule team.PermissionRule) bool {
	switch {
	case !r.about(rule):
		return false
	case rule.Command != "":
		command := unwrap(r.Command)
		return command != "" && (command == rule.Command || simple(command) && wild(rule.Command, command, false))
	case rule.Path != "":
		asIs := func(s string) string { return s }
		return len(r.Paths) > 0 && !slices.ContainsFunc(r.Paths, func(p string) bool { return r.really(rule.Path, p, asIs) != match })
	}
	return true
}

package team

import "strings"

// Permissions are the rules by which a team answers permission requests itself:
// first those that deny, then those that allow. What no rule names waits for a
// person.
type Permissions struct {
	Deny  []PermissionRule `json:"deny,omitempty"`
	Allow []PermissionRule `json:"allow,omitempty"`
}

// None reports that there is no rule.
func (p Permissions) None() bool { return len(p.Deny)+len(p.Allow) == 0 }

// PermissionRule names requests. Every field that is given has to match. In Tool,
// Command and Members "*" stands for any text; Path is a glob in which "*" stays
// within a directory and "**" does not.
type PermissionRule struct {
	Tool    string   `json:"tool"`              // an agent's name for it, or a class: shell, edit, read, fetch
	Path    string   `json:"path,omitempty"`    // of the files, from the member's directory, or absolute
	Command string   `json:"command,omitempty"` // of a shell
	Members []string `json:"members,omitempty"` // empty: all
}

// String is the rule as a person reads it.
func (r PermissionRule) String() string {
	out := "tool " + r.Tool
	if r.Command != "" {
		out += ", command " + r.Command
	}
	if r.Path != "" {
		out += ", path " + r.Path
	}
	if len(r.Members) > 0 {
		out += ", members " + strings.Join(r.Members, " ")
	}
	return out
}

// Question is one that an agent asks its person, in words of its own.
type Question struct {
	Text    string   `json:"question"`
	Options []string `json:"options,omitempty"` // to choose from; another answer may be given
	Several bool     `json:"several,omitempty"` // several of them may be chosen
}

// String is the question with its options.
func (q Question) String() string {
	if len(q.Options) == 0 {
		return q.Text
	}
	return q.Text + " (" + strings.Join(q.Options, " / ") + ")"
}

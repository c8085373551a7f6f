package cgroup

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnsupported is wrapped by every error that means that control groups are
// unavailable on this system, or cannot do what was requested.
var ErrUnsupported = errors.New("control groups are not supported here")

// Why returns the text of an error without that of ErrUnsupported, for a
// sentence that says so itself.
func Why(err error) string { return strings.TrimPrefix(err.Error(), ErrUnsupported.Error()+": ") }

// Support describes what the groups made by Create can do. Probing writes
// nothing.
type Support struct {
	Kill   bool   // all processes at once
	Freeze bool   // pause and resume
	Memory bool   // limits
	PIDs   bool   //
	CPU    bool   //
	Why    string // why it is not everything; empty if it is
	Path   string // the directory in which groups are made; empty if there is none
}

// Applied reports which limits a group enforces.
type Applied struct{ Memory, PIDs, CPU bool }

// subtree is the directory that contains all groups of teamctl.
const subtree = "teamctl"

// Name returns the name of a generation's group for Create.
func Name(team, agent, generation string) string {
	if len(generation) > 8 {
		generation = generation[:8]
	}
	return team + "/" + agent + "-" + generation
}

// splitName checks a name: two parts that can neither lead elsewhere nor be
// mistaken for one of the kernel's files, all of which contain a dot.
func splitName(name string) (team, leaf string, err error) {
	team, leaf, ok := strings.Cut(name, "/")
	bad := func(s string) bool { return s == "" || len(s) > 200 || strings.ContainsAny(s, "/.\n\x00") }
	if !ok || bad(team) || bad(leaf) {
		return "", "", fmt.Errorf("name a control group: %q is not a valid name", name)
	}
	return team, leaf, nil
}

package cgroup

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnsupported is wrapped by every error that says that there is no group to be
// had here, or that it cannot do what was asked.
var ErrUnsupported = errors.New("control groups are not supported here")

// Support says what the groups that Create would make can do. Probing writes nothing.
type Support struct {
	Kill   bool   // all processes at once
	Freeze bool   // pause and resume
	Memory bool   // limits
	PIDs   bool   //
	CPU    bool   //
	Why    string // why it is not everything; empty if it is
	Path   string // the directory that groups are made in; empty without
}

// Applied says which limits a group keeps.
type Applied struct{ Memory, PIDs, CPU bool }

// subtree is the directory that all our groups are below.
const subtree = "teamctl"

// Name is the name of a generation's group for Create.
func Name(team, agent, generation string) string {
	if len(generation) > 8 {
		generation = generation[:8]
	}
	return team + "/" + agent + "-" + generation
}

// splitName checks a name: two parts that cannot lead anywhere else, nor be taken
// for one of the kernel's files, which all have a dot.
func splitName(name string) (team, leaf string, err error) {
	team, leaf, ok := strings.Cut(name, "/")
	bad := func(s string) bool { return s == "" || len(s) > 200 || strings.ContainsAny(s, "/.\n\x00") }
	if !ok || bad(team) || bad(leaf) {
		return "", "", fmt.Errorf("name a control group: %q is no name", name)
	}
	return team, leaf, nil
}

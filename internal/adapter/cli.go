package adapter

import (
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// cli describes one foreign CLI: data, and one function that plans its start. Each CLI has a file
// of its own (claude.go, codex.go, ...) and a row in kinds.
type cli struct {
	program     string   // looked up on the member's PATH
	versionArgs []string // arguments that print its version
	tested      Version  // the newest version on which these facts were checked
	oldest      Version  // the oldest such version; older ones are used in the safest way
	plan        func(exe string, in Input, v Version) (launch, error)
	caps        Capabilities
	// alone are the arguments that start it without the MCP servers of its own configuration; empty
	// if there are none.
	alone []string
}

// launch is a CLI's contribution to a plan.
type launch struct {
	argv  []string
	env   map[string]string
	files []File
	link  Link
	notes []string
}

// Capabilities describes for a person what an agent kind can do. Versions lists where versions
// differ.
type Capabilities struct {
	Program      string       `json:"program,omitempty"`
	Tested       string       `json:"tested,omitempty"` // newest version checked
	Oldest       string       `json:"oldest,omitempty"`
	Ways         []Way        `json:"ways"` // of mail, in order of preference
	MidTurn      string       `json:"midTurn"`
	Idle         string       `json:"idle"`
	States       []string     `json:"states"` // sources of its state, most trusted first
	Conversation string       `json:"conversation"`
	Tools        string       `json:"tools"`
	Approvals    string       `json:"approvals"`
	PlanMode     string       `json:"planMode"`
	NewMode      string       `json:"newMode"` // when a new mode takes effect while it runs
	Interrupt    string       `json:"interrupt"`
	Stop         string       `json:"stop"`
	Modes        []ModeMap    `json:"modes,omitempty"`
	Versions     []Difference `json:"versions,omitempty"`
	Config       string       `json:"config"` // how it is configured without changes to the user's own configuration
}

// ModeMap maps a permission mode to the CLI's own.
type ModeMap struct {
	Mode team.Mode `json:"mode"`
	As   string    `json:"as"`
}

// Difference is what other versions lack.
type Difference struct {
	Range string `json:"range"`
	What  string `json:"what"`
}

// Profile is everything declared about an agent kind.
type Profile struct {
	Info
	Capabilities
}

// Show returns what is declared about a kind; an unknown one fails as in Lookup.
func (l Launcher) Show(name string) (Profile, error) {
	k, err := l.find(name)
	if err != nil {
		return Profile{}, err
	}
	return Profile{Info: k.info, Capabilities: k.capabilities()}, nil
}

// Probe returns the command that prints a kind's version; ok is false if there is none.
func (l Launcher) Probe(in Input) (argv []string, ok bool) {
	k, err := l.find(in.Agent)
	if err != nil || k.cli == nil || len(k.cli.versionArgs) == 0 {
		return nil, false
	}
	return append([]string{programOf(in, k.info.Name, k.cli.program)}, k.cli.versionArgs...), true
}

// Foreign reports whether the kind is a foreign CLI, whose plan depends on what courier.Prepare
// finds out.
func (l Launcher) Foreign(name string) bool {
	k, err := l.find(name)
	return err == nil && k.cli != nil
}

func (k kind) capabilities() Capabilities {
	if k.cli == nil {
		return k.caps
	}
	c := k.cli.caps
	c.Program = k.cli.program
	if k.cli.tested.Known() {
		c.Tested, c.Oldest = k.cli.tested.String(), k.cli.oldest.String()
	}
	return c
}

// ProgramVariable returns the environment variable with the path of the program of a kind.
func ProgramVariable(kind string) string {
	return "TEAMCTL_PROGRAM_" + strings.ToUpper(strings.ReplaceAll(kind, "-", "_"))
}

// programOf returns the program to start: ProgramVariable, in the member's own variables or in the
// environment, takes precedence over the name on the PATH.
func programOf(in Input, kind, program string) string {
	name := ProgramVariable(kind)
	if p := in.Env[name]; p != "" {
		return p
	}
	if p := lookupEnv(in.Environ, name); p != "" {
		return p
	}
	return program
}

func lookupEnv(env []string, name string) string {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// setting returns a variable as the member will have it.
func setting(in Input, name string) string {
	if v, ok := in.Env[name]; ok {
		return v
	}
	return lookupEnv(in.Environ, name)
}

// planCLI plans the start of a foreign CLI.
func (k kind) planCLI(exe string, in Input) (launch, error) {
	if exe == "" {
		return launch{}, team.Errorf(team.CodeInternal, "plan %s: the path of teamctl is not known", in.AgentID)
	}
	v, _ := ParseVersion(in.Version)
	// A program that has not printed its version in time is assumed to be the oldest supported one.
	// If it is older, it exits at once with an error about its flags.
	as := v
	in.VersionLate = in.VersionLate && !v.Known()
	if in.VersionLate {
		as = k.cli.oldest
	}
	l, err := k.cli.plan(exe, in, as)
	if err != nil {
		return launch{}, err
	}
	if len(l.argv) > 0 && l.argv[0] == k.cli.program {
		l.argv[0] = programOf(in, k.info.Name, k.cli.program)
	}
	switch {
	case !k.cli.tested.Known():
	case in.VersionLate:
		l.notes = append(l.notes, fmt.Sprintf("%s has not said its version in time: it is started as %s, and asked again while it runs", k.cli.program, as))
		l.link.Assumed = as.String()
	case !v.Known():
		l.notes = append(l.notes, fmt.Sprintf("the version of %s is not known: it is used in the safest way", k.cli.program))
	case v.Less(k.cli.oldest):
		l.notes = append(l.notes, fmt.Sprintf("%s %s is older than %s: it is used in the safest way", k.cli.program, v, k.cli.oldest))
	case k.cli.tested.Less(v):
		l.notes = append(l.notes, fmt.Sprintf("%s %s is newer than %s, on which this was tested", k.cli.program, v, k.cli.tested))
	}
	l.link.Agent, l.link.Generation = in.Agent, in.Generation
	l.link.Mode, l.link.Writable = in.Mode, in.GitDirs
	if v.Known() {
		l.link.Version = v.String()
	}
	return l, nil
}

// bundleFile returns the absolute path of a file in the member's bundle.
func bundleFile(in Input, name string) string {
	return string(in.Layout.Bundle(in.Name)) + "/" + name
}

// passed lists the variables that teamctl's own programs need when they run below a CLI that does
// not pass on its environment. The secret of the start is passed separately, since the plan does
// not know it.
var passed = []string{
	team.EnvAgentID, team.EnvAgentName, team.EnvHome, team.EnvNotify, team.EnvRuntime, team.EnvTeam,
}

// toolEnv returns the part of the identity that may be written to a file of the bundle.
func toolEnv(in Input) map[string]string {
	id := identity(in, lookupEnv(in.Environ, team.EnvRuntime))
	out := map[string]string{}
	for _, name := range passed {
		if v := id[name]; v != "" {
			out[name] = v
		}
	}
	return out
}

package team

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// StopRequest asks members to stop.
type StopRequest struct {
	Names  []string      `json:"names,omitempty"` // empty: all
	Reason string        `json:"reason,omitempty"`
	Wait   time.Duration `json:"wait,omitempty"`   // for the agent's answer and exit; default 10 s
	Force  bool          `json:"force,omitempty"`  // no request: TERM at once
	From   string        `json:"from,omitempty"`   // who asks; default the lead
	Remove bool          `json:"remove,omitempty"` // leave the roster after it stopped
	NoWait bool          `json:"noWait,omitempty"` // return once they are asked, not once they are gone
}

// Stopped is what became of one member.
type Stopped struct {
	Name    string        `json:"name"`
	Outcome string        `json:"outcome"`          // approved, rejected, deadline, forced, already_stopped, failed; requested with NoWait
	Joined  bool          `json:"joined,omitempty"` // a program that joined: it leaves the roster, nobody ends its process
	Reason  string        `json:"reason,omitempty"`
	Exit    string        `json:"exit,omitempty"` // "exit 0", "signal SIGKILL", "exit unknown"
	Tasks   []string      `json:"released,omitempty"`
	Took    time.Duration `json:"took"`
	Request string        `json:"request_id,omitempty"` // of the shutdown request, with NoWait
}

// Granted is what an approval was given with.
type Granted struct {
	// Input is what a permission may be used with instead of what was asked for; empty
	// for as it was asked. Whoever cannot bring it must not let the request through: the
	// person has approved something else.
	Input json.RawMessage
	// Updates are what is to be allowed from now on too, a list in the words of the
	// program that asked. Whoever cannot bring them leaves them out: it asks again.
	Updates json.RawMessage
	Mode    Mode // that the member of an approved plan goes on in; "" otherwise
}

// Recovered is what became of one member.
type Recovered struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"` // running, started, left, alive, failed
	Reason  string `json:"reason,omitempty"`
}

// Budgets are those of a team, and what happens when a provider's limit is over.
type Budgets struct {
	Team    Budget            `json:"team,omitzero"`
	Members map[string]Budget `json:"members,omitempty"` // by name
	Resume  bool              `json:"resume,omitempty"`  // go on by itself once a limit is over
}

// None reports that nothing is set.
func (b Budgets) None() bool { return b.Team.None() && len(b.Members) == 0 && !b.Resume }

// ProviderLimit is a limit of a provider, which holds for all members of the agent.
type ProviderLimit struct {
	Until    int64    `json:"until,omitempty"` // Unix milliseconds; 0: nobody has said
	Since    int64    `json:"since"`
	Members  []string `json:"members"` // who ran into it
	Evidence []string `json:"evidence,omitempty"`
	Ended    int64    `json:"ended,omitempty"` // Unix milliseconds; 0: it holds
}

// SpawnRequest asks for one new member.
type SpawnRequest struct {
	Name   string     `json:"name"`
	Exact  bool       `json:"exact,omitempty"` // a taken name is an error, not a suffix
	Role   Role       `json:"role,omitempty"`
	Spec   MemberSpec `json:"spec"`
	Branch string     `json:"branch,omitempty"` // one that exists; default a new one, teamctl/<team>/<name>
	Base   string     `json:"base,omitempty"`   // default the team's base, else HEAD
	// Hold puts the member on the roster and starts nothing. Held starts the one of
	// this name that was put there so; what else it says is not looked at.
	Hold bool `json:"hold,omitempty"`
	Held bool `json:"held,omitempty"`
}

// Check refuses what cannot be spawned. The supervisor does it too, for whatever can reach
// its socket may send a request.
func (in SpawnRequest) Check() error {
	if key, err := AgentKey(in.Name); err != nil {
		return err
	} else if key != in.Name {
		return Errorf(CodeInvalid, "%q cannot name a member", in.Name).
			WithReason(ReasonInvalidName).WithHint("use small letters, digits and '-'")
	}
	role, err := ParseRole(string(in.Role))
	if err == nil && in.Role != "" && role != in.Role {
		err = Errorf(CodeInvalid, "unknown role %q", in.Role)
	}
	if err != nil {
		return err
	}
	if _, err := ParseRestartPolicy(string(in.Spec.Restart)); err != nil {
		return err
	}
	if err := in.Spec.Limits.Check(); err != nil {
		return err
	}
	for k := range in.Spec.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") {
			return Errorf(CodeInvalid, "%q cannot name an environment variable", k)
		}
	}
	if err := isDir("working directory", in.Spec.Cwd); err != nil {
		return err
	}
	switch tree := cmp.Or(in.Spec.WorktreeMode, "none"); tree {
	case "own", "none":
		return nil
	default:
		return isDir("worktree", tree)
	}
}

// isDir refuses a path that is not the absolute one of a directory; "" is none.
func isDir(what, path string) error {
	if path == "" {
		return nil
	}
	if fi, err := os.Stat(path); !filepath.IsAbs(path) || filepath.Clean(path) != path || err != nil || !fi.IsDir() {
		return Errorf(CodeInvalid, "%s %q is not the absolute path of a directory", what, path).WithReason(ReasonInvalidPath)
	}
	return nil
}

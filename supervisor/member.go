package supervisor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// member is the loop's view of one member.
type member struct {
	row         ledger.Member
	plan        Plan
	at          backends.Attached // nil unless a generation is alive, or its dead pane exists
	step        step              // the current blocking step
	unwatch     func()            // stops waiting for its ready report; nil: none
	upSince     time.Time         // monotonic start of the generation; zero: unknown
	up          []func(ledger.Member, error)
	stop        *stopping
	lastRequest string // id of the newest shutdown request

	starting
	doubtful
	ending
}

// starting has the data for the next start of a member.
type starting struct {
	first      bool     // never was up: a failed start rolls it back
	held       bool     // on the roster, to be started on request
	restarting bool     // the next start is an automatic restart
	replaced   bool     // its generation belonged to a directory that is gone
	notes      []string // remarks on its new worktree
	again      bool     // its worktree was left by an earlier member of the name
}

// doubtful is the state of a member whose process may be alive.
type doubtful struct {
	unsure error // why it is unknown whether a generation is alive; nil: it is known
	doubts int   // unsuccessful attempts to find out
}

// ending has what remains to be done after an exit.
type ending struct {
	pending  *exited  // an exit that came during a stop step
	owes     bool     // its exit is recorded, and its tasks are not released yet
	released []string // tasks released at its last exit
	// concluding says that its stop has ended its process, and that the ledger has not accepted yet
	// what follows: see conclude.
	concluding bool
	disposed   chan struct{} // closed when the pane of its last generation was removed; nil: never
}

// stopping is a running stop.
type stopping struct {
	state     team.StopState
	in        team.StopRequest
	requestID string
	began     time.Time
	outcome   string // outcome to be reported
	reason    string
	again     bool // a restart: requests that wait for it to be up wait for this stop first
	gone      []func(team.Stopped)
}

// step is the current blocking step of a member, as people read it.
type step string

const (
	stepNone     step = ""
	stepStarting step = "starting"
	stepAdopting step = "adopting"
	stepStopping step = "stopping"
	stepEnding   step = "ending" // of a generation that cannot be adopted
	stepRenaming step = "being renamed"
)

// busy returns the current step for Status.
func (m *member) busy() string {
	if m.step == stepNone && m.stop != nil {
		return "asked to stop"
	}
	return string(m.step)
}

// answerUp answers all requests that wait for the member to be up.
func (s *Supervisor) answerUp(m *member, err error) {
	row, waiting := m.row, m.up
	m.up = nil
	if len(waiting) == 0 {
		return
	}
	s.publisher.When(func() {
		for _, f := range waiting {
			f(row, err)
		}
	})
}

func sortMembers(ms []*member) {
	slices.SortFunc(ms, func(a, b *member) int {
		if a.row.JoinedAt != b.row.JoinedAt {
			return int(a.row.JoinedAt - b.row.JoinedAt)
		}
		return strings.Compare(a.row.Name, b.row.Name)
	})
}

func unknownMember(name string, have []string) error {
	slices.Sort(have)
	err := team.Errorf(team.CodeNotFound, "no member %q on the team", name).WithReason(team.ReasonMemberNotFound)
	if len(have) == 0 {
		return err.WithHint("the team has no members yet: teamctl spawn builder")
	}
	return err.WithHint("members are " + strings.Join(have, ", "))
}

// ExitText returns an exit in words: "exit 3", "signal SIGKILL", "exit unknown".
func ExitText(e backends.Exit) string {
	switch {
	case e.ExecFailed:
		return "exec failed"
	case !e.Known:
		return "exit unknown"
	case e.Signal != "":
		return "signal " + e.Signal
	default:
		return fmt.Sprintf("exit %d", e.Code)
	}
}

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

// member is the loop's view of one teammate.
type member struct {
	row         ledger.Member
	plan        Plan
	at          backends.Attached // nil unless a generation lives, or its dead pane stands
	step        string            // "" or the blocking step under way: "starting", "stopping"
	unwatch     func()            // ends the waiting for its word that it is ready; nil: none
	upSince     time.Time         // monotonic start of the generation; zero: not known
	up          []func(ledger.Member, error)
	stop        *stopping
	lastRequest string // id of the newest shutdown request

	starting
	doubtful
	ending
}

// starting is what the next start of a member has to know.
type starting struct {
	first      bool     // never was up: a failed start rolls it back
	held       bool     // on the roster, to be started when it is asked for
	restarting bool     // the next start is one that the supervisor makes by itself
	replaced   bool     // its generation was that of a directory which is gone
	notes      []string // what its new worktree should be known for
	again      bool     // its worktree is what an earlier member of the name has left
}

// doubtful is a member of whose process it is not known whether it lives.
type doubtful struct {
	unsure error // why it is not known whether a generation lives; nil: it is known
	doubts int   // attempts that did not find out
}

// ending is what is left to do after an exit.
type ending struct {
	pending  *exited       // an exit that came during a stop step
	owes     bool          // its exit is written, and its tasks are not given back yet
	released []string      // tasks given back at its last exit
	disposed chan struct{} // closed when the pane of its last generation was disposed of; nil: never
}

// stopping is a stop under way.
type stopping struct {
	in        team.StopRequest
	requestID string
	began     time.Time
	outcome   string // what it will be reported as
	reason    string
	again     bool // it is a restart: who waits for it to be up waits for this stop first
	gone      []func(team.Stopped)
}

// busy is the word for Status.
func (m *member) busy() string {
	if m.step == "" && m.stop != nil {
		return "asked to stop"
	}
	return m.step
}

// answerUp tells everyone who waits for the member to be up.
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

// ExitText is an exit as people read it: "exit 3", "signal SIGKILL", "exit unknown".
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

package look

import (
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// Paused reports a member whose processes stand still.
func Paused(m ledger.Member) bool {
	return m.Observed == team.Running && m.Reason == state.PausedReason
}

// Why says why a member is in its state, "" where nothing is known.
func Why(m ledger.Member) string {
	switch {
	case m.TurnError != "":
		return "its turn failed: " + m.TurnError
	case m.Reason != "" && m.ExitText != "":
		return m.Reason + " (" + m.ExitText + ")"
	case m.Reason != "":
		return m.Reason
	}
	return m.ExitText
}

// Since returns since when a member runs, or since when it does not, in Unix
// milliseconds.
func Since(m ledger.Member) int64 {
	if m.EndedAt != 0 {
		return m.EndedAt
	}
	if m.StartedAt != 0 {
		return m.StartedAt
	}
	return m.JoinedAt
}

// HandedIn says what a task waits for whose work is done, "" where it is in work.
func HandedIn(t ledger.Task) string {
	switch {
	case t.Verification != 0:
		return "being verified"
	case t.Review != 0:
		return "waits for a review"
	}
	return ""
}

// Failure says in one line why a task failed: the first line of the error and the last,
// which is where programs say what went wrong.
func Failure(r ledger.Result) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(plain.Text(r.Error)), "\n")
	last := rest[strings.LastIndexByte(rest, '\n')+1:]
	if first, last = view.Clean(first), view.Clean(last); last != "" {
		return first + ": " + last
	}
	return first
}

// stamp is a time of the ledger, zero for 0.
func stamp(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

package look

import (
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Paused reports whether a member's processes are paused.
func Paused(m ledger.Member) bool {
	return m.Observed == team.Running && m.Reason == team.WhyPaused
}

// Why returns why a member is in its state, "" if unknown.
func Why(m ledger.Member) string {
	switch {
	case m.TurnError != "":
		return "its turn failed: " + m.TurnError
	case m.Reason != "" && m.ExitText != "" && !strings.HasPrefix(m.Reason, m.ExitText):
		return m.ExitText + " (" + m.Reason + ")" // what has happened first: the rest may be cut
	case m.Reason != "":
		return m.Reason
	}
	return m.ExitText
}

// Since returns since when a member has been running, or not running, in Unix milliseconds.
func Since(m ledger.Member) int64 {
	if m.EndedAt != 0 {
		return m.EndedAt
	}
	if m.StartedAt != 0 {
		return m.StartedAt
	}
	return m.JoinedAt
}

// HandedIn returns what a submitted task waits for, "" if it was not submitted.
func HandedIn(t ledger.Task) string {
	switch {
	case t.Verification != 0:
		return "being verified"
	case t.Review != 0:
		return "waits for a review"
	}
	return ""
}

// Failure returns in one line why a task failed: the first line of the error and the last, where
// programs report the cause.
func Failure(r ledger.Result) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(plain.Text(r.Error)), "\n")
	last := rest[strings.LastIndexByte(rest, '\n')+1:]
	if first, last = view.Clean(first), view.Clean(last); last != "" {
		return first + ": " + last
	}
	return first
}

// stamp converts a time of the ledger, zero for 0.
func stamp(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

package delivery

import (
	"context"
	"strings"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
)

// turnOver returns the notice that an agent which cannot report it has ended its turn; broken is
// the error that ended the turn, "" for none.
func (d *Delivery) turnOver(m *recipient, broken string) *ledger.Notice {
	f := inbox.IdleNotification{From: m.row.Name, Timestamp: inbox.Timestamp(d.wall()), IdleReason: inbox.IdleAvailable}
	if !m.interrupted.IsZero() {
		f.IdleReason = inbox.IdleInterrupted
	}
	ctx, cancel := loop.Writing(context.Background())
	defer cancel()
	did, err := d.team.Ledger.DidSince(ctx, m.row.Member, m.mark)
	if err != nil { // it is idle anyway
		d.team.Log.Warn("read what a turn has done", "member", m.row.Name, "err", err)
	} else {
		f.CompletedTaskID, f.CompletedStatus, f.FailureReason, f.Summary = did.Task, string(did.Status), did.Why, did.Peers
		m.mark = did.Next
	}
	summary := "idle and ready for new work"
	if broken != "" {
		summary = f.Fail(broken)
	}
	n := d.team.Notice(f, "", summary)
	if n != nil {
		n.Failed = broken != ""
	}
	return n
}

// maxTurnError is the maximum length of an error that ended a turn, in characters.
const maxTurnError = 500

// inOneLine returns an error as it is stored and reported.
func inOneLine(words string) string {
	words = strings.Join(strings.Fields(words), " ")
	if r := []rune(words); len(r) > maxTurnError {
		return string(r[:maxTurnError]) + "..."
	}
	return words
}

// markTurn begins the period of the next idle notice, with a generation that was started or
// adopted.
func (d *Delivery) markTurn(m *recipient) {
	m.interrupted, m.asks = time.Time{}, nil
	ctx, cancel := loop.Writing(context.Background())
	defer cancel()
	did, err := d.team.Ledger.DidSince(ctx, m.row.Member, ledger.TurnMark{})
	if err != nil {
		d.team.Log.Warn("read what was said", "member", m.row.Name, "err", err)
	}
	m.mark = did.Next
}

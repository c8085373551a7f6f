package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// untold messages: every one to a member that a model leads is in the transcript of its session, once,
// and no turn is left.
func (w *world) untold(ctx context.Context) (not []string) {
	msgs, err := w.team.Ledger.Messages(ctx, ledger.MessageFilter{})
	if err != nil {
		return []string{err.Error()}
	}
	for _, a := range w.members {
		if !a.model {
			continue
		}
		s, err := w.team.Session(ctx, a.name)
		if err != nil {
			not = append(not, err.Error())
			continue
		}
		entries, err := w.team.Transcript(ctx, s)
		if err != nil {
			not = append(not, err.Error())
			continue
		}
		open, err := w.team.Ledger.TurnJobs(ctx, ledger.JobFilter{Session: s.Key, Open: true})
		if err != nil || len(open) > 0 {
			not = append(not, fmt.Sprintf("%s has %d turns to do (%v)", a.name, len(open), err))
		}
		var all strings.Builder
		for _, e := range entries {
			if e.Kind == ledger.EntryUser {
				all.WriteString(e.Content)
			}
		}
		for _, m := range msgs {
			if m.To != a.name || m.Kind != team.KindMessage {
				continue
			}
			if n := strings.Count(all.String(), fmt.Sprintf("message_id=%q", m.ID)); n != 1 {
				not = append(not, fmt.Sprintf("message %s of kind %s is in the transcript of %s %d times", m.ID, m.Kind, a.name, n))
			}
		}
	}
	return not
}

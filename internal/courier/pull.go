package courier

import (
	"context"

	"github.com/teamctl/teamctl/team"
)

// pull is the channel of agents that fetch their mail over MCP: there is nothing to deliver, but
// their screen is watched and their turn can be interrupted.
type pull struct{ Typist }

func openPull(_ context.Context, f Facts, s Screen, r Report) (Channel, error) {
	return &pull{Typist{f: f, s: s, report: r}}, nil
}

// Deliver leaves the mail in the mailbox, where the agent fetches it.
func (*pull) Deliver(_ context.Context, mail []team.Mail) []team.Outcome {
	out := make([]team.Outcome, len(mail))
	for i, m := range mail {
		out[i].ID = m.ID
	}
	return out
}

package mail

import (
	"context"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Of is a message as an agent gets it.
func Of(ctx context.Context, l *ledger.Ledger, msg ledger.Message) team.Mail {
	a := inbox.Attributes{TeammateID: msg.From, Kind: msg.Kind, Summary: msg.Summary, RequestID: msg.RequestID, MessageID: msg.ID}
	if msg.Kind == team.KindMessage {
		a.Kind = ""
	}
	if from, err := l.Member(ctx, msg.From); err == nil {
		a.Color = from.Color
	}
	e := inbox.Entry{From: msg.From, Text: msg.Text, ID: msg.ID}
	return team.Mail{
		ID: msg.ID, Seq: msg.Seq, From: msg.From, Kind: msg.Kind, Summary: msg.Summary, RequestID: msg.RequestID, Raw: msg.Text,
		Text: inbox.Render([]inbox.Entry{e}, inbox.RenderOptions{Facts: func(inbox.Entry) (inbox.Attributes, bool) { return a, true }}),
	}
}

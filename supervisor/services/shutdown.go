package services

import (
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// ShutdownRequest returns the message that asks a member to stop. Two requests in one millisecond
// must not share an id, so last is the id of the previous one.
func ShutdownRequest(from, to, reason, last string) (ledger.NewMessage, error) {
	now := time.Now()
	id := inbox.NewRequestID("shutdown", to, now, func(id string) bool { return id == last })
	text, err := inbox.Encode(inbox.ShutdownRequest{RequestID: id, From: from, Reason: reason, Timestamp: inbox.Timestamp(now)})
	return ledger.NewMessage{
		Kind: team.KindShutdownRequest, From: from, To: to, RequestID: id, Text: text, Summary: "shutdown requested",
	}, err
}

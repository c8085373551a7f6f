package main

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/fakemodel"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A receipt is true only where one request has the whole message, and a message without a
// receipt is listed, too.
func TestCompare(t *testing.T) {
	t.Parallel()
	const text = "do <this>"
	for name, c := range map[string]struct {
		state    team.DeliveryState
		requests []fakemodel.Request
		want     string
	}{
		"whole":          {team.Accepted, []fakemodel.Request{{New: "other"}, {New: "m-1 " + inbox.Body(text)}}, ""},
		"cut":            {team.Accepted, []fakemodel.Request{{New: "m-1 do"}}, "never asked"},
		"in none":        {team.Read, nil, "never asked"},
		"side work":      {team.Accepted, []fakemodel.Request{{Side: true, New: "m-1 " + inbox.Body(text)}}, "never asked"},
		"another's text": {team.Accepted, []fakemodel.Request{{New: "m-2 " + inbox.Body(text)}}, "never asked"},
		"no receipt":     {team.Injected, []fakemodel.Request{{New: "m-1 " + inbox.Body(text)}}, "is injected"},
	} {
		box := []ledger.Outgoing{{
			Message:  ledger.Message{ID: "m-1", Kind: team.KindMessage, Text: text},
			Delivery: ledger.Delivery{State: c.state},
		}}
		not := given{whole: map[string]bool{}}.compare("mate", box, c.requests)
		if c.want == "" && len(not) > 0 || c.want != "" && (len(not) != 1 || !strings.Contains(not[0], c.want)) {
			t.Errorf("%s: %q", name, not)
		}
	}
}

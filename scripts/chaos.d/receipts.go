package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/internal/fakemodel"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// given is what the fake agent CLIs really received, from the requests of their model, whatever
// their receipts say.
type given struct {
	model *fakemodel.Server
	whole map[string]bool // messages that were in a request, by id
}

// programNames returns the CLIs that have fakes.
func programNames() (names []string) {
	for _, c := range agentlab.Clients() {
		names = append(names, c.Name)
	}
	return names
}

// standInKinds are the kinds of the programs, one member each.
func standInKinds(programs []string) (kinds []agentKind) {
	for _, p := range programs {
		kinds = append(kinds, agentKind{name: p, program: p, steady: true})
	}
	return kinds
}

// startModel starts the model of the fakes, puts them first in PATH, and creates the home of a
// person who uses such programs.
func (w *world) startModel() (err error) {
	if len(w.opt.programs) == 0 {
		return nil
	}
	home, bin := filepath.Join(w.dir, "person"), filepath.Join(w.dir, "bin")
	if _, err := agentlab.StandIns(w.self, bin); err != nil {
		return err
	}
	if w.given.model, err = fakemodel.Start("", nil); err != nil {
		return err
	}
	url := w.given.model.URL
	w.given.whole = map[string]bool{}
	for k, v := range map[string]string{
		"HOME": home, "PATH": bin + ":" + os.Getenv("PATH"),
		"ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": "none", "GEMINI_API_KEY": "none", "FAKE_API_KEY": "none",
	} {
		if err := os.Setenv(k, v); err != nil {
			return err
		}
	}
	_, err = agentlab.Configure(home, url, w.dir)
	return err
}

// wake sends each fake a message, so that its next request to the model has its whole
// conversation.
func (w *world) wake(ctx context.Context) error {
	for _, a := range w.members {
		if a.program == "" {
			continue
		}
		if err := w.traffic.send(ctx, a.name); err != nil {
			return fmt.Errorf("wake %s: %w", a.name, err)
		}
	}
	return nil
}

// ungiven lists messages to fakes without a receipt, and those with a false one.
func (w *world) ungiven(ctx context.Context) (not []string) {
	if w.given.model == nil {
		return nil
	}
	members, err := w.team.Ledger.Members(ctx, false)
	if err != nil {
		return []string{err.Error()}
	}
	requests := w.given.model.Requests()
	for _, m := range members {
		if a := w.plan(m.Name); a == nil || a.program == "" {
			continue
		}
		all, err := w.team.Ledger.Mailbox(ctx, m.SessionKey, 0)
		if err != nil {
			return append(not, err.Error())
		}
		not = append(not, w.given.compare(m.Name, all, requests)...)
	}
	return not
}

// compare compares the receipts of a member with what its model was asked.
func (g given) compare(member string, mailbox []ledger.Outgoing, requests []fakemodel.Request) (not []string) {
	for _, e := range mailbox {
		id, d := e.Message.ID, e.Delivery
		switch s := d.State; {
		case e.Message.Kind != team.KindMessage:
		case s != team.Accepted && s != team.Read && s != team.Answered:
			not = append(not, fmt.Sprintf("message %s to %s is %s (%s)", id, member, s, d.Reason))
		case !g.has(id, inbox.Body(e.Message.Text), requests):
			not = append(not, fmt.Sprintf("message %s to %s is %s by its receipt (%s), and the model was never asked with it", id, member, s, d.Evidence))
		}
	}
	return not
}

// has reports whether a message is whole in a request.
func (g given) has(id, body string, requests []fakemodel.Request) bool {
	for i := 0; i < len(requests) && !g.whole[id]; i++ {
		if r := requests[i]; !r.Side && strings.Contains(r.New, id) && strings.Contains(r.New, body) {
			g.whole[id] = true
		}
	}
	return g.whole[id]
}

package tool

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Conversation formats a member's mail for its conversation. For the lead it begins with the
// current state of the team, which therefore survives compaction. Then follows each message in its
// element, with the facts from the ledger, in the order of delivery: shutdown, the lead, peers,
// and last the entries unknown to the ledger. Notices of members name the file with their output.
// The result is "" for a member without mail.
func (t *Team) Conversation(ctx context.Context, c Caller, entries []InboxEntry) (string, error) {
	state, err := t.stateFor(ctx, c)
	if err != nil {
		return "", err
	}
	about := map[string]inbox.Attributes{}
	const unknown = 3
	list, rank := make([]inbox.Entry, 0, len(entries)), map[string]int{}
	got, err := t.Ledger.Received(ctx, c.Name, InboxOut{Entries: entries}.IDs())
	if err != nil {
		return "", err
	}
	member := t.members()
	for _, e := range entries {
		x := inbox.Entry{From: e.From, Text: e.Text, Summary: e.Summary, Timestamp: e.Timestamp, Color: e.Color, ID: e.ID}
		if e.MayBeKnown {
			x.SetMayBeKnown()
		}
		if g := got[e.ID]; g.Sent { // otherwise it is from a program without the ledger, or forged
			a, err := t.facts(ctx, g.Message, member)
			if err != nil {
				return "", err
			}
			x.Text, about[e.ID], rank[e.ID] = g.Message.Text, a, g.Message.Rank()
		}
		list = append(list, x)
	}
	place := func(e inbox.Entry) int {
		if r, ok := rank[e.ID]; ok {
			return r
		}
		return unknown
	}
	slices.SortStableFunc(list, func(a, b inbox.Entry) int { return cmp.Compare(place(a), place(b)) })
	mail := inbox.Render(list, inbox.RenderOptions{Facts: func(e inbox.Entry) (inbox.Attributes, bool) {
		a, ok := about[e.ID]
		return a, ok
	}})
	return strings.TrimLeft(state, "\n") + mail, nil
}

// PeersOf returns the other members of a roster, as described to the named member.
func PeersOf(name string, roster []ledger.Member) []team.Peer {
	var out []team.Peer
	for _, m := range roster {
		if m.Name != name {
			out = append(out, team.Peer{Name: m.Name, Role: m.Role, Type: m.Spec.AgentType})
		}
	}
	return out
}

// members returns a lookup of members by name, which looks up each once. A missing member is the
// zero Member.
func (t *Team) members() func(ctx context.Context, name string) (ledger.Member, error) {
	known := map[string]ledger.Member{}
	return func(ctx context.Context, name string) (ledger.Member, error) {
		m, ok := known[name]
		if ok {
			return m, nil
		}
		m, err := t.Ledger.Member(ctx, name)
		if err != nil && !team.IsCode(err, team.CodeNotFound) {
			return m, err
		}
		known[name] = m
		return m, nil
	}
}

// facts returns the ledger's facts about a message to the caller.
func (t *Team) facts(ctx context.Context, msg ledger.Message, member func(context.Context, string) (ledger.Member, error)) (inbox.Attributes, error) {
	a := inbox.Attributes{TeammateID: msg.From, Kind: msg.Kind, Summary: msg.Summary, RequestID: msg.RequestID, MessageID: msg.ID}
	about := msg.From
	if f, ok := inbox.Parse(msg.Text); ok && msg.Kind == team.KindTeammateTerminated {
		if gone, ok := f.(inbox.TeammateTerminated); ok { // a message of the system, which only teamctl can send
			about, _, _ = team.ParseAgentID(gone.AgentID)
		}
	}
	m, err := member(ctx, about)
	if err != nil || m.Name == "" {
		return a, err
	}
	if msg.From == m.Name {
		a.Color = m.Color
	}
	if m.Name != team.LeadName {
		a.AgentID, a.OutputFile = m.AgentID, t.Layout.Bundle(m.Name).Log()
	}
	return a, nil
}

// stateFor returns the team state block for the lead, "" for other members.
func (t *Team) stateFor(ctx context.Context, c Caller) (string, error) {
	if c.Name != team.LeadName {
		return "", nil
	}
	return t.State(ctx)
}

// State is the team as its lead is told of it.
func (t *Team) State(ctx context.Context) (string, error) {
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return "", err
	}
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return "", err
	}
	counts, err := t.Ledger.Counts(ctx)
	if err != nil {
		return "", err
	}
	f := inbox.TeamFacts{Name: row.Name, ID: row.Key, Role: team.RoleLeader, PendingTasks: counts.Pending}
	for _, m := range members {
		if m.Name != team.LeadName && !m.Observed.Terminal() {
			f.Members = append(f.Members, inbox.TeamMember{Name: m.Name, AgentID: m.AgentID})
		}
	}
	return inbox.TeamState(f), nil
}

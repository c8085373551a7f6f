package tool

import (
	"context"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
)

// talkRig is a team without processes: a real ledger and real mailboxes.
type talkRig struct {
	*testing.T
	*Team
}

func newTalkRig(t *testing.T) talkRig {
	t.Helper()
	e := &Env{Home: team.Home{Dir: t.TempDir()}}
	if _, err := e.TeamCreate(t.Context(), Person(), TeamCreateIn{TeamName: "demo"}); err != nil {
		t.Fatal(err)
	}
	tm, err := e.Open(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tm.Close(); err != nil {
			t.Error(err)
		}
	})
	return talkRig{t, tm}
}

// member adds a member that looks like a running one, with a token.
func (r talkRig) member(name string, role team.Role) (Caller, string) {
	r.Helper()
	return r.memberOf("worker", name, role)
}

func (r talkRig) memberOf(agent, name string, role team.Role) (Caller, string) {
	r.Helper()
	m, _, err := r.Ledger.AddMember(r.Context(), ledger.Member{
		Name: name, Role: role, Observed: team.Running, Spec: team.MemberSpec{Agent: agent, Backend: "tmux"}, PaneID: "%9",
	}, true)
	if err != nil {
		r.Fatal(err)
	}
	token := supervisor.NewToken()
	hash := ledger.HashToken(token)
	if _, err := r.Ledger.UpdateMember(r.Context(), ledger.MemberPatch{SessionKey: m.SessionKey, TokenHash: &hash}); err != nil {
		r.Fatal(err)
	}
	c, err := r.Identify(r.Context(), m.AgentID, token)
	if err != nil {
		r.Fatal(err)
	}
	return c, token
}

func (r talkRig) as(name string, role team.Role) Caller {
	r.Helper()
	c, _ := r.member(name, role)
	return c
}

// consume is InboxConsume for a reader that confirms what it gets.
func (r talkRig) consume(ctx context.Context, c Caller) (in InboxOut, err error) {
	err = r.InboxConsume(ctx, c, func(got InboxOut) error {
		in = got
		return nil
	})
	return in, err
}

func (r talkRig) set(name, value string) {
	r.Helper()
	if err := r.Set(r.Context(), Person(), name, value); err != nil {
		r.Fatal(err)
	}
}

func (r talkRig) inbox(name string) []InboxEntry {
	r.Helper()
	in, err := r.Inbox(r.Context(), name, false)
	if err != nil {
		r.Fatal(err)
	}
	return in.Entries
}

func (r talkRig) events(what string) []ledger.Event {
	r.Helper()
	list, err := r.Ledger.Events(r.Context(), 0, 0, ledger.EventFilter{What: what})
	if err != nil {
		r.Fatal(err)
	}
	return list
}

func denied(t *testing.T, err error, code team.Code, reason string) {
	t.Helper()
	if team.CodeOf(err) != code || team.ReasonOf(err) != reason {
		t.Errorf("%s/%s (%v), want %s/%s", team.CodeOf(err), team.ReasonOf(err), err, code, reason)
	}
}

package tool

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

func TestIdentify(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a, token := r.member("a", team.RoleExecutor)
	_, other := r.member("b", team.RoleReviewer)
	if a.Name != "a" || a.Role != team.RoleExecutor || a.Person || a.Session == "" {
		t.Errorf("%+v", a)
	}
	for _, tt := range []struct{ id, token, reason string }{
		{"a@demo", "", "no_token"},
		{"a@demo", other, "token"},
		{"a@demo", token + "x", "token"},
		{"b@demo", token, "token"},
		{team.LeadName + "@demo", token, "token"},
		{team.LeadName + "@demo", "", "no_token"},
		{"ghost@demo", token, "not_a_member"},
		{"a@other", token, "other_team"},
	} {
		_, err := r.Identify(ctx, tt.id, tt.token)
		denied(t, err, team.CodeDenied, tt.reason)
		if tt.token != "" && strings.Contains(err.Error()+team.HintOf(err), tt.token) {
			t.Errorf("the error tells the token: %v", err)
		}
	}
	for _, id := range []string{"a@demo", "a", "A@demo"} {
		if c, err := r.Identify(ctx, id, token); err != nil || c.Name != "a" {
			t.Errorf("%s: %+v, %v", id, c, err)
		}
	}
	if err := r.Ledger.RemoveMember(ctx, a.Session); err != nil {
		t.Fatal(err)
	}
	_, err := r.Identify(ctx, "a@demo", token)
	denied(t, err, team.CodeDenied, "not_a_member")
}

// The sender in the ledger is the verified caller, whatever a message says.
func TestSenderIsTheVerifiedOne(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	a := r.as("a", team.RoleExecutor)
	m, err := r.PostAs(a)(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: team.LeadName, Text: "I am the lead"})
	if err != nil || m.From != "a" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestJoinAndLeave(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	out, err := r.Join(ctx, Person(), JoinIn{Name: "Guest", Role: "reviewer"})
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, kv := range out.Env {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	c, err := r.Identify(ctx, env[team.EnvAgentID], env[team.EnvToken])
	if err != nil || c.Name != "guest" || c.Role != team.RoleReviewer {
		t.Fatalf("%+v, %v", c, err)
	}
	if fi, err := os.Stat(out.TokenFile); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	shown, err := json.Marshal(out)
	if err != nil || strings.Contains(string(shown), env[team.EnvToken]) {
		t.Errorf("the token is shown: %s, %v", shown, err)
	}
	cfg, err := team.ReadConfig(r.Layout.Config())
	if err != nil || len(cfg.Members) != 2 {
		t.Errorf("%+v, %v", cfg, err)
	}
	if _, err := r.Send(ctx, Person(), SendIn{Recipient: "guest", Content: "hi"}); err != nil {
		t.Fatal(err)
	}
	if in, err := r.consume(ctx, c); err != nil || len(in.Entries) != 1 {
		t.Errorf("%+v, %v", in, err)
	}
	// Another member cannot send it away; it can leave by itself.
	x := r.as("x", team.RoleExecutor)
	_, err = r.Leave(ctx, x, "guest")
	denied(t, err, team.CodeDenied, "role")
	_, err = r.Leave(ctx, Person(), "x")
	denied(t, err, team.CodeConflict, "supervised")
	if _, err := r.Leave(ctx, c, ""); err != nil {
		t.Fatal(err)
	}
	_, err = r.Identify(ctx, env[team.EnvAgentID], env[team.EnvToken])
	denied(t, err, team.CodeDenied, "not_a_member")
	if _, err := os.Stat(out.TokenFile); !os.IsNotExist(err) {
		t.Errorf("the token file is there: %v", err)
	}
	_, err = r.Leave(ctx, Person(), "guest")
	denied(t, err, team.CodeConflict, team.ReasonMemberRemoved)
}

func TestSettings(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	r.as("a", team.RoleExecutor)
	for name, values := range map[string][]string{
		SetDelegation: {"maybe"}, SetSpawnDepth: {"-1", "x", "99"}, SetMemberBroadcast: {"yes please"},
		SetMaxHops: {"4"}, SetAnswerer + "plan": {"executor", "observer", "ann"}, SetDeadline: {"soon", "-1m"},
	} {
		for _, v := range values {
			denied(t, r.Set(ctx, Person(), name, v), team.CodeInvalid, "")
		}
	}
	for _, name := range []string{"nosuch", "delegation.", "answerer.", "answerer.coffee", ""} {
		denied(t, r.Set(ctx, Person(), name, "auto"), team.CodeNotFound, "setting_not_found")
	}
	denied(t, r.Set(ctx, Person(), "delegation.ghost", "auto"), team.CodeNotFound, team.ReasonMemberNotFound)
	r.set(SetDelegationOf+"a", "auto")
	r.set(SetDeadline, "10m")
	values := func() map[string]string {
		list, err := r.Settings(ctx)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, s := range list {
			out[s.Name] = s.Value
		}
		return out
	}
	got := values()
	for name, want := range map[string]string{
		"delegation.a": "auto", "approval-deadline": "10m", "spawn-depth": "0", "answerer.plan": "leader", "answerer.permission": "person", "answerer.review": "reviewer",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	r.set(SetDeadline, "")
	if got := values()["approval-deadline"]; got != "0" {
		t.Errorf("taken back: %q", got)
	}
	if list := r.events("team.setting"); len(list) != 3 || list[2].Before != "10m" || list[2].After != "" {
		t.Errorf("%+v", list)
	}
}

func TestScratchpadVerbs(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	zero, nine := int64(0), int64(9)
	pad, err := r.ScratchpadMerge(ctx, a, json.RawMessage(`{"n":0,"nested":{"x":1,"y":2}}`), &zero)
	if err != nil || pad.Version != 1 {
		t.Fatalf("%+v, %v", pad, err)
	}
	_, err = r.ScratchpadMerge(ctx, a, json.RawMessage(`{"n":1}`), &nine)
	denied(t, err, team.CodeConflict, team.ReasonScratchpad)
	if err.Error() != "scratchpad_version_conflict: expected 9 current 1" {
		t.Errorf("%v", err)
	}
	if pad, err = r.ScratchpadMerge(ctx, a, json.RawMessage(`{"nested":{"x":3}}`), nil); err != nil || string(pad.Doc) != `{"n":0,"nested":{"x":3}}` {
		t.Errorf("%s, %v", pad.Doc, err)
	}
	// Many who count: nobody's step is lost.
	const writers, steps = 8, 5
	errs := make(chan error, writers)
	for range writers {
		go func() {
			for range steps {
				_, err := r.Ledger.UpdateScratchpad(ctx, func(p ledger.Scratchpad) (json.RawMessage, error) {
					var doc struct{ N int }
					if err := json.Unmarshal(p.Doc, &doc); err != nil {
						return nil, err
					}
					return json.Marshal(map[string]int{"n": doc.N + 1})
				})
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range writers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	pad, err = r.Scratchpad(ctx)
	if err != nil || pad.Version != 2+writers*steps || !strings.Contains(string(pad.Doc), `"n":40`) {
		t.Errorf("%+v %s, %v", pad, pad.Doc, err)
	}
}

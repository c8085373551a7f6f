package tool

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// session opens the own session of a member of kind llm, with a spec.
func (r talkRig) session(name, spec string) Caller {
	r.Helper()
	c, _ := r.memberOf("llm", name, team.RoleExecutor)
	if _, err := r.Specs(r.Context()); err != nil {
		r.Fatal(err)
	}
	if _, err := r.Ledger.OpenSession(r.Context(), ledger.NewSession{Key: c.Session, Member: c.Session}); err != nil {
		r.Fatal(err)
	}
	if _, err := r.Ledger.UpdateSession(r.Context(), ledger.SessionPatch{Key: c.Session, AgentID: &spec}); err != nil {
		r.Fatal(err)
	}
	return c
}

// child opens a child of the caller's session.
func (r talkRig) child(c Caller, spec string) Caller {
	r.Helper()
	key := team.SessionKey{Spec: spec, Kind: team.SessionSubagent, ID: team.NewUUID()}.String()
	if _, err := r.Ledger.OpenSession(r.Context(), ledger.NewSession{Key: key, Owner: c.Session}); err != nil {
		r.Fatal(err)
	}
	c.Conversation = key
	return c
}

// answers runs f and answers its request; it reports whether there was one.
func (r talkRig) answers(approve bool, f func(context.Context) error) (asked bool, err error) {
	r.Helper()
	done := make(chan error, 1)
	go func() { done <- f(r.Context()) }()
	look := make(chan struct{})
	ctx, cancel := context.WithCancel(r.Context())
	go func() {
		defer close(look)
		_ = r.OnChange(ctx, func() error {
			list, err := r.Ledger.Approvals(ctx, ledger.ApprovalFilter{State: ledger.ApprovalPending})
			if err != nil || len(list) == 0 {
				return err
			}
			asked = true
			if _, err = r.Answer(ctx, Person(), AnswerIn{ID: list[0].RequestID, Approve: approve, Feedback: "no"}); err != nil {
				r.Errorf("answer: %v", err)
			}
			return errors.Join(err, errors.New("answered"))
		})
	}()
	err = <-done
	cancel()
	<-look
	return asked, err
}

// TestNobodyGainsBySpecs: a spec that an agent creates, changes or switches to allows no tool,
// skill or model that the agent does not have, unless somebody has approved it. A person and a lead
// that is a program of its own are bound by their roles.
func TestNobodyGainsBySpecs(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	r.set(SetModels, "script/*, work/small")
	dev := r.session("dev", "default")
	reviewer := r.session("rev", "reviewer")
	child := r.child(dev, "default")
	foreign := r.as("other", team.RoleExecutor)
	leader := r.as("boss", team.RoleLeader)
	create := func(c Caller, draft string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := r.CreateSpec(ctx, c, json.RawMessage(draft))
			return err
		}
	}
	update := func(c Caller, id, patch string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := r.UpdateSpec(ctx, c, id, json.RawMessage(patch))
			return err
		}
	}
	become := func(c Caller, key, spec string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, _, err := r.SetAgent(ctx, c, key, spec, false)
			return err
		}
	}
	model := func(c Caller, name string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := r.SetModel(ctx, c, c.OwnSession(), "work", name)
			return err
		}
	}
	for _, c := range []struct {
		why  string
		asks bool
		do   func(context.Context) error
	}{
		{"who has everything may give everything", false, create(dev, `{"name":"all"}`)},
		{"less than it has", false, create(reviewer, `{"name":"Reader One","policy":{"tools":{"allow":["read","grep"]}}}`)},
		{"a tool that is denied to it", true, create(reviewer, `{"name":"shells","policy":{"tools":{"allow":["read","shell"]}}}`)},
		{"everything", true, create(reviewer, `{"name":"everything"}`)},
		{"it takes away what bounds another", true, update(reviewer, "scout", `{"policy":{"tools":{"allow":null}}}`)},
		{"it is bounded further", false, update(reviewer, "reader-one", `{"policy":{"tools":{"deny":["grep"]}}}`)},
		{"a child has no shell to give", true, create(child, `{"name":"childs","policy":{"tools":{"allow":["shell"]}}}`)},
		{"a child becomes what has no shell either", false, become(child, child.Conversation, "reader-one")},
		{"its parent makes it what it is itself", false, become(dev, child.Conversation, "all")},
		{"the reviewer becomes what has a shell", true, become(reviewer, reviewer.Session, "default")},
		{"nobody knows what another program has", true, create(foreign, `{"name":"foreign","policy":{"tools":{"allow":["read"]}}}`)},
		{"a lead is bound by its role", false, create(leader, `{"name":"lead's"}`)},
		{"a person too", false, create(Person(), `{"name":"person's","agent_id":"persons"}`)},
		{"a model that agents choose", false, model(dev, "small")},
		{"one that they do not", true, model(dev, "large")},
		{"one in a spec", true, create(dev, `{"name":"large","defaults":{"model":{"provider":"work","model":"large"}}}`)},
		{"a lead sets what it likes for others", false, func(ctx context.Context) error {
			_, err := r.SetModel(ctx, leader, dev.Session, "work", "large")
			return err
		}},
	} {
		asked, err := r.answers(true, c.do)
		if err != nil || asked != c.asks {
			t.Errorf("%s: asked %v, want %v; %v", c.why, asked, c.asks, err)
		}
	}
	reviewer = r.session("again", "reviewer")
	// What is refused changes nothing.
	asked, err := r.answers(false, create(reviewer, `{"name":"refused"}`))
	if !asked || !team.IsCode(err, team.CodeDenied) {
		t.Errorf("%v, %v", asked, err)
	}
	if _, err := r.Spec(t.Context(), "refused"); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("%v", err)
	}
	// Others' sessions are not its own.
	for _, do := range []func(context.Context) error{become(dev, reviewer.Session, "all"), become(child, dev.Session, "reviewer")} {
		denied(t, do(t.Context()), team.CodeDenied, "role")
	}
	// A question that nobody waits for any more is withdrawn.
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- create(reviewer, `{"name":"gone"}`)(ctx) }()
	_ = r.OnChange(t.Context(), func() error {
		list, err := r.Ledger.Approvals(t.Context(), ledger.ApprovalFilter{State: ledger.ApprovalPending})
		if err == nil && len(list) > 0 {
			err = errors.New("asked")
		}
		return err
	})
	cancel()
	if err := <-gone; err == nil {
		t.Error("an approval that nobody gave")
	}
	if list, err := r.Approvals(t.Context(), false); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestSpecsAreFoundAndRefused(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	r.Env.OwnSpecs = func() ([]team.AgentSpec, []error) {
		return []team.AgentSpec{{ID: "mine", Name: "Mine"}, {ID: "x", Name: "Reviewer"}}, nil // the second takes a name of ours
	}
	ctx := t.Context()
	list, err := r.Specs(ctx)
	ids := make([]string, len(list))
	for i, s := range list {
		ids[i] = s.ID
	}
	if err != nil || !slices.Equal(ids, []string{"default", "mine", "reviewer", "scout"}) {
		t.Fatalf("%v, %v", ids, err)
	}
	for draft, want := range map[string]team.Code{
		`{"name":"REVIEWER"}`: team.CodeConflict, `{"name":"a","agent_id":"mine"}`: team.CodeConflict, `{"name":"worker"}`: team.CodeInvalid,
		`{"name":"b","polcy":{}}`: team.CodeInvalid, `{"name":""}`: team.CodeInvalid, `[]`: team.CodeInvalid,
	} {
		if _, err := r.CreateSpec(ctx, Person(), json.RawMessage(draft)); !team.IsCode(err, want) {
			t.Errorf("%s: %v", draft, err)
		}
	}
	if _, err := r.UpdateSpec(ctx, Person(), "mine", json.RawMessage(`{"agent_id":"yours"}`)); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("%v", err)
	}
	s, err := r.UpdateSpec(ctx, Person(), "MINE", json.RawMessage(`{"description":"d","defaults":{"system_prompt":"p"},"policy":{"tools":{"deny":["shell"]}}}`))
	if err != nil || s.Description != "d" || s.Defaults.SystemPrompt != "p" || s.Policy.Tools.Allow != nil {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err = r.UpdateSpec(ctx, Person(), "mine", json.RawMessage(`{"description":null,"policy":{"tools":{"allow":[]}}}`)); err != nil || s.Description != "" || s.Policy.Tools.Allow == nil || s.Defaults.SystemPrompt != "p" {
		t.Errorf("%+v, %v", s, err)
	}
	_, err = r.Spec(ctx, "reviewers")
	if !team.IsCode(err, team.CodeNotFound) || !strings.Contains(team.HintOf(err), "reviewer") {
		t.Errorf("%v, %q", err, team.HintOf(err))
	}
	dev := r.session("dev", "default")
	// A part of a name is enough for an operation, and never where it means several.
	for part, want := range map[string]string{"scou": "scout", "review": "reviewer", "nothing": ""} {
		_, s, err := r.SetAgent(ctx, Person(), dev.Session, part, false)
		if s.ID != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v", part, s.ID, err)
		}
		if _, _, err := r.SetAgent(ctx, Person(), dev.Session, part, true); !team.IsCode(err, team.CodeNotFound) {
			t.Errorf("%s is no exact name: %v", part, err)
		}
	}
	if _, _, err := r.SetAgent(ctx, Person(), dev.Session, "e", false); team.ReasonOf(err) != team.ReasonAgentAmbiguous || !strings.Contains(err.Error(), "default, mine, reviewer") {
		t.Errorf("%v", err)
	}
	if _, _, err := r.SetAgent(ctx, Person(), dev.Session, "mine", true); err != nil {
		t.Fatal(err)
	}
	if _, err := r.DeleteSpec(ctx, Person(), "mine"); team.ReasonOf(err) != team.ReasonSpecInUse {
		t.Errorf("%v", err)
	}
	if _, err := r.DeleteSpec(ctx, Person(), "scout"); err != nil {
		t.Error(err)
	}
	if _, err := r.DeleteSpec(ctx, dev, "reviewer"); !team.IsCode(err, team.CodeDenied) {
		t.Errorf("%v", err)
	}
}

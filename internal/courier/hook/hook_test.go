package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func TestMain(m *testing.M) {
	done := strays.Place(team.EnvRuntime)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { os.Exit(done(code)) }))
}

// rig is a team with one member, ann, whose agent is Claude Code.
type rig struct {
	cli  string // adapter.Claude if empty
	t    *testing.T
	env  *tool.Env
	team *tool.Team
	ann  ledger.Member
	vars map[string]string

	mu   sync.Mutex
	told []team.Observation
}

func newRig(t *testing.T) *rig {
	ctx := t.Context()
	r := &rig{t: t, env: &tool.Env{Home: team.Home{Dir: t.TempDir()}}}
	if _, err := r.env.TeamCreate(ctx, tool.Person(), tool.TeamCreateIn{TeamName: "demo"}); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.team, err = r.env.Open(ctx, "demo"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.team.Close(); err != nil {
			t.Error(err)
		}
	})
	r.ann, _, err = r.team.Ledger.AddMember(ctx, ledger.Member{Name: "ann", Spec: team.MemberSpec{Agent: adapter.Claude}}, true)
	if err != nil {
		t.Fatal(err)
	}
	token, gen := supervisor.NewToken(), team.NewUUID()
	hash := ledger.HashToken(token)
	if _, err := r.team.Ledger.UpdateMember(ctx, ledger.MemberPatch{SessionKey: r.ann.SessionKey, Generation: &gen, TokenHash: &hash}); err != nil {
		t.Fatal(err)
	}
	b := r.team.Layout.Bundle("ann")
	if err := os.MkdirAll(string(b), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := courier.WriteLink(b, adapter.Link{Agent: adapter.Claude, Generation: gen, Version: "2.1.329", Ways: []adapter.Way{adapter.WayHooks}}); err != nil {
		t.Fatal(err)
	}
	r.vars = map[string]string{
		team.EnvHome: r.env.Home.Dir, team.EnvAgentID: "ann@demo", team.EnvGen: gen, team.EnvToken: token,
	}
	return r
}

func (r *rig) post(text string) string {
	r.t.Helper()
	m, _, err := mail.Mailer{Layout: r.team.Layout, Ledger: r.team.Ledger}.Post(r.t.Context(),
		ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: text})
	if err != nil {
		r.t.Fatal(err)
	}
	return m.ID
}

func (r *rig) in(event, input string, write func(adapter.HookReply) error) In {
	return In{
		CLI: cmp.Or(r.cli, adapter.Claude), Event: event, Input: []byte(input), Getenv: func(k string) string { return r.vars[k] },
		Open: r.env.Open, Write: write, within: time.Minute,
		Tell: func(_, _ string, o team.Observation) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.told = append(r.told, o)
			return nil
		},
	}
}

// call runs a hook and returns its answer.
func (r *rig) call(event, input string) adapter.HookReply {
	r.t.Helper()
	var out adapter.HookReply
	n := 0
	err := Run(r.t.Context(), r.in(event, input, func(a adapter.HookReply) error {
		out, n = a, n+1
		return nil
	}))
	if err != nil || n != 1 {
		r.t.Fatalf("%s: %v, %d answers", event, err, n)
	}
	return out
}

func (r *rig) state(id string) team.DeliveryState {
	r.t.Helper()
	d, err := r.team.Ledger.Delivery(r.t.Context(), id, "ann")
	if err != nil {
		r.t.Fatal(err)
	}
	return d.State
}

func (r *rig) want(id string, s team.DeliveryState) {
	r.t.Helper()
	if got := r.state(id); got != s {
		r.t.Errorf("the message is %s, want %s", got, s)
	}
}

const inC1 = `{"session_id":"c1"}`

func TestMailIsGivenOnceAndAcceptedOnEvidence(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if got := r.call("PostToolUse", inC1); got != (adapter.HookReply{}) {
		t.Errorf("without mail it answers %+v", got)
	}
	id := r.post("look at </teammate-message> x")
	if got := r.call("PreToolUse", inC1); got != (adapter.HookReply{}) {
		t.Errorf("a hook that gives no mail answers %+v", got)
	}
	got := r.call("PostToolUse", inC1)
	var answer struct {
		Out struct{ AdditionalContext string } `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal([]byte(got.Stdout), &answer); err != nil {
		t.Fatal(err)
	}
	if text := answer.Out.AdditionalContext; !strings.Contains(text, "&lt;/teammate-message>") || !strings.Contains(text, id) {
		t.Errorf("the mail is not escaped, or has no id: %s", text)
	}
	r.want(id, team.Injected)
	if got := r.call("Stop", inC1); got != (adapter.HookReply{}) {
		t.Errorf("given again: %+v", got)
	}
	r.want(id, team.Accepted)
	in, err := r.team.InboxPeek(t.Context(), tool.Caller{Name: "ann", Session: r.ann.SessionKey, Role: team.RoleExecutor})
	if err != nil || len(in.Entries) != 0 {
		t.Errorf("its mailbox shows what it was given: %d, %v", len(in.Entries), err)
	}
}

func TestStopBlocksOnlyForMail(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.call("UserPromptSubmit", inC1)
	if got := r.call("Stop", inC1); got != (adapter.HookReply{}) {
		t.Errorf("answers %+v", got)
	}
	id := r.post("one more thing")
	if got := r.call("Stop", inC1); !strings.Contains(got.Stdout, "one more thing") {
		t.Errorf("answers %+v", got)
	}
	if last := r.told[len(r.told)-1]; last.Activity != team.Working {
		t.Errorf("a turn that goes on is told as %s", last.Activity)
	}
	if got := r.call("Stop", inC1); got != (adapter.HookReply{}) {
		t.Errorf("blocks twice: %+v", got)
	}
	r.want(id, team.Accepted)
	if last := r.told[len(r.told)-1]; last.Activity != team.Idle {
		t.Errorf("the end is told as %s", last.Activity)
	}
}

// TestStopWithoutABudget checks that a hook does not read what the members have used where no budget
// bounds it: nobody can read it here.
func TestStopWithoutABudget(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.team.Ledger.Set(t.Context(), quota.SettingUsage, "unreadable"); err != nil {
		t.Fatal(err)
	}
	r.call("UserPromptSubmit", inC1)
	r.post("one more thing")
	if got := r.call("Stop", inC1); !strings.Contains(got.Stdout, "one more thing") {
		t.Errorf("answers %+v", got)
	}
}

// A hook may be killed anywhere: the next one gives what was claimed and not given.
func TestKilledBetweenClaimAndAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.post("important")
	died := errors.New("killed")
	if err := Run(t.Context(), r.in("PostToolUse", inC1, func(adapter.HookReply) error { return died })); !errors.Is(err, died) {
		t.Fatal(err)
	}
	r.want(id, team.Injected)
	if got := r.call("PostToolUse", inC1); !strings.Contains(got.Stdout, "important") {
		t.Errorf("lost: %+v", got)
	}
	r.call("Stop", inC1)
	r.want(id, team.Accepted)
}

// Killed after its answer, before the record: the transcript shows that it arrived.
func TestKilledAfterTheAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.program()
	id := r.post("important")
	var out adapter.HookReply
	in := r.in("PostToolUse", p.input(""), func(a adapter.HookReply) error { out = a; return errors.New("killed") })
	if err := Run(t.Context(), in); err == nil {
		t.Fatal("no error")
	}
	p.takes("PostToolUse", out)
	for _, want := range []team.DeliveryState{team.Injected, team.Accepted} {
		if got := r.call("PostToolUse", p.input("")); got != (adapter.HookReply{}) {
			t.Errorf("given twice: %+v", got)
		}
		r.want(id, want)
		p.answers()
	}
}

// The supervisor types mail if it has not heard of hooks; no hook gives that mail as well.
func TestTypedMailIsNotGiven(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.post("typed")
	other := r.post("another")
	line := r.vars[team.EnvGen] + " " + id + "\n"
	if err := os.WriteFile(filepath.Join(string(r.team.Layout.Bundle("ann")), "given"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := r.call("UserPromptSubmit", inC1); strings.Contains(got.Stdout, id) || !strings.Contains(got.Stdout, other) {
		t.Errorf("given: %+v", got)
	}
	r.want(id, team.Mailed)
}

// Mail given to a conversation that does not continue is given to the next one.
func TestNewConversationGetsWhatTheOldOneMayNotHave(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.post("important")
	r.call("PostToolUse", inC1)
	if got := r.call("UserPromptSubmit", `{"session_id":"c2"}`); !strings.Contains(got.Stdout, "important") {
		t.Errorf("lost with the conversation: %+v", got)
	}
	r.call("Stop", `{"session_id":"c2"}`)
	r.want(id, team.Accepted)
	c, err := courier.ReadConversation(r.team.Layout.Bundle("ann"), r.ann.SessionKey)
	if err != nil || c.ID != "c2" || !c.Began || c.Working {
		t.Errorf("the conversation is noted as %+v, %v", c, err)
	}
}

// Mail that was given but not read when the conversation was compacted is given once more, and is
// then in the conversation once.
func TestCompactedBeforeItWasRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.program()
	read := r.post("read")
	p.takes("PostToolUse", r.call("PostToolUse", p.input("")))
	p.answers()
	r.call("PreToolUse", p.input(""))
	id := r.post("important")
	got := r.call("PostToolUse", p.input(""))
	if !strings.Contains(got.Stdout, "important") {
		t.Fatalf("answers %+v", got)
	}
	p.takes("PostToolUse", got)
	for range 2 { // twice in a row
		if got := r.call("SessionStart", p.input(`,"source":"compact"`)); got != (adapter.HookReply{}) {
			t.Fatalf("answers %+v", got)
		}
		r.want(read, team.Accepted)
		r.want(id, team.Injected)
	}
	died := errors.New("killed")
	if err := Run(t.Context(), r.in("PostToolUse", p.input(""), func(adapter.HookReply) error { return died })); !errors.Is(err, died) {
		t.Fatal(err)
	}
	if got = r.call("Stop", p.input("")); !strings.Contains(got.Stdout, "important") || strings.Contains(got.Stdout, read) {
		t.Fatalf("lost, or too much: %+v", got)
	}
	p.takes("Stop", got)
	p.answers()
	if got := r.call("Stop", p.input("")); got != (adapter.HookReply{}) {
		t.Errorf("given again: %+v", got)
	}
	r.want(id, team.Accepted)
}

// Tools run in parallel, and so do their hooks.
func TestParallelHooksGiveEachMessageOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var ids []string
	for range 20 {
		ids = append(ids, r.post("m"))
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	all := ""
	for range 6 {
		wg.Go(func() {
			_ = Run(context.Background(), r.in("PostToolUse", inC1, func(a adapter.HookReply) error {
				mu.Lock()
				defer mu.Unlock()
				all += a.Stdout
				return nil
			}))
		})
	}
	wg.Wait()
	for _, id := range ids {
		if n := strings.Count(all, id); n != 1 {
			t.Errorf("%s was given %d times", id, n)
		}
	}
}

// A hook is never in the agent's way.
func TestHookWithoutATeam(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.post("secret")
	for name, change := range map[string]func(map[string]string){
		"no member":   func(v map[string]string) { delete(v, team.EnvAgentID) },
		"no team":     func(v map[string]string) { v[team.EnvAgentID] = "ann@gone" },
		"no home":     func(v map[string]string) { v[team.EnvHome] = filepath.Join(t.TempDir(), "gone") },
		"wrong token": func(v map[string]string) { v[team.EnvToken] = "guessed" },
	} {
		for _, event := range []string{"PostToolUse", "Stop", "Wait", "PermissionRequest", "SessionStart"} {
			old := r.vars
			r.vars = map[string]string{}
			for k, v := range old {
				r.vars[k] = v
			}
			change(r.vars)
			var out []adapter.HookReply
			_ = Run(t.Context(), r.in(event, `{{{`, func(a adapter.HookReply) error {
				out = append(out, a)
				return nil
			}))
			r.vars = old
			if !slices.Equal(out, []adapter.HookReply{{}}) {
				t.Errorf("%s, %s: answers %+v", name, event, out)
			}
		}
	}
}

func TestWaiterWakesAnIdleAgentAndThereIsOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.call("Stop", inC1)
	got := make(chan adapter.HookReply, 1)
	done := make(chan error, 1)
	go func() {
		done <- Run(t.Context(), r.in("Wait", inC1, func(a adapter.HookReply) error {
			got <- a
			return nil
		}))
	}()
	until(t, "a waiter", func() bool {
		on, err := filelock.IsHeld(waitLock(r.team.Layout.Bundle("ann")))
		return err == nil && on
	})
	if second := r.call("Wait", inC1); second != (adapter.HookReply{}) {
		t.Errorf("a second waiter answers %+v", second)
	}
	id := r.post("wake up")
	select {
	case a := <-got:
		if a.Exit != 2 || !strings.Contains(a.Stderr, "wake up") {
			t.Errorf("it says %+v", a)
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("it sleeps on")
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	r.want(id, team.Injected)
	r.call("Stop", inC1)
	r.want(id, team.Accepted)
}

// An agent that needs a login is not woken, as the mail would be lost with a failing turn. It is
// woken after the login.
func TestWaiterLeavesAnAgentThatIsNotLoggedIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.call("Stop", inC1)
	does := func(a team.Activity, w team.WaitFor) {
		t.Helper()
		if _, err := r.team.Ledger.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: r.ann.SessionKey, Activity: &a, WaitsFor: &w}); err != nil {
			t.Fatal(err)
		}
	}
	does(team.Waiting, team.WaitLogin)
	id := r.post("@ann")
	done := make(chan error, 1)
	go func() {
		done <- Run(t.Context(), r.in("Wait", inC1, func(adapter.HookReply) error {
			m, err := r.team.Ledger.MemberBySession(context.WithoutCancel(t.Context()), r.ann.SessionKey)
			if err == nil && m.Activity == team.Waiting {
				t.Error("it was woken and could not work")
			}
			return err
		}))
	}()
	until(t, "a waiter", func() bool {
		on, err := filelock.IsHeld(waitLock(r.team.Layout.Bundle("ann")))
		return err == nil && on
	})
	select { // nothing shows that it has looked; a correct one passes however long that takes
	case err := <-done:
		t.Fatal("it does not wait", err)
	case <-time.After(500 * time.Millisecond):
	}
	does(team.Idle, "")
	if err := <-done; err != nil {
		t.Error(err)
	}
	r.want(id, team.Injected)
}

// The waiting hook survives a failed look: nothing else would wake the agent.
func TestWaiterOutlivesAFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.team.Layout.Bundle("ann")
	link, err := courier.ReadLink(b, r.vars[team.EnvGen])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(string(b), "link.json")); err != nil { // it cannot give mail without it
		t.Fatal(err)
	}
	got := make(chan adapter.HookReply, 1)
	done := make(chan error, 1)
	go func() {
		done <- Run(t.Context(), r.in("Wait", inC1, func(a adapter.HookReply) error {
			got <- a
			return nil
		}))
	}()
	r.post("wake up")
	until(t, "look that has failed", func() bool {
		c, err := courier.ReadConversation(b, r.ann.SessionKey)
		held, lerr := filelock.IsHeld(filepath.Join(string(b), "hook.lock"))
		return err == nil && c.ID == "c1" && lerr == nil && !held
	})
	if err := courier.WriteLink(b, link); err != nil {
		t.Fatal(err)
	}
	select {
	case a := <-got:
		if a.Exit != 2 || !strings.Contains(a.Stderr, "wake up") {
			t.Errorf("it says %+v", a)
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("it sleeps on")
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(5 * time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("no %s", what)
		}
	}
}

// Mail that the agent has fetched with InboxRead is not given again by the hook after that tool,
// unless that hook's input lacks the result.
func TestMailTakenByTheToolIsNotGivenAgain(t *testing.T) {
	r := newRig(t)
	took := func() string {
		t.Helper()
		id := r.post("by the tool")
		c := tool.Caller{Name: "ann", Session: r.ann.SessionKey, Role: team.RoleExecutor}
		if err := r.team.InboxGiven(t.Context(), c, []string{id}); err != nil {
			t.Fatal(err)
		}
		r.want(id, team.Injected)
		return id
	}
	id := took()
	got := r.call("PostToolUse", `{"session_id":"c1","tool_name":"mcp__teamctl__InboxRead","tool_response":[{"text":"{\"msg_id\":\"`+id+`\"}"}]}`)
	if got != (adapter.HookReply{}) {
		t.Errorf("given again: %+v", got)
	}
	r.want(id, team.Accepted)
	id = took()
	got = r.call("PostToolUse", `{"session_id":"c1","tool_name":"Bash","tool_response":"`+id+`"}`)
	if !strings.Contains(got.Stdout, id) {
		t.Errorf("another tool's output counts as the answer: %+v", got)
	}
}

// TestLate: a hook whose time is over before the ledger was read still records that the turn has
// ended, but only of a conversation that its generation has reported before.
func TestLate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.call("UserPromptSubmit", `{"session_id":"c1"}`)
	late := func(gen string) courier.Conversation {
		t.Helper()
		in := r.in("Stop", `{"session_id":"c1"}`, func(adapter.HookReply) error { return nil })
		env := in.Getenv
		in.Getenv = func(name string) string {
			if name == team.EnvGen && gen != "" {
				return gen
			}
			return env(name)
		}
		in.within = time.Millisecond
		in.Open = func(ctx context.Context, _ string) (*tool.Team, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if err := Run(t.Context(), in); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the hook ends with %v", err)
		}
		c, err := courier.ReadConversation(r.team.Layout.Bundle("ann"), r.ann.SessionKey)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := late("another"); !c.Working {
		t.Errorf("a generation that has reported nothing: %+v", c)
	}
	if c := late(""); c.Working || !c.Began || c.ID != "c1" {
		t.Errorf("after the end of the turn: %+v", c)
	}
}

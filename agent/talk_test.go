package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// mate is a conversation whose turns the test ends.
type mate struct {
	prompts chan string
	finish  chan error
	cancels chan struct{}
	done    chan struct{}
	mute    bool   // never reports that a prompt has begun
	reason  string // stop reason of its turns; "" means end_turn
}

func newMate() *mate {
	return &mate{prompts: make(chan string, 10), finish: make(chan error), cancels: make(chan struct{}, 10), done: make(chan struct{})}
}

func (m *mate) Prompt(ctx context.Context, text string, begun func()) (string, error) {
	if !m.mute {
		begun()
	}
	m.prompts <- text
	select {
	case err := <-m.finish:
		if m.mute && err == nil { // an answer is evidence too
			begun()
		}
		return cmp.Or(m.reason, "end_turn"), err
	case <-m.done:
		return "", errors.New("it is gone")
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (m *mate) Cancel(context.Context) error {
	m.cancels <- struct{}{}
	m.finish <- nil
	return nil
}

func (m *mate) Done() <-chan struct{} { return m.done }

// talkTo runs Talk for a member. wait waits for it to return and returns its error.
func talkTo(t *testing.T, r *rig, m Conversation, in TalkIn) (wait func() error) {
	t.Helper()
	row := r.join("coder", "session-coder", team.RoleExecutor)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- Talk(ctx, Identity{AgentID: "coder@demo", Name: "coder", Team: "demo", Session: row.SessionKey, Role: row.Role},
			Env{Ledger: r.led, Box: r.box("coder"), Post: r.post}, m, in)
	}()
	ended := false
	wait = func() error {
		ended = true
		return <-over
	}
	t.Cleanup(func() {
		cancel()
		if !ended {
			<-over
		}
	})
	return wait
}

func (r *rig) state(id string) team.DeliveryState {
	r.t.Helper()
	ds, err := r.led.Deliveries(r.t.Context(), id)
	if err != nil || len(ds) != 1 {
		r.t.Fatalf("%d deliveries, %v", len(ds), err)
	}
	return ds[0].State
}

func message(text string) ledger.NewMessage {
	return ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "coder", Text: text}
}

func TestTalkOneTurnAtATime(t *testing.T) {
	t.Parallel()
	r, m := newRig(t), newMate()
	wait := talkTo(t, r, m, TalkIn{Prompt: "the prompt"})
	if got := <-m.prompts; got != "the prompt" {
		t.Fatalf("first %q", got)
	}
	one, two := r.send(message("number <one>")), r.send(message("number two"))
	if s := r.state(one.ID); s != team.Mailed {
		t.Fatalf("in mid-turn it is %s", s)
	}
	m.finish <- nil
	got := <-m.prompts
	if !strings.Contains(got, "number <one>") || strings.Index(got, "one") > strings.Index(got, "number two") || !strings.Contains(got, `teammate_id="team-lead"`) {
		t.Fatalf("given %q", got)
	}
	m.finish <- nil
	for _, id := range []string{one.ID, two.ID} {
		r.until("accepted", func() bool { return r.state(id) == team.Accepted })
	}
	// A shutdown request does not wait for the end of a turn; the model answers it.
	r.send(message("number three"))
	if got := <-m.prompts; strings.Contains(got, "number two") || !strings.Contains(got, "number three") {
		t.Fatalf("given %q", got)
	}
	req := r.askShutdown("coder")
	<-m.cancels
	if got := <-m.prompts; !strings.Contains(got, req.RequestID) {
		t.Fatalf("asked %q", got)
	}
	r.answerShutdown(req, true)
	m.finish <- nil
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if n := len(m.prompts); n != 0 {
		t.Errorf("%d prompts after the end", n)
	}
}

// TestTalkAsksAnIdleModel checks that an idle model gets shutdown requests too. If it rejects one
// or does not answer, it gets its other mail and continues.
func TestTalkAsksAnIdleModel(t *testing.T) {
	t.Parallel()
	r, m := newRig(t), newMate()
	wait := talkTo(t, r, m, TalkIn{Prompt: "work"})
	<-m.prompts
	rests := 0
	rest := func() { // until the turn is over: an earlier request would end it
		rests++
		m.finish <- nil
		r.until("at rest", func() bool {
			list, err := r.led.Messages(t.Context(), ledger.MessageFilter{Kind: team.KindIdle})
			if err != nil {
				t.Fatal(err)
			}
			return len(list) == rests
		})
	}
	rest()
	for i, answer := range []string{"reject", "none", "approve"} {
		req := r.requestShutdown("coder", fmt.Sprintf("shutdown-%d@coder", i))
		got := <-m.prompts
		if !strings.Contains(got, req.RequestID) || !strings.Contains(got, "shutdown_response") {
			t.Fatalf("asked %q", got)
		}
		mail := r.send(message("more work"))
		if answer != "none" {
			r.answerShutdown(req, answer == "approve")
		}
		m.finish <- nil
		if answer == "approve" {
			break
		}
		if got := <-m.prompts; !strings.Contains(got, "more work") || strings.Contains(got, req.RequestID) {
			t.Fatalf("after %s given %q", answer, got)
		}
		rest()
		r.until("accepted", func() bool { return accepted(r.state(mail.ID)) && accepted(r.state(req.ID)) })
	}
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if n := len(m.cancels); n != 0 {
		t.Errorf("%d turns were ended", n)
	}
	if unread, err := r.box("coder").Unread(t.Context()); err != nil || len(unread) != 1 {
		t.Errorf("%d unread, %v, want the message sent during the approval", len(unread), err)
	}
}

// TestTalkBriefing checks that the first prompt begins with the briefing, whatever it is, and
// later ones do not.
func TestTalkBriefing(t *testing.T) {
	t.Parallel()
	r, m := newRig(t), newMate()
	talkTo(t, r, m, TalkIn{Briefing: "you are coder"})
	for i, text := range []string{"one", "two"} {
		r.send(message(text))
		got := <-m.prompts
		if !strings.Contains(got, text) || strings.HasPrefix(got, "you are coder\n\n") != (i == 0) {
			t.Errorf("prompt %d: %q", i, got)
		}
		m.finish <- nil
	}
}

// TestTalkApprovesForAModelWithoutAPrompt checks that a shutdown request for a model that has
// never had a prompt is approved without one, since there is nothing to finish.
func TestTalkApprovesForAModelWithoutAPrompt(t *testing.T) {
	t.Parallel()
	r, m := newRig(t), newMate()
	wait := talkTo(t, r, m, TalkIn{})
	req := r.askShutdown("coder")
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	answers, err := r.led.Messages(t.Context(), ledger.MessageFilter{RequestID: req.RequestID, Kind: team.KindShutdownApproved})
	if err != nil || len(answers) != 1 || len(m.prompts) != 0 {
		t.Errorf("%d answers, %d prompts, %v", len(answers), len(m.prompts), err)
	}
}

func TestTalkAcceptsOnEvidenceOnly(t *testing.T) {
	t.Parallel()
	r, m := newRig(t), newMate()
	m.mute = true
	talkTo(t, r, m, TalkIn{})
	msg := r.send(message("one"))
	<-m.prompts
	if s := r.state(msg.ID); s != team.Injected {
		t.Fatalf("without a sign it is %s", s)
	}
	m.finish <- errors.New("no such model")
	r.send(message("two"))
	if got := <-m.prompts; strings.Contains(got, "one") {
		t.Fatalf("delivered again: %q", got)
	}
	if s := r.state(msg.ID); s != team.Injected {
		t.Fatalf("after a failed turn it is %s", s)
	}
	m.finish <- nil
}

func TestTalkInterrupt(t *testing.T) {
	t.Parallel()
	r, m := newRig(t), newMate()
	turns := make(chan struct{})
	talkTo(t, r, m, TalkIn{Prompt: "long work", Interrupt: turns})
	<-m.prompts
	turns <- struct{}{}
	<-m.cancels
	r.send(message("after it"))
	if got := <-m.prompts; !strings.Contains(got, "after it") {
		t.Fatalf("given %q", got)
	}
	m.finish <- nil
}

// TestTalkLateInterrupt checks that an interrupt from before a turn does not end it.
func TestTalkLateInterrupt(t *testing.T) {
	t.Parallel()
	r, m := newRig(t), newMate()
	turns := make(chan struct{}, 1)
	turns <- struct{}{}
	talkTo(t, r, m, TalkIn{Prompt: "work", Interrupt: turns})
	<-m.prompts
	m.finish <- nil
	r.until("idle", func() bool { return r.coder().Activity == team.Idle })
	if len(m.cancels) > 0 {
		t.Error("the turn was ended")
	}
}

// slowMate begins a turn when the test says so. Its Cancel ends no turn.
type slowMate struct {
	*mate
	begin chan struct{}
}

func (m slowMate) Prompt(_ context.Context, text string, begun func()) (string, error) {
	m.prompts <- text
	<-m.begin
	begun()
	return "cancelled", <-m.finish
}

func (m slowMate) Cancel(context.Context) error {
	m.cancels <- struct{}{}
	return nil
}

// TestTalkEarlyInterrupt checks that an interrupt that may have reached the agent before the
// prompt is repeated.
func TestTalkEarlyInterrupt(t *testing.T) {
	t.Parallel()
	r, m := newRig(t), slowMate{newMate(), make(chan struct{})}
	turns := make(chan struct{})
	talkTo(t, r, m, TalkIn{Prompt: "long work", Interrupt: turns})
	<-m.prompts
	turns <- struct{}{}
	<-m.cancels
	close(m.begin)
	<-m.cancels
	m.finish <- nil
	r.until("idle", func() bool { return r.coder().Activity == team.Idle })
}

func TestTalkEndsWithTheAgent(t *testing.T) {
	t.Parallel()
	for _, working := range []bool{false, true} {
		r, m := newRig(t), newMate()
		in := TalkIn{}
		if working {
			in.Prompt = "work"
		}
		wait := talkTo(t, r, m, in)
		if working {
			<-m.prompts
		}
		close(m.done)
		if err := wait(); err == nil {
			t.Errorf("working %v: no error", working)
		}
	}
}

// moded is a mate with modes.
type moded struct {
	*mate
	modes chan team.Mode
}

func (m moded) SetMode(_ context.Context, mode team.Mode) (bool, error) {
	m.modes <- mode
	return true, nil
}

// TestTalkFollowsTheMode checks that the conversation follows changes of the member's mode,
// before and during a turn, and otherwise keeps its own mode.
func TestTalkFollowsTheMode(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := moded{newMate(), make(chan team.Mode, 10)}
	wait := talkTo(t, r, m, TalkIn{Prompt: "plan it"})
	<-m.prompts
	for _, mode := range []team.Mode{team.ModePlan, team.ModeAcceptEdits} {
		if _, err := r.led.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: "session-coder", Mode: &mode}); err != nil {
			t.Fatal(err)
		}
		if got := <-m.modes; got != mode {
			t.Errorf("put into %s, not %s", got, mode)
		}
	}
	m.finish <- nil
	mode := team.ModeDefault
	if _, err := r.led.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: "session-coder", Mode: &mode}); err != nil {
		t.Fatal(err)
	}
	r.send(ledger.NewMessage{From: team.LeadName, To: "coder", Kind: team.KindMessage, Text: "go on"})
	<-m.prompts
	if got := <-m.modes; got != team.ModeDefault {
		t.Errorf("put into %s", got)
	}
	m.finish <- nil
	close(m.done)
	if err := wait(); err == nil || len(m.modes) != 0 {
		t.Errorf("%v, and %d more modes", err, len(m.modes))
	}
}

// TestTalkTellsOfAFailedTurn checks that a turn that ended with an error, or that the agent did
// not complete, is reported as failed and recorded in the member's row until the next turn.
func TestTalkTellsOfAFailedTurn(t *testing.T) {
	t.Parallel()
	r, m := newRig(t), newMate()
	talkTo(t, r, m, TalkIn{Prompt: "work"})
	<-m.prompts
	for i, c := range []struct {
		reason string
		err    error
		failed string
	}{
		{"", errors.New("no such\nmodel"), "no such model"},
		{"refusal", nil, "the agent refused to go on (refusal)"},
		{"end_turn", nil, ""},
	} {
		m.reason = c.reason
		m.finish <- c.err
		var last inbox.IdleNotification
		r.until("told", func() bool {
			list, err := r.led.Messages(t.Context(), ledger.MessageFilter{Kind: team.KindIdle})
			if err != nil {
				t.Fatal(err)
			}
			if len(list) > 0 {
				f, _ := inbox.Parse(list[len(list)-1].Text)
				last, _ = f.(inbox.IdleNotification)
			}
			return len(list) == i+1
		})
		want := inbox.IdleAvailable
		if c.failed != "" {
			want = inbox.IdleFailed
		}
		if last.IdleReason != want || last.FailureReason != c.failed {
			t.Errorf("told %+v", last)
		}
		if row, err := r.led.Member(t.Context(), "coder"); err != nil || row.Activity != team.Idle || row.TurnError != c.failed {
			t.Errorf("%s, %q, %v", row.Activity, row.TurnError, err)
		}
		r.send(message("on"))
		<-m.prompts
	}
	m.finish <- nil
}

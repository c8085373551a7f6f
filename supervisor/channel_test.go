package supervisor

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/approval"
	"github.com/teamctl/teamctl/supervisor/delivery"
	"github.com/teamctl/teamctl/team"
)

// fakeCourier opens channels that do what the test says.
type fakeCourier struct {
	opened  chan delivery.ChannelIn
	deliver func(ctx context.Context, mail []team.Mail) []team.Outcome
	answer  func(r team.Reply) error
	// interrupt is nil for one that succeeds.
	interrupt func(context.Context) error

	mu       sync.Mutex
	answered []team.Reply
	given    []string
	settles  bool
	answers  bool          // its agent answers a shutdown request
	grace    time.Duration // of the policy, where it is not the rig's
	evidence time.Duration // as grace
	doubt    time.Duration // as grace
	s        *Supervisor
}

func (c *fakeCourier) Open(_ context.Context, in delivery.ChannelIn) (delivery.Channel, error) {
	c.opened <- in
	return c, nil
}

func (c *fakeCourier) Deliver(ctx context.Context, mail []team.Mail) []team.Outcome {
	c.mu.Lock()
	for _, m := range mail {
		c.given = append(c.given, m.ID)
	}
	c.mu.Unlock()
	return c.deliver(ctx, mail)
}

func (c *fakeCourier) Answer(_ context.Context, r team.Reply) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered = append(c.answered, r)
	return c.answer(r)
}

func (c *fakeCourier) Settles() bool { return c.settles }

func (c *fakeCourier) Interrupt(ctx context.Context) error {
	if c.interrupt == nil {
		return nil
	}
	return c.interrupt(ctx)
}

func (c *fakeCourier) Close() {}

func held(mail []team.Mail) (out []team.Outcome) {
	for _, m := range mail {
		out = append(out, team.Outcome{ID: m.ID, State: team.Held, Reason: "not now"})
	}
	return out
}

// talking returns a team with one member that a channel reaches.
func talking(t *testing.T, c *fakeCourier) (r *rig, say func(team.Observation)) {
	r = newRig(t)
	return r, r.talk(c, team.RestartNever)
}

// talk adds such a member to a rig without a supervisor.
func (r *rig) talk(c *fakeCourier, restart team.RestartPolicy) (say func(team.Observation)) {
	r.Helper()
	c.opened = make(chan delivery.ChannelIn, 1)
	if c.answer == nil {
		c.answer = func(team.Reply) error { return nil }
	}
	if c.deliver == nil {
		c.deliver = func(_ context.Context, mail []team.Mail) []team.Outcome { return held(mail) }
	}
	r.by, r.plans = c, plans{channel: true, answers: c.answers}
	if c.grace > 0 {
		r.policy.Grace = c.grace
	}
	r.policy.Evidence, r.policy.Doubt = c.evidence, c.doubt
	c.s = r.supervisor()
	r.spawn(c.s, "a", restart)
	return (<-c.opened).Report
}

func (r *rig) post(text string) string {
	r.Helper()
	m, _, err := r.mailer().Post(r.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: text})
	if err != nil {
		r.Fatal(err)
	}
	return m.ID
}

// until waits for a condition of the ledger.
func (r *rig) until(what string, ok func() bool) {
	r.Helper()
	r.wait("a", what, func(ledger.Member) bool { return ok() })
}

func (r *rig) delivery(id string) ledger.Delivery {
	r.Helper()
	d, err := r.led.Delivery(r.Context(), id, "a")
	if err != nil {
		r.Fatal(err)
	}
	return d
}

// A hook gives a message while the channel tries to: the channel's outcome comes too late to have
// it given again.
func TestHeldDoesNotTakeBackWhatAHookGave(t *testing.T) {
	t.Parallel()
	c := &fakeCourier{}
	var r *rig
	handed := make(chan struct{})
	c.deliver = func(ctx context.Context, mail []team.Mail) []team.Outcome {
		_, err := r.led.Mark(ctx, ledger.DeliveryMark{MessageID: mail[0].ID, Recipient: "a", State: team.Injected, Evidence: "a hook"})
		if err != nil {
			t.Error(err)
		}
		defer close(handed)
		return held(mail)
	}
	r, say := talking(t, c)
	id := r.post("once")
	<-handed
	say(team.Observation{Tier: team.TierHook, Activity: team.Idle, Source: "a hook"}) // what is held is tried again
	r.wait("a", "idle", func(m ledger.Member) bool { return m.Activity == team.Idle })
	r.until("handed over once", func() bool { return r.delivery(id).State == team.Injected })
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.given, []string{id}) {
		t.Errorf("given %d times", len(c.given))
	}
}

// An agent becomes idle while the channel still delivers by its former state: mail that the channel
// leaves then is tried again, without a further observation.
func TestIdleDuringAHandOver(t *testing.T) {
	t.Parallel()
	c := &fakeCourier{}
	tries, first := make(chan struct{}), make(chan struct{})
	c.deliver = func(ctx context.Context, mail []team.Mail) (out []team.Outcome) {
		select {
		case tries <- struct{}{}:
			<-first
			return held(mail)
		case <-first:
		}
		for _, m := range mail {
			out = append(out, team.Outcome{ID: m.ID, State: team.Accepted, Evidence: "it answers"})
		}
		return out
	}
	r, say := talking(t, c)
	say(team.Observation{Tier: team.TierHook, Activity: team.Working, Source: "a hook"})
	id := r.post("soon")
	<-tries
	say(team.Observation{Tier: team.TierHook, Activity: team.Idle, Source: "a hook"})
	r.wait("a", "idle", func(m ledger.Member) bool { return m.Activity == team.Idle })
	close(first)
	r.until("handed over", func() bool { return r.delivery(id).State == team.Accepted })
}

// A supervisor that handed a message over exits before anything shows that the agent has it: the
// next one has the channel find out, and gives the message to no other agent.
func TestHandedOverBeforeIsAskedAbout(t *testing.T) {
	t.Parallel()
	for _, settles := range []bool{true, false} {
		c := &fakeCourier{settles: settles}
		c.deliver = func(_ context.Context, mail []team.Mail) (out []team.Outcome) {
			for _, m := range mail {
				o := team.Outcome{ID: m.ID, State: team.Injected}
				if m.Again {
					o.State, o.Evidence = team.Accepted, "the session has it"
				}
				out = append(out, o)
			}
			return out
		}
		r, _ := talking(t, c)
		first := r.post("before")
		r.until("handed over", func() bool { return r.delivery(first).State == team.Injected })
		c.s.Close()
		r.supervisor()
		<-c.opened
		second := r.post("after")
		r.until("handed over", func() bool { return r.delivery(second).State == team.Injected })
		want, given := team.Injected, []string{first, second}
		if settles {
			want, given = team.Accepted, []string{first, first, second}
		}
		r.until("settled", func() bool { return r.delivery(first).State == want })
		c.mu.Lock()
		if !slices.Equal(c.given, given) {
			t.Errorf("settles %v: given %d times", settles, len(c.given))
		}
		c.mu.Unlock()
	}
}

var askRun = team.Ask{ID: "dialog-c1-1", For: team.WaitPermission, Tool: "shell", Description: "rm x"}

// asked has the member make a request and returns the row in the queue.
func (r *rig) asked(say func(team.Observation)) (a ledger.Approval) {
	r.Helper()
	ask := askRun
	say(team.Observation{Tier: team.TierHook, Activity: team.Waiting, For: team.WaitPermission, Source: "a hook", Ask: &ask})
	r.until("asked", func() bool {
		all, err := r.led.Approvals(r.Context(), ledger.ApprovalFilter{})
		if err != nil || len(all) != 1 {
			return false
		}
		a = all[0]
		return true
	})
	return a
}

func (r *rig) reply(a ledger.Approval, yes bool, input ...string) {
	r.Helper()
	f := inbox.PermissionResponse{RequestID: a.RequestID, Approve: yes, Error: map[bool]string{false: "no"}[yes]}
	for _, in := range input {
		f.UpdatedInput = json.RawMessage(in)
	}
	text, err := inbox.Encode(f)
	if err != nil {
		r.Fatal(err)
	}
	out, err := r.led.As(team.LeadName).Answer(r.Context(), ledger.AnswerIn{ID: a.ID, Approve: yes, Feedback: "no", By: team.LeadName,
		Message: &ledger.NewMessage{Kind: team.KindPermissionResponse, From: team.LeadName, RequestID: a.RequestID, Text: text, Summary: "answer"}})
	if err != nil {
		r.Fatal(err)
	}
	r.mailer().Deliver(r.Context(), out.Deliveries)
}

// response is the state of the mail with the answer.
func (r *rig) response() (d ledger.Delivery) {
	r.Helper()
	all, err := r.led.Messages(r.Context(), ledger.MessageFilter{Kind: team.KindPermissionResponse})
	if err != nil || len(all) != 1 {
		r.Fatal(err, len(all))
	}
	return r.delivery(all[0].ID)
}

// An agent's request is reported to the lead, has a deadline, and is answered through the channel
// that reported it, not by mail.
func TestAskIsAnsweredByItsRequest(t *testing.T) {
	t.Parallel()
	c := &fakeCourier{}
	tries, tried := 0, make(chan struct{})
	c.answer = func(team.Reply) error {
		if tries++; tries == 1 {
			close(tried)
			return team.Errorf(team.CodeUnavailable, "not drawn yet").WithReason("no_dialog")
		}
		return nil
	}
	r, say := talking(t, c)
	if err := r.led.Set(r.Context(), delivery.SettingDeadline, "1h"); err != nil {
		t.Fatal(err)
	}
	a := r.asked(say)
	if left := time.Until(time.UnixMilli(a.Deadline)); left < 50*time.Minute || left > time.Hour {
		t.Errorf("its deadline is in %s", left)
	}
	if told, err := r.led.Messages(r.Context(), ledger.MessageFilter{Kind: team.KindPermissionRequest}); err != nil || len(told) != 1 || told[0].To != team.LeadName {
		t.Errorf("the lead was told %+v, %v", told, err)
	}
	r.reply(a, true)
	<-tried
	for range 20 { // each of them finds the first try on its way, owed, or the second on its way
		say(team.Observation{Tier: team.TierScreen, Source: "the dialog is drawn"})
	}
	r.until("answered", func() bool { return r.response().State == team.Accepted })
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.answered) != 2 || c.answered[1].ID != askRun.ID || !c.answered[1].Allow || len(c.given) != 0 {
		t.Errorf("answered %+v, given %v", c.answered, c.given)
	}
}

// A channel can only let a request pass as it is: one approved with another input is refused, and
// the agent is told with which input it may try again.
func TestAskApprovedWithAnotherInput(t *testing.T) {
	t.Parallel()
	c := &fakeCourier{}
	r, say := talking(t, c)
	r.reply(r.asked(say), true, `{"command":"ls x"}`)
	r.until("answered", func() bool { return r.response().State == team.Accepted })
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.answered) != 1 || c.answered[0].Allow || !strings.Contains(c.answered[0].Feedback, `{"command":"ls x"}`) {
		t.Errorf("answered %+v", c.answered)
	}
}

// A request without an answer by its deadline is refused in the agent, too.
func TestAskThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	c := &fakeCourier{}
	r, say := talking(t, c)
	if err := r.led.Set(r.Context(), delivery.SettingDeadline, "50ms"); err != nil {
		t.Fatal(err)
	}
	r.asked(say)
	r.until("refused", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.answered) > 0
	})
	r.until("settled", func() bool { return r.response().State == team.Accepted })
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.answered[0]; len(c.answered) != 1 || a.ID != askRun.ID || a.Allow || !strings.Contains(a.Feedback, "in time") {
		t.Errorf("answered %+v", c.answered)
	}
}

func TestAnswerThatComesTooLate(t *testing.T) {
	t.Parallel()
	c := &fakeCourier{answer: func(team.Reply) error { return team.Errorf(team.CodeNotFound, "it is over") }}
	r, say := talking(t, c)
	r.reply(r.asked(say), false)
	r.until("dropped", func() bool { return r.response().State == team.Dropped })
}

func TestAskThatIsAnsweredInTheAgent(t *testing.T) {
	t.Parallel()
	c := &fakeCourier{}
	r, say := talking(t, c)
	a := r.asked(say)
	r.until("out of the queue", func() bool {
		say(team.Observation{Tier: team.TierChannel, Activity: team.Working, Source: "resolved", Settled: askRun.ID})
		got, err := r.led.Approval(r.Context(), a.RequestID)
		return err == nil && got.State == ledger.ApprovalExpired && got.AnsweredBy == "a"
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.answered) != 0 {
		t.Errorf("it was answered: %+v", c.answered)
	}
}

// A key can only allow or deny: the feedback of a rejection follows by mail.
func TestWordsThatNoKeySays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		yes   bool
		input []string
		mail  bool
	}{{"refused with words", false, nil, true}, {"with another input", true, []string{`{"command":"ls x"}`}, true}, {"allowed", true, nil, false}} {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeCourier{deliver: func(_ context.Context, mail []team.Mail) (out []team.Outcome) {
				for _, m := range mail {
					out = append(out, team.Outcome{ID: m.ID, State: team.Accepted, Evidence: "typed and taken"})
				}
				return out
			}}
			r, say := talking(t, f)
			ask := askRun
			ask.Keys = true
			say(team.Observation{Tier: team.TierScreen, Activity: team.Waiting, For: team.WaitPermission, Source: "a dialog", Ask: &ask})
			var a ledger.Approval
			r.until("asked", func() bool {
				all, err := r.led.Approvals(r.Context(), ledger.ApprovalFilter{})
				if err == nil && len(all) == 1 {
					a = all[0]
				}
				return a.ID != 0
			})
			r.reply(a, c.yes, c.input...)
			r.until("answered", func() bool {
				f.mu.Lock()
				defer f.mu.Unlock()
				return len(f.answered) == 1
			})
			r.until("settled", func() bool { return r.response().State == team.Accepted })
			if d := r.response(); c.mail != (d.Evidence == "typed and taken") {
				t.Errorf("its mail is %s: %s", d.State, d.Evidence)
			}
		})
	}
}

// A dialog on a screen may be any program's text: no rule of the team answers it.
func TestScreenIsAnsweredByNoRule(t *testing.T) {
	t.Parallel()
	c := &fakeCourier{}
	r, say := talking(t, c)
	if err := r.led.Set(r.Context(), approval.SettingPermissions, team.Permissions{Allow: []team.PermissionRule{{Tool: "*"}}}); err != nil {
		t.Fatal(err)
	}
	for _, screen := range []bool{true, false} {
		ask := askRun
		ask.ID, ask.Screen = map[bool]string{true: "screen-1", false: "hook-1"}[screen], screen
		say(team.Observation{Tier: team.TierScreen, Activity: team.Waiting, For: team.WaitPermission, Source: "it", Ask: &ask})
		r.until(ask.ID, func() bool {
			a, err := r.led.Approval(r.Context(), ask.ID)
			if err == nil && screen != (a.State == ledger.ApprovalPending) {
				t.Fatalf("screen %v: %s", screen, a.State)
			}
			return err == nil
		})
	}
}

package delivery

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/approval"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/supervisor/policy"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a team with one member, ann, whose agent is reached by a channel that the test scripts.
type rig struct {
	*looptest.Bus
	tm      loop.Team
	session string
	d       *Delivery
	ch      *channel
	report  func(team.Observation)

	// What the core and the account of usage were told.
	atRest  int
	limits  []team.Verdict
	counted []team.Observation
}

// channel is the way into ann.
type channel struct {
	deliver func(mail []team.Mail) []team.Outcome
	answer  func(team.Reply) error
	settles bool

	mu         sync.Mutex
	given      []team.Mail
	replies    []team.Reply
	interrupts int
	closed     int
}

func (c *channel) Deliver(_ context.Context, mail []team.Mail) []team.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given = append(c.given, mail...)
	return c.deliver(mail)
}

func (c *channel) Answer(_ context.Context, r team.Reply) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies = append(c.replies, r)
	if c.answer != nil {
		return c.answer(r)
	}
	return nil
}

func (c *channel) Interrupt(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.interrupts++
	return nil
}

func (c *channel) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed++
}

func (c *channel) Settles() bool { return c.settles }

// count returns how often messages were given, how many replies came, and how often it was closed.
func (c *channel) count() (given, replies, closed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.given), len(c.replies), c.closed
}

// outcomes are one outcome for each message.
func outcomes(o team.Outcome) func([]team.Mail) []team.Outcome {
	return func(mail []team.Mail) (out []team.Outcome) {
		for _, m := range mail {
			o.ID = m.ID
			out = append(out, o)
		}
		return out
	}
}

// screen is the generation of a member. It is never interrupted through its terminal here.
type screen struct{ backends.Attached }

func (screen) Proc() backends.Proc { return backends.Proc{} }

// newRig starts the delivery of a team whose member runs, without a channel yet.
func newRig(t *testing.T, ch *channel) *rig {
	t.Helper()
	tm, members := looptest.NewTeam(t, "ann")
	r := &rig{Bus: looptest.NewBus(t, members...), tm: tm, session: members[0].SessionKey, ch: ch}
	r.List[0].Channel, r.List[0].Screen = true, screen{}
	starting, running, gen, at := team.Starting, team.Running, "g1", time.Now().Add(-time.Minute).UnixMilli()
	r.patch(ledger.MemberPatch{Observed: &starting, Generation: &gen})
	r.patch(ledger.MemberPatch{Observed: &running, StartedAt: &at})
	p := policy.Policy{}.WithDefaults().ServicePolicy
	r.d = New(Options{Team: tm, Core: r, Usage: account{r}, Courier: r, Policy: p, Wall: time.Now})
	r.StartService(r.d)
	return r
}

// open is newRig with its channel open and its first hand-over, which knows the row of then, over.
func open(t *testing.T, ch *channel) *rig {
	t.Helper()
	r := newRig(t, ch)
	r.d.Open(r.session)
	r.Await("the channel is open", func() bool { c := r.d.ways[r.session].conn; return c != nil && !c.busy })
	return r
}

func (r *rig) Open(_ context.Context, in ChannelIn) (Channel, error) {
	r.report = in.Report
	return r.ch, nil
}

func (r *rig) patch(p ledger.MemberPatch) {
	r.Helper()
	if err := r.Patch(r.session, p); err != nil {
		r.Fatal(err)
	}
}

// Patch is what the core does with a row.
func (r *rig) Patch(session string, p ledger.MemberPatch) error {
	p.SessionKey = session
	if p.Notice != nil {
		p.Notice.MessageID = team.NewUUID()
	}
	row, err := r.tm.Ledger.UpdateMember(context.Background(), p)
	if err == nil {
		r.List[0].Member = row
	}
	return err
}

func (r *rig) Ready(session, _ string) {
	yes := true
	_ = r.Patch(session, ledger.MemberPatch{Ready: &yes})
}

func (r *rig) AtRest(string) { r.atRest++ }

// account is Usage.
type account struct{ r *rig }

func (account) Ended(string) time.Time { return time.Time{} }
func (a account) Limited(_ loop.Member, v team.Verdict) bool {
	a.r.limits = append(a.r.limits, v)
	return true
}
func (a account) Counted(_ loop.Member, o team.Observation) { a.r.counted = append(a.r.counted, o) }

// saw is an observation of the agent's own hooks, which the loop has taken.
func (r *rig) saw(o team.Observation) {
	r.Helper()
	if o.At.IsZero() {
		o.At = time.Now()
	}
	o.Tier = team.TierHook
	n := len(r.counted)
	r.report(o)
	r.Await("taken", func() bool { return len(r.counted) > n })
}

// post mails a message to ann, and has the loop see its event.
func (r *rig) post(text string) (id string) {
	r.Helper()
	m, _, err := r.tm.Mailer().Post(r.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: text})
	if err != nil {
		r.Fatal(err)
	}
	r.d.Event(ledger.Event{What: team.EventMessageMailed, ID: m.ID, Who: "ann"})
	return m.ID
}

func (r *rig) delivery(id string) ledger.Delivery {
	r.Helper()
	d, err := r.tm.Ledger.Delivery(r.Context(), id, "ann")
	if err != nil {
		r.Fatal(err)
	}
	return d
}

// ask has ann ask for a permission and returns its row in the queue.
func (r *rig) ask(request string) (a ledger.Approval) {
	r.Helper()
	r.saw(team.Observation{Activity: team.Waiting, For: team.WaitPermission, Ask: &team.Ask{ID: request, For: team.WaitPermission, Tool: "Bash", Description: "rm x"}})
	r.Await("queued", func() bool { c := r.d.ways[r.session].conn; return c.asked[request] > 0 && len(c.brings) == 0 })
	a, err := r.tm.Ledger.Approval(r.Context(), request)
	if err != nil {
		r.Fatal(err)
	}
	return a
}

// approve answers a request as the lead does, and has the loop see the event that often.
func (r *rig) approve(a ledger.Approval, events int) {
	r.Helper()
	if _, err := r.tm.Ledger.Answer(r.Context(), ledger.AnswerIn{ID: a.ID, Approve: true, By: team.LeadName}); err != nil {
		r.Fatal(err)
	}
	for range events {
		r.d.Event(ledger.Event{What: team.EventApprovalApproved, ID: strconv.FormatInt(a.ID, 10)})
	}
}

// A channel that hands a message over and says no more leaves it injected: it is accepted by a
// receipt only, and in the mailbox it is marked as read by then.
func TestInjectedUntilThereIsEvidence(t *testing.T) {
	t.Parallel()
	r := open(t, &channel{deliver: outcomes(team.Outcome{State: team.Injected})})
	id := r.post("hello")
	r.Await("handed over", func() bool { return r.delivery(id).State == team.Injected })
	r.saw(team.Observation{Activity: team.Working})
	r.saw(team.Observation{Activity: team.Idle})
	r.d.Deliver(r.session)
	r.Await("looked at again", func() bool { return !r.d.ways[r.session].conn.busy })
	if d := r.delivery(id); d.State != team.Injected || d.Evidence != "" {
		t.Errorf("without evidence: %s, %q", d.State, d.Evidence)
	}
	r.saw(team.Observation{Receipts: []team.Receipt{{ID: id, State: team.Accepted, Evidence: "in its transcript"}}})
	r.Await("accepted", func() bool { return r.delivery(id).State == team.Accepted })
	if given, _, _ := r.ch.count(); given != 1 || r.delivery(id).Evidence != "in its transcript" {
		t.Errorf("given %d times, %+v", given, r.delivery(id))
	}
	box, err := r.tm.Mailer().Box("ann")
	if err != nil {
		t.Fatal(err)
	}
	if left, err := box.Unread(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("still unread in the mailbox: %+v, %v", left, err)
	}
}

// What nothing shows for longer than its way takes is unknown, and a channel that can be asked is
// asked before that.
func TestUnknownAfterItsTime(t *testing.T) {
	t.Parallel()
	for _, settles := range []bool{false, true} {
		r := open(t, &channel{deliver: outcomes(team.Outcome{State: team.Injected}), settles: settles})
		id := r.post("hello")
		r.Await("handed over", func() bool { return r.delivery(id).State == team.Injected && !r.d.ways[r.session].conn.busy })
		wait := r.d.policy.Doubt
		if settles {
			wait = r.d.policy.Evidence
		}
		if p := r.Periods[evidenceTimer(r.session)]; p <= 0 || p > wait {
			t.Errorf("settles %v: looked at in %s, want at most %s", settles, p, wait)
		}
		c := r.d.ways[r.session].conn
		out, err := r.tm.Ledger.Waiting(t.Context(), r.session)
		if err != nil {
			t.Fatal(err)
		}
		given := func(what string, asked int, a ages, now time.Time, want team.DeliveryState) {
			t.Helper()
			c.askedAbout = map[string]askedAbout{id: {times: asked}}
			if _, err := r.d.giveUpHope(t.Context(), c, r.List[0].Member, out, a, now); err != nil || r.delivery(id).State != want {
				t.Errorf("settles %v: %s %s, %v", settles, r.delivery(id).State, what, err)
			}
		}
		now := time.Now()
		late, early := now.Add(time.Hour), now.Add(-2*time.Hour)
		given("after a minute", 2, ages{}, now.Add(time.Minute), team.Injected)
		if settles {
			given("after one question", 1, ages{}, late, team.Injected)
		}
		given("a minute after a sleep", 2, ages{jumped: late.Add(-time.Minute)}, late, team.Injected)
		given("a minute after the clock was set back", 2, ages{jumped: early.Add(-time.Minute)}, early, team.Injected)
		given("a minute after the start", 2, ages{began: early.Add(-time.Minute)}, early, team.Injected)
		switch settles {
		case true:
			given("an hour after the clock was set back", 2, ages{jumped: early.Add(-time.Hour)}, early, team.Unknown)
		default:
			given("after an hour", 2, ages{began: late.Add(-time.Minute)}, late, team.Unknown)
		}
	}
}

// A message that the channel cannot take now stays held, and is given again when the agent is seen
// to do something else.
func TestHeldIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := open(t, &channel{deliver: outcomes(team.Outcome{State: team.Held, Reason: "a dialog is in the way"})})
	id := r.post("hello")
	r.Await("held", func() bool { return r.delivery(id).State == team.Held && r.d.ways[r.session].conn.waiting })
	if d := r.delivery(id); d.Reason != "a dialog is in the way" {
		t.Errorf("held because %q", d.Reason)
	}
	r.ch.mu.Lock()
	r.ch.deliver = outcomes(team.Outcome{State: team.Accepted, Evidence: "it answers"})
	r.ch.mu.Unlock()
	r.saw(team.Observation{Activity: team.Idle})
	r.Await("accepted", func() bool { return r.delivery(id).State == team.Accepted })
}

// Mail for a member whose provider has reached its limit stays in the ledger, with the reason.
func TestLimitHoldsMailBack(t *testing.T) {
	t.Parallel()
	r := open(t, &channel{deliver: outcomes(team.Outcome{State: team.Accepted, Evidence: "it answers"})})
	agent := team.MemberSpec{Agent: "claude", WorktreeMode: "none"}
	r.patch(ledger.MemberPatch{Spec: &agent})
	if _, _, err := quota.Note(t.Context(), r.tm.Ledger, "claude", "ann", time.Now(), time.Time{}, []string{"usage limit"}); err != nil {
		t.Fatal(err)
	}
	id := r.post("hello")
	r.Await("held", func() bool { return r.delivery(id).State == team.Held })
	if given, _, _ := r.ch.count(); given != 0 {
		t.Errorf("given %d messages", given)
	}
	if err := quota.End(t.Context(), r.tm.Ledger, "claude", nil); err != nil {
		t.Fatal(err)
	}
	r.d.Deliver(r.session)
	r.Await("accepted", func() bool { return r.delivery(id).State == team.Accepted })
}

// TestHandOverWithoutABudget checks that a hand-over does not read what the members have used where
// no budget bounds it: nobody can read it here.
func TestHandOverWithoutABudget(t *testing.T) {
	t.Parallel()
	r := open(t, &channel{deliver: outcomes(team.Outcome{State: team.Accepted, Evidence: "it answers"})})
	agent := team.MemberSpec{Agent: "claude", WorktreeMode: "none"}
	r.patch(ledger.MemberPatch{Spec: &agent})
	if err := r.tm.Ledger.Set(t.Context(), quota.SettingUsage, "unreadable"); err != nil {
		t.Fatal(err)
	}
	id := r.post("hello")
	r.Await("accepted", func() bool { return r.delivery(id).State == team.Accepted })
}

// A permission is answered once, however often its event and observations of the agent come.
func TestPermissionIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	r := open(t, &channel{})
	a := r.ask("perm-1")
	r.saw(team.Observation{Activity: team.Waiting, For: team.WaitPermission, Ask: &team.Ask{ID: "perm-1", For: team.WaitPermission, Tool: "Bash"}})
	r.approve(a, 3)
	r.saw(team.Observation{Activity: team.Working})
	r.Await("answered", func() bool { return len(r.d.ways[r.session].conn.asked) == 0 })
	r.d.Event(ledger.Event{What: team.EventApprovalApproved, ID: strconv.FormatInt(a.ID, 10)})
	if _, replies, _ := r.ch.count(); replies != 1 || !r.ch.replies[0].Allow || r.ch.replies[0].ID != "perm-1" {
		t.Errorf("replies: %+v", r.ch.replies)
	}
	if all, err := r.tm.Ledger.Approvals(t.Context(), ledger.ApprovalFilter{}); err != nil || len(all) != 1 {
		t.Errorf("%d approvals, %v", len(all), err)
	}
}

// A request that its agent reports only once is queued again if it could not be recorded, unless the
// agent has withdrawn it meanwhile, or the ledger refuses it for what it is.
func TestAskIsQueuedAgain(t *testing.T) {
	t.Parallel()
	r := open(t, &channel{})
	c, whole := r.d.ways[r.session].conn, r.d.team.Ledger
	if _, err := whole.Ask(t.Context(), ledger.AskIn{Session: team.LeadSessionKey("", "t"), Kind: ledger.ApprovePermission, RequestID: "of-another", Subject: "x"}); err != nil {
		t.Fatal(err)
	}
	asks := func(request string) {
		t.Helper()
		r.saw(team.Observation{Activity: team.Waiting, For: team.WaitPermission, Ask: &team.Ask{ID: request, For: team.WaitPermission, Tool: "Bash"}})
	}
	r.d.team.Ledger = unreadable(t)
	asks("perm-1")
	asks("perm-2")
	for _, id := range []string{"perm-1", "perm-2"} {
		r.Await("not queued", func() bool { return r.Armed(askTimer(r.session, id)) })
	}
	r.Fire(askTimer(r.session, "perm-1"))
	r.Await("not queued again", func() bool { return r.Armed(askTimer(r.session, "perm-1")) })
	if d := r.Periods[askTimer(r.session, "perm-1")]; d != 2*time.Second {
		t.Errorf("tried again in %s", d)
	}
	asks("perm-1") // its retry is on its way
	r.d.team.Ledger = whole
	r.saw(team.Observation{Activity: team.Working, Settled: "perm-2"})
	r.Fire(askTimer(r.session, "perm-2"))
	r.Fire(askTimer(r.session, "perm-1"))
	r.Await("queued", func() bool { return c.asked["perm-1"] > 0 && len(c.brings) == 0 })
	asks("of-another")
	r.Done()
	r.Await("refused", func() bool { return r.Waiting() == 0 })
	all, err := whole.Approvals(t.Context(), ledger.ApprovalFilter{Session: r.session})
	if err != nil || len(all) != 1 || all[0].RequestID != "perm-1" || all[0].ID != c.asked["perm-1"] {
		t.Errorf("queued: %+v, %v", all, err)
	}
	if _, marked := c.asked["perm-2"]; marked || len(c.early) != 0 || r.Armed(askTimer(r.session, "of-another")) {
		t.Errorf("left over: %v, %v, %v", c.asked, c.early, r.Timers)
	}
}

// A dialog that is not drawn yet is answered at the next observation of the agent, and not before.
func TestAnswerWaitsForItsDialog(t *testing.T) {
	t.Parallel()
	drawn := false
	r := open(t, &channel{answer: func(team.Reply) error {
		if !drawn {
			return team.Errorf(team.CodeUnavailable, "no dialog is up").WithReason("no_dialog")
		}
		return nil
	}})
	a := r.ask("perm-1")
	r.approve(a, 1)
	r.Await("owed", func() bool { return len(r.d.ways[r.session].conn.owed) == 1 })
	r.ch.mu.Lock()
	drawn = true
	r.ch.mu.Unlock()
	r.saw(team.Observation{Activity: team.Waiting, For: team.WaitPermission})
	r.Await("answered", func() bool { return len(r.d.ways[r.session].conn.asked) == 0 })
	if _, replies, _ := r.ch.count(); replies != 2 {
		t.Errorf("%d attempts", replies)
	}
}

// An answer that the channel cannot bring, or that cannot be read, is owed: it is tried again after
// a growing pause though nothing is seen of the agent, and only the channel says that it comes too
// late.
func TestAnswerIsOwedUntilItIsBrought(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		fails := 3
		r := open(t, &channel{answer: func(team.Reply) error {
			if fails--; fails > 0 {
				return team.Errorf(team.CodeUnavailable, "its server is not reached")
			}
			if gone {
				return team.Errorf(team.CodeNotFound, "it is over")
			}
			return nil
		}})
		a := r.ask("perm-1")
		text, err := inbox.Encode(inbox.PermissionResponse{RequestID: a.RequestID, Approve: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.tm.Ledger.As(team.LeadName).Answer(t.Context(), ledger.AnswerIn{ID: a.ID, Approve: true, By: team.LeadName,
			Message: &ledger.NewMessage{Kind: team.KindPermissionResponse, From: team.LeadName, RequestID: a.RequestID, Text: text, Summary: "answer"}}); err != nil {
			t.Fatal(err)
		}
		c, whole := r.d.ways[r.session].conn, r.d.team.Ledger
		r.d.team.Ledger = unreadable(t)
		r.d.answerAsk(a.ID)
		r.Await("owed", func() bool { return len(c.owed) == 1 })
		r.d.team.Ledger = whole
		for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			r.Await("owed", func() bool { return len(c.owed) == 1 })
			if got := r.Periods[answerTimer(r.session)]; got != want {
				t.Errorf("gone %v: tried again in %s, want %s", gone, got, want)
			}
			r.Fire(answerTimer(r.session))
		}
		r.Await("brought", func() bool { return len(c.asked) == 0 })
		mail, err := whole.Messages(t.Context(), ledger.MessageFilter{Kind: team.KindPermissionResponse})
		if err != nil || len(mail) != 1 {
			t.Fatal(mail, err)
		}
		want := team.Accepted
		if gone {
			want = team.Dropped
		}
		if d := r.delivery(mail[0].ID); d.State != want {
			t.Errorf("gone %v: its mail is %s: %s", gone, d.State, d.Reason)
		}
		if _, replies, _ := r.ch.count(); replies != 3 || r.Armed(answerTimer(r.session)) || c.failed != 0 {
			t.Errorf("gone %v: %d attempts, another one %v", gone, replies, r.Armed(answerTimer(r.session)))
		}
	}
}

// unreadable returns a ledger of which nothing can be read or written.
func unreadable(t *testing.T) *ledger.Ledger {
	t.Helper()
	dir := t.TempDir()
	db, err := ledger.Open(t.Context(), filepath.Join(dir, "ledger.db"), ledger.Options{Create: true, LockPath: filepath.Join(dir, "lock")})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return ledger.New(db, ledger.Direct(db))
}

// A request that its agent withdraws while the answer is looked up is not answered: the agent's next
// dialog would get the answer.
func TestWithdrawnIsNotAnswered(t *testing.T) {
	t.Parallel()
	r := open(t, &channel{})
	a := r.ask("perm-1")
	if err := r.tm.Ledger.Withdraw(t.Context(), a.ID, a.Name, answeredThere); err != nil {
		t.Fatal(err)
	}
	r.d.answerAsk(a.ID)
	r.Await("settled", func() bool { return len(r.d.ways[r.session].conn.asked) == 0 })
	if _, replies, _ := r.ch.count(); replies != 0 {
		t.Errorf("replies: %+v", r.ch.replies)
	}
}

// A rule of the team answers at once, and nobody is asked.
func TestRuleAnswers(t *testing.T) {
	t.Parallel()
	r := open(t, &channel{})
	rules := team.Permissions{Deny: []team.PermissionRule{{Tool: "Bash"}}}
	if err := r.tm.Ledger.Set(t.Context(), approval.SettingPermissions, rules); err != nil {
		t.Fatal(err)
	}
	r.saw(team.Observation{Activity: team.Waiting, For: team.WaitPermission, Ask: &team.Ask{ID: "perm-1", For: team.WaitPermission, Tool: "Bash"}})
	r.Await("answered", func() bool { _, replies, _ := r.ch.count(); return replies == 1 })
	if reply := r.ch.replies[0]; reply.Allow || reply.Feedback == "" {
		t.Errorf("reply: %+v", reply)
	}
}

// What an interrupted turn has asked for is withdrawn once the agent is seen idle, and the lead is
// told that the turn was interrupted.
func TestInterruptedTurn(t *testing.T) {
	t.Parallel()
	r := open(t, &channel{})
	a := r.ask("perm-1")
	end := r.d.Interrupt(r.session)
	if end == nil {
		t.Fatal("no channel to interrupt by")
	}
	if err := end(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, err := r.tm.Ledger.Approval(t.Context(), "perm-1"); err != nil || a.State != ledger.ApprovalPending {
		t.Errorf("before the turn is seen to be over: %s, %v", a.State, err)
	}
	r.saw(team.Observation{Activity: team.Idle})
	r.Await("withdrawn", func() bool {
		got, err := r.tm.Ledger.Approval(t.Context(), strconv.FormatInt(a.ID, 10))
		return err == nil && got.State == ledger.ApprovalExpired
	})
	told, err := r.tm.Ledger.Messages(t.Context(), ledger.MessageFilter{Kind: team.KindIdle})
	if err != nil || len(told) != 1 || told[0].To != team.LeadName || !strings.Contains(told[0].Text, string(inbox.IdleInterrupted)) {
		t.Errorf("told the lead: %+v, %v", told, err)
	}
	if r.atRest != 1 {
		t.Errorf("at rest %d times", r.atRest)
	}
}

// A limit is noted once, however often the agent says it, and counts reach the account.
func TestLimitIsNotedOnce(t *testing.T) {
	t.Parallel()
	r := open(t, &channel{})
	since := time.Now()
	for range 3 {
		r.saw(team.Observation{Activity: team.Limited, Since: since, Until: since.Add(time.Hour), Usage: &team.Usage{InputTokens: 5}})
	}
	if len(r.limits) != 1 || len(r.counted) != 3 {
		t.Errorf("%d limits, %d counts", len(r.limits), len(r.counted))
	}
	if m := r.List[0]; m.Activity != team.Limited || m.LimitedTo != since.Add(time.Hour).UnixMilli() || !r.Armed(limitTimer(r.session)) {
		t.Errorf("row: %s until %d", m.Activity, m.LimitedTo)
	}
	r.d.Closed(r.session)
	if r.Armed(limitTimer(r.session)) {
		t.Error("its end is waited for after the generation has ended")
	}
}

// What an earlier generation reports changes nothing, and its channel is closed when another opens.
func TestEarlierGeneration(t *testing.T) {
	t.Parallel()
	r := open(t, &channel{})
	old, gen := r.report, "g2"
	r.patch(ledger.MemberPatch{Generation: &gen})
	r.d.Open(r.session)
	r.Await("closed", func() bool { _, _, closed := r.ch.count(); return closed == 1 })
	was := r.List[0].Activity
	old(team.Observation{Tier: team.TierHook, Activity: team.Working, At: time.Now()})
	r.Await("taken", func() bool { return r.Waiting() == 0 })
	if r.List[0].Activity != was {
		t.Errorf("an earlier generation has made it %s", r.List[0].Activity)
	}
}

// A member that has left is forgotten, and its channel closed. A channel that opens too late is
// closed at once.
func TestChannelsAreClosed(t *testing.T) {
	t.Parallel()
	r := open(t, &channel{})
	list := r.List
	r.List = nil
	r.d.Looked(true)
	r.Await("closed", func() bool { _, _, closed := r.ch.count(); return closed == 1 })
	if len(r.d.ways) != 0 {
		t.Errorf("%d ways left", len(r.d.ways))
	}
	r.List = list
	r.d.Open(r.session)
	stopped := team.Exited
	r.patch(ledger.MemberPatch{Observed: &stopped})
	r.Await("closed", func() bool { _, _, closed := r.ch.count(); return closed == 2 })
	if r.d.ways[r.session].conn != nil {
		t.Error("a generation that has ended has a channel")
	}
}

// An agent that says itself what it does gets its usage counted, and nothing else of what is seen.
func TestWithoutAChannel(t *testing.T) {
	t.Parallel()
	r := newRig(t, &channel{})
	r.List[0].Channel = false
	r.d.Open(r.session)
	was := r.List[0].Activity
	r.d.Observed(r.session, "g1", team.Observation{Tier: team.TierHook, Activity: team.Working, At: time.Now(), Usage: &team.Usage{InputTokens: 5}})
	if len(r.counted) != 1 || r.List[0].Activity != was || r.d.Interrupt(r.session) != nil {
		t.Errorf("%d counts, %s", len(r.counted), r.List[0].Activity)
	}
}

// A channel that cannot be opened is tried again while its generation lives: its mail is held with
// the reason, which the member's row has, too, and is given once the channel is open.
func TestChannelIsOpenedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, &channel{deliver: outcomes(team.Outcome{State: team.Accepted, Evidence: "it answers"})})
	broken := &failing{to: r, why: errors.New("read rules/x.yaml:\n line 3")}
	r.d.courier = broken
	const why = "its channel cannot be opened: read rules/x.yaml: line 3"
	first := r.post("before")
	r.d.Open(r.session)
	r.Await("not open", func() bool { return r.Armed(openTimer(r.session)) })
	r.Await("held", func() bool { return r.delivery(first).State == team.Held })
	second := r.post("after")
	r.Await("held", func() bool { return r.delivery(second).State == team.Held })
	for _, id := range []string{first, second} {
		if d := r.delivery(id); d.Reason != why {
			t.Errorf("held because %q", d.Reason)
		}
	}
	if m := r.List[0]; m.Reason != team.WhySilent+why || m.Activity != team.ActivityUnknown {
		t.Errorf("row: %s, %q", m.Activity, m.Reason)
	}
	if rep := r.d.Report(r.session); !slices.Contains(rep.Evidence, why) {
		t.Errorf("explained by %q", rep.Evidence)
	}
	r.Fire(openTimer(r.session))
	r.Await("tried again", func() bool { return r.Armed(openTimer(r.session)) })
	if d := r.Periods[openTimer(r.session)]; d != 2*time.Second {
		t.Errorf("tried again in %s", d)
	}
	broken.why = nil
	r.Fire(openTimer(r.session))
	r.Await("given", func() bool {
		return r.delivery(first).State == team.Accepted && r.delivery(second).State == team.Accepted
	})
	if m := r.List[0]; m.Reason != "" || r.Armed(openTimer(r.session)) {
		t.Errorf("open, and the row says %q", m.Reason)
	}
}

// A channel of a generation that has ended is not tried again.
func TestChannelOfAnEndedGenerationIsNotOpened(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.d.courier = &failing{why: errors.New("no server")}
	r.d.Open(r.session)
	r.Await("not open", func() bool { return r.Armed(openTimer(r.session)) })
	again := r.Timers[openTimer(r.session)]
	r.d.Closed(r.session)
	if r.Armed(openTimer(r.session)) {
		t.Error("its next attempt is waited for")
	}
	exited := team.Exited
	r.patch(ledger.MemberPatch{Observed: &exited})
	again() // it was on its way
	r.Done()
	if r.Waiting() != 0 || r.Armed(openTimer(r.session)) {
		t.Error("it is opened again")
	}
}

// failing is a Courier that fails for a reason; without one it is another.
type failing struct {
	to  Courier
	why error
}

func (f *failing) Open(ctx context.Context, in ChannelIn) (Channel, error) {
	if f.why != nil {
		return nil, f.why
	}
	return f.to.Open(ctx, in)
}

// TestAnsweredDialogIsOnTheScreen checks that an observation right after an answer does not make
// the member wait again for a dialog that is still on its screen, and that one that stays does.
func TestAnsweredDialogIsOnTheScreen(t *testing.T) {
	r := open(t, &channel{deliver: outcomes(team.Outcome{State: team.Held})})
	sees := func(o team.Observation) {
		t.Helper()
		n := len(r.counted)
		r.report(o)
		r.Await("taken", func() bool { return len(r.counted) > n })
	}
	dialog := func(at time.Time) team.Observation {
		return team.Observation{Tier: team.TierScreen, Activity: team.Waiting, For: team.WaitPermission, At: at, Evidence: []string{"Do you want to proceed?"}}
	}
	began := time.Now().Add(-time.Minute)
	sees(team.Observation{Tier: team.TierChannel, Activity: team.Working, At: began, Source: "status"})
	a := r.ask("r1")
	sees(dialog(time.Now()))
	if _, err := r.tm.Ledger.Answer(t.Context(), ledger.AnswerIn{ID: a.ID, Approve: true, By: team.LeadName}); err != nil {
		t.Fatal(err)
	}
	last, err := r.tm.Ledger.LastEvent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.tm.Ledger.Events(t.Context(), 0, 0, ledger.EventFilter{What: team.EventApprovalApproved})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	r.d.Event(list[0])
	if r.List[0].Member, err = r.tm.Ledger.Member(t.Context(), "ann"); err != nil || r.List[0].Activity != team.Working {
		t.Fatal(r.List[0].Activity, err)
	}
	sees(team.Observation{Source: "transcript"}) // without a state
	sees(dialog(time.Now()))
	sees(team.Observation{Tier: team.TierChannel, Activity: team.Working, At: time.Now(), Source: "status"})
	changes, err := r.tm.Ledger.Events(t.Context(), last, 0, ledger.EventFilter{What: team.EventMemberActivity})
	if err != nil || len(changes) != 0 {
		t.Errorf("after the answer: %+v, %v", changes, err)
	}
	other := dialog(time.Now().Add(state.Settle))
	other.Evidence = []string{"Do you want to delete it?"}
	sees(other)
	if got := r.List[0].Activity; got != team.Waiting {
		t.Errorf("with another dialog it is %s", got)
	}
}

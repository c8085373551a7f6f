package usage

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a team of agents of two providers, with their turns.
type rig struct {
	*looptest.Bus
	led *ledger.Ledger
	u   *Usage
	log bytes.Buffer

	broken  []string // by session key: turns that were broken off
	delayed []string // turns that would go on by themselves
	ended   map[string]time.Time
	retried []string
	mail    map[string]int
}

// Break and the next three are Turns.
func (r *rig) Break(session, _ string) { r.broken = append(r.broken, session) }

func (r *rig) BreakOff(session string) func(context.Context) {
	r.delayed = append(r.delayed, session)
	return func(context.Context) {}
}

func (r *rig) LimitEnded(session string, at time.Time) { r.ended[session] = at }

func (r *rig) Deliver(session string) { r.mail[session]++ }

// newRig has ann and bob of Claude Code, and cyd of Codex. All of them run.
func newRig(t *testing.T) *rig {
	t.Helper()
	tm, members := looptest.NewTeam(t, "ann", "bob", "cyd")
	r := &rig{Bus: looptest.NewBus(t, members...), led: tm.Ledger, ended: map[string]time.Time{}, mail: map[string]int{}}
	for i, agent := range []string{"claude", "claude", "codex"} {
		r.List[i].Spec.Agent, r.List[i].Observed = agent, team.Running
	}
	tm.Log = slog.New(slog.NewTextHandler(&r.log, nil))
	r.u = New(tm, func(session string) { r.retried = append(r.retried, session) })
	r.u.Serve(r)
	return r
}

// start is newRig with the service started.
func start(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.StartService(r.u)
	return r
}

func (r *rig) set(name string, v any) {
	r.Helper()
	if err := r.led.Set(r.Context(), name, v); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) quota() quota.Quota {
	r.Helper()
	q, err := quota.Read(r.Context(), r.led)
	if err != nil {
		r.Fatal(err)
	}
	return q
}

func (r *rig) events(what string) []ledger.Event {
	r.Helper()
	list, err := r.led.Events(r.Context(), 0, 0, ledger.EventFilter{What: what})
	if err != nil {
		r.Fatal(err)
	}
	return list
}

// counts is an agent's running total of a conversation.
func (r *rig) counts(i int, conversation string, tokens int64) {
	r.u.Counted(r.List[i], team.Observation{Conversation: conversation, Usage: &team.Usage{InputTokens: tokens}})
}

// resume ends the limit of an agent and has the loop see its event.
func (r *rig) resume(agent string) {
	r.Helper()
	if err := quota.End(r.Context(), r.led, agent, nil); err != nil {
		r.Fatal(err)
	}
	list := r.events(team.EventUsageResumed)
	r.u.Event(list[len(list)-1])
}

// A limit stops the agents of its provider and no others, and is noted once for all who run into it.
func TestLimitIsOfOneProvider(t *testing.T) {
	t.Parallel()
	r := start(t)
	v := team.Verdict{Activity: team.Limited, Since: time.Now(), Until: time.Now().Add(time.Hour), Evidence: []string{"limit reached"}}
	if !r.u.Limited(r.List[0], v) || !r.u.Limited(r.List[1], v) {
		t.Fatal("it was not noted")
	}
	q := r.quota()
	for i, blocked := range []bool{true, true, false} {
		if no := q.Blocks(r.List[i].Member, time.Now()); (no != nil) != blocked {
			t.Errorf("%s: %v", r.List[i].Name, no)
		}
	}
	if n := len(r.events(team.EventUsageLimited)); n != 1 {
		t.Errorf("%d events", n)
	}
	if p := r.Periods["limits"]; p <= 59*time.Minute || p > time.Hour {
		t.Errorf("looked at again in %s", p)
	}
	r.resume("claude")
	if no := r.quota().Blocks(r.List[0].Member, time.Now()); no != nil {
		t.Errorf("after its end: %v", no)
	}
}

// Both who ran into a limit are told to go on when it ends, once each; nobody of another provider
// is, and what was held is handed over again.
func TestLimitEnds(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, i := range []int{0, 1} {
		r.u.Limited(r.List[i], team.Verdict{Activity: team.Limited, Since: time.Now()})
	}
	r.List[2].Observed = team.Backoff
	r.resume("claude")
	told := func() (to []string) {
		list, err := r.led.Messages(r.Context(), ledger.MessageFilter{Kind: team.KindInfo})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			to = append(to, m.To)
		}
		return to
	}
	r.Until("told", func() bool { return len(told()) == 2 })
	list := r.events(team.EventUsageResumed)
	r.u.Event(list[0])
	r.Until("told again", func() bool { return len(r.delayed) == 4 && r.Waiting() == 0 })
	if to := told(); len(to) != 2 || to[0] == to[1] {
		t.Errorf("told %v", to)
	}
	if len(r.retried) != 2 || r.retried[0] != r.List[2].SessionKey || r.mail[r.List[2].SessionKey] != 0 {
		t.Errorf("retried %v, mail %v", r.retried, r.mail)
	}
	if len(r.ended) != 2 || r.ended[r.List[0].SessionKey].IsZero() || r.mail[r.List[0].SessionKey] != 2 {
		t.Errorf("ended %v, mail %v", r.ended, r.mail)
	}
}

// A limit whose time has come is ended by the service where the team goes on by itself, and left to
// a person elsewhere.
func TestLimitIsOver(t *testing.T) {
	t.Parallel()
	for _, resume := range []bool{false, true} {
		r := start(t)
		r.set(quota.SettingBudgets, team.Budgets{Resume: resume})
		r.u.Limited(r.List[0], team.Verdict{Activity: team.Limited, Since: time.Now().Add(-time.Hour), Until: time.Now().Add(-time.Minute)})
		r.Fire("limits")
		if n := len(r.events(team.EventUsageResumed)); (n == 1) != resume {
			t.Errorf("resume %v: ended %d times", resume, n)
		}
	}
}

// The end of a limit is seen after a sleep, although the timer that waits for it stood still.
func TestLimitIsOverAfterSleep(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.set(quota.SettingBudgets, team.Budgets{Resume: true})
	r.u.Jumped(0) // nothing is waited for
	r.u.Limited(r.List[2], team.Verdict{Activity: team.Limited, Since: time.Now(), Until: time.Now().Add(time.Hour)})
	r.u.Limited(r.List[0], team.Verdict{Activity: team.Limited, Since: time.Now().Add(-time.Hour), Until: time.Now().Add(-time.Minute)})
	r.Periods["limits"] = 0
	r.u.Jumped(0)
	if list := r.events(team.EventUsageResumed); len(list) != 1 || list[0].ID != "claude" {
		t.Errorf("ended: %+v", list)
	}
	if d := r.Periods["limits"]; d < 59*time.Minute || d > time.Hour {
		t.Errorf("the other one is waited for %s", d)
	}
}

// What a killed supervisor had still to do for a limit that was ended in this run is done by the
// next one: nobody reads its event again.
func TestLimitEndedBeforeTheStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if _, err := r.led.StartRun(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := quota.Note(t.Context(), r.led, "claude", "ann", time.Now(), time.Time{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := quota.End(t.Context(), r.led, "claude", nil); err != nil {
		t.Fatal(err)
	}
	r.StartService(r.u)
	r.Until("told", func() bool {
		list, err := r.led.Messages(t.Context(), ledger.MessageFilter{Kind: team.KindInfo})
		return err == nil && len(list) == 1 && list[0].To == "ann"
	})
}

// Four fifths of a budget are told once, its end too, and with its end the turns of those it holds
// for are broken off: of the member for its own, of everybody for the team's.
func TestBudgetIsToldOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.set(quota.SettingBudgets, team.Budgets{Members: map[string]team.Budget{"ann": {Tokens: 100}}, Team: team.Budget{Tokens: 1000}})
	warned := func() int { return len(r.events(team.EventUsageBudgetWarned)) }
	r.counts(0, "c1", 79)
	if n := warned(); n != 0 {
		t.Errorf("warned at 79 %%: %d", n)
	}
	r.counts(0, "c1", 81)
	r.counts(0, "c1", 90)
	r.counts(0, "c2", 5) // another conversation counts from zero
	if n := warned(); n != 1 || len(r.broken) != 0 {
		t.Errorf("warned %d times, broken %v", n, r.broken)
	}
	r.counts(0, "c2", 10)
	r.counts(0, "c2", 20)
	if n := len(r.events(team.EventUsageBudgetUsedUp)); n != 1 || len(r.broken) != 1 || r.broken[0] != r.List[0].SessionKey {
		t.Errorf("used up %d times, broken %v", n, r.broken)
	}
	r.counts(2, "c3", 2000)
	if n := len(r.events(team.EventUsageBudgetUsedUp)); n != 2 || len(r.broken) != 4 {
		t.Errorf("of the team: used up %d times, broken %v", n, r.broken)
	}
}

// The next supervisor continues from the written counts, and does not report the same bound again.
func TestCountsGoOn(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.set(quota.SettingBudgets, team.Budgets{Members: map[string]team.Budget{"ann": {Tokens: 100}}})
	r.counts(0, "c1", 85)
	next := New(r.u.team, nil)
	next.Serve(r)
	r.StartService(next)
	next.Counted(r.List[0], team.Observation{Conversation: "c2", Usage: &team.Usage{InputTokens: 6}})
	if n := len(r.events(team.EventUsageBudgetWarned)); n != 1 {
		t.Errorf("warned %d times", n)
	}
	if !r.Armed(flushTimer) || r.quota().Spent[r.List[0].SessionKey].Total().InputTokens != 85 {
		t.Errorf("before the pause: %+v", r.quota().Spent)
	}
	r.Fire(flushTimer)
	if u, _ := r.quota().Used(r.List[0].SessionKey); u.InputTokens != 91 {
		t.Errorf("used %+v", u)
	}
}

// The last counts are written when the service ends.
func TestLastCountsAreWritten(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.counts(0, "c1", 7)
	if u, counted := r.quota().Used(r.List[0].SessionKey); counted {
		t.Errorf("written at once: %+v", u)
	}
	r.u.Close()
	if u, _ := r.quota().Used(r.List[0].SessionKey); u.InputTokens != 7 {
		t.Errorf("after the end: %+v", u)
	}
}

// A limit event of an agent that says itself what it does has it looked at, and one without data is
// a changed budget.
func TestEvents(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.set(quota.SettingBudgets, team.Budgets{Resume: true})
	until := time.Now().Add(time.Hour)
	if _, _, err := quota.Note(t.Context(), r.led, "codex", "cyd", time.Now(), until, nil); err != nil {
		t.Fatal(err)
	}
	r.u.Event(ledger.Event{What: team.EventUsageLimited, ID: "codex", Data: json.RawMessage(`{}`)})
	if !r.Armed("limits") {
		t.Error("its end is not waited for")
	}
	r.u.Event(ledger.Event{What: team.EventUsageBudgetChanged})
	if len(r.mail) != 3 || len(r.delayed) != 0 {
		t.Errorf("a changed budget: mail %v, broken off %v", r.mail, r.delayed)
	}
}

// TestRepeatedCount checks that a count that repeats the one before reads nothing: nothing can be
// read here.
func TestRepeatedCount(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.counts(0, "c1", 7)
	r.set(quota.SettingUsage, "unreadable")
	r.set(quota.SettingBudgets, "unreadable")
	r.counts(0, "c1", 7)
	if r.log.Len() != 0 {
		t.Errorf("the same count again: %s", r.log.String())
	}
	r.counts(0, "c1", 8)
	if r.log.Len() == 0 {
		t.Error("budgets are not read for a new count")
	}
}

// TestLimitsWithoutUsage checks that limits begin and end without a look at what the members have
// used, which nobody can read here.
func TestLimitsWithoutUsage(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.set(quota.SettingUsage, "unreadable")
	r.set(quota.SettingBudgets, team.Budgets{Resume: true})
	r.u.Limited(r.List[0], team.Verdict{Activity: team.Limited, Since: time.Now(), Until: time.Now().Add(-time.Second)})
	r.Fire("limits")
	if r.u.Ended("claude").IsZero() {
		t.Errorf("the limit has no end: %s", r.log.String())
	}
}

// TestTurnsAreSummedForTheTeam checks that a new count asks what all turns have used only where a
// budget of the team depends on it.
func TestTurnsAreSummedForTheTeam(t *testing.T) {
	t.Parallel()
	r := start(t)
	db, err := sql.Open("sqlite3", "file:"+r.u.team.Layout.Ledger())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "ALTER TABLE turn_jobs RENAME TO unreadable"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	r.set(quota.SettingBudgets, team.Budgets{Members: map[string]team.Budget{"ann": {Tokens: 100}}})
	r.counts(0, "c1", 85)
	if n := len(r.events(team.EventUsageBudgetWarned)); n != 1 || r.log.Len() == 0 {
		t.Errorf("warned %d times: %s", n, r.log.String())
	}
	r.log.Reset()
	r.set(quota.SettingBudgets, team.Budgets{Team: team.Budget{Tokens: 100}})
	r.counts(0, "c1", 90)
	if r.log.Len() == 0 {
		t.Error("turns are not read for a budget of the team")
	}
}

// next replaces the service by that of another supervisor, as after a kill.
func (r *rig) next() {
	r.Helper()
	r.u = New(r.u.team, nil)
	r.u.Serve(r)
	r.StartService(r.u)
}

// used is what a member has used according to the ledger, whether it is here or has left.
func (r *rig) used(i int) int64 {
	r.Helper()
	row, err := r.led.MemberBySession(r.Context(), r.List[i].SessionKey)
	if err != nil {
		r.Fatal(err)
	}
	u, counted, err := r.quota().UsedBy(r.Context(), r.led, row)
	if err != nil || !counted {
		r.Fatalf("%s: counted %v, %v", row.Name, counted, err)
	}
	return u.InputTokens
}

// TestEarlierConversations checks that what is written at each count does not grow with the
// conversations of a member, and that one to which a person goes back counts on, also after a kill.
func TestEarlierConversations(t *testing.T) {
	t.Parallel()
	r := start(t)
	key, want := r.List[0].SessionKey, map[string]int64{}
	count := func(conversation string, tokens int64) {
		t.Helper()
		want[conversation] = tokens
		r.counts(0, conversation, tokens)
		r.Fire(flushTimer)
		sum := int64(0)
		for _, n := range want {
			sum += n
		}
		if got := r.used(0); got != sum {
			t.Errorf("after %d of %s: %d, want %d", tokens, conversation, got, sum)
		}
		if s := r.quota().Spent[key]; len(s.Conversations) > kept || s.Conversations[conversation].InputTokens != tokens {
			t.Errorf("after %s it has %+v", conversation, s)
		}
	}
	for i := range int64(12) {
		count(fmt.Sprint("c", i), 1<<i)
	}
	count("c11", 5000)
	count("c0", 10_000) // a person goes back
	count("c10", 20_000)
	r.next()
	count("c3", 40_000)
	for i := range int64(8) {
		count(fmt.Sprint("d", i), 1<<i)
	}
	r.next()
	count("c3", 80_000)
}

// TestManyConversationsBefore checks that an entry of many conversations is written in short from
// its next count on.
func TestManyConversationsBefore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key, had := r.List[0].SessionKey, map[string]team.Usage{}
	for i := range 9 {
		had[fmt.Sprint("c", i)] = team.Usage{InputTokens: 10, CostUSD: 1, CostKnown: true}
	}
	r.set(quota.SettingUsage, map[string]quota.Spent{key: {Name: "ann", Agent: "claude", Conversations: had}})
	r.StartService(r.u)
	r.u.Counted(r.List[0], team.Observation{Conversation: "c5", Usage: &team.Usage{InputTokens: 11, CostUSD: 2, CostKnown: true}})
	r.Fire(flushTimer)
	s := r.quota().Spent[key]
	if want := (team.Usage{InputTokens: 91, CostUSD: 10, CostKnown: true}); len(s.Conversations) != 1 || s.Total() != want {
		t.Errorf("%+v", s)
	}
}

// TestLeftAreOneSum checks that members that have left are one entry, that each is still known by
// itself, and that neither a kill amid it nor a member that is still here adds anything.
func TestLeftAreOneSum(t *testing.T) {
	t.Parallel()
	r := start(t)
	for i := range r.List {
		r.counts(i, "c", int64(1)<<i)
	}
	r.Fire(flushTimer)
	before := r.quota().Spent
	check := func(when string, own int) {
		t.Helper()
		q := r.quota()
		if got := q.Team().InputTokens; got != 7 || len(q.Spent) != own+1 {
			t.Errorf("%s: the team has used %d, in %+v", when, got, q.Spent)
		}
		for i := range 3 {
			if got := r.used(i); got != int64(1)<<i {
				t.Errorf("%s: member %d has used %d", when, i, got)
			}
		}
	}
	all := r.List
	here := func(left ...int) {
		t.Helper()
		old := r.List
		r.List = nil
		for i, m := range all {
			if slices.Contains(left, i) {
				if err := r.led.RemoveMember(t.Context(), m.SessionKey); err != nil {
					t.Fatal(err)
				}
			} else {
				r.List = append(r.List, m)
			}
		}
		r.u.Looked(true)
		r.List = old
	}
	r.List = nil // it is on the roster all the same
	r.u.Looked(true)
	r.List = all
	if q := r.quota(); len(q.Spent) != 3 {
		t.Errorf("nobody has left: %+v", q.Spent)
	}
	here(0)
	check("one has left", 2)
	here(0, 2)
	check("two have left", 1)
	r.set(quota.SettingUsage, before) // the supervisor was killed before it wrote this
	r.List = all[1:2]
	r.next()
	r.List = all
	check("after a kill", 1)
}

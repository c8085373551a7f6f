package supervisor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/delivery"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// wires is a Courier whose channels take all mail; the test says what they report.
type wires struct {
	mu   sync.Mutex
	open map[string]*wire
	// retries is what they say of themselves; first is what they report while they are
	// opened, where it is set.
	retries bool
	first   *team.Observation
}

type wire struct {
	w      *wires
	report func(team.Observation)
	got    []string
	broken int
}

func (w *wires) Open(_ context.Context, in delivery.ChannelIn) (delivery.Channel, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &wire{w: w, report: in.Report}
	w.open[in.Member.Name] = c
	if w.first != nil {
		in.Report(*w.first)
	}
	return c, nil
}

func (c *wire) Retries() bool {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.w.retries && c.broken == 0
}

func (w *wires) of(name string) *wire {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open[name]
}

func (c *wire) Deliver(_ context.Context, mail []team.Mail) (out []team.Outcome) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	for _, m := range mail {
		c.got = append(c.got, m.Raw)
		out = append(out, team.Outcome{ID: m.ID, State: team.Accepted, Evidence: "taken"})
	}
	return out
}

func (c *wire) Interrupt(context.Context) error {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.broken++
	return nil
}

func (c *wire) Answer(context.Context, team.Reply) error { return nil }
func (c *wire) Close()                                   {}

func (c *wire) has(text string) bool {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return slices.ContainsFunc(c.got, func(s string) bool { return strings.Contains(s, text) })
}

func (c *wire) interrupts() int {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.broken
}

// claudes returns a team with Claude Code as a member.
func claudes(t *testing.T, names ...string) (*rig, *wires, *Supervisor) {
	r := newRig(t)
	w := &wires{open: map[string]*wire{}}
	r.plans.channel, r.by = true, w
	s := r.supervisor()
	for _, n := range names {
		if _, err := r.claude(s, n); err != nil {
			t.Fatal(err)
		}
		<-r.m.events
		r.sees("a channel", func() bool { return w.of(n) != nil })
	}
	return r, w, s
}

func (r *rig) claude(s *Supervisor, name string) (ledger.Member, error) {
	out, err := s.Spawn(r.Context(), team.SpawnRequest{Name: name, Exact: true, Spec: team.MemberSpec{Agent: "claude", WorktreeMode: "none", Cwd: r.layout.Dir}})
	return out.Member, err
}

// until waits for what the ledger's changes lead to.
func (r *rig) sees(what string, ok func() bool) {
	r.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			r.Fatalf("waited for %s", what)
		}
		<-tick.C
	}
}

func (r *rig) postTo(to, text string) string {
	r.Helper()
	m, _, err := r.mailer().Post(r.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: to, Text: text})
	if err != nil {
		r.Fatal(err)
	}
	return m.ID
}

func (r *rig) heldBack(id, reason string) {
	r.Helper()
	r.sees("held: "+reason, func() bool {
		ds, err := r.led.Deliveries(r.Context(), id)
		if err != nil {
			r.Fatal(err)
		}
		return ds[0].State == team.Held && strings.Contains(ds[0].Reason, reason)
	})
}

func (r *rig) budgets(b team.Budgets) {
	r.Helper()
	if err := r.led.Set(r.Context(), quota.SettingBudgets, b); err != nil {
		r.Fatal(err)
	}
	if _, err := r.led.Event(r.Context(), ledger.Event{What: team.EventUsageBudgetChanged}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) seen(what string) (n int) {
	r.Helper()
	all, err := r.led.Events(r.Context(), 0, 0, ledger.EventFilter{})
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range all {
		if e.What == what {
			n++
		}
	}
	return n
}

// A limit of one member holds for all members with its agent: no prompts and no spawns until it
// ends. Then the team continues by itself, and the member whose turn was broken off is told. The
// end of the limit is set after everything else was checked, so that a slow machine has the time it
// needs.
func TestProviderLimited(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		r, w, s := claudes(t, "ann", "bob")
		r.budgets(team.Budgets{Resume: true})
		o := team.Observation{Tier: team.TierScreen, Activity: team.Limited, At: time.Now(), Since: time.Now(), Source: "rule usage-limit", Evidence: []string{"limit reached"}}
		reason := "usage limit"
		if killed {
			o.Until, reason = o.At.Add(time.Hour), "usage limit until"
		}
		w.of("ann").report(o)
		r.wait("ann", "limited", func(m ledger.Member) bool { return m.Activity == team.Limited })
		r.sees("the breaker", func() bool { return r.seen(team.EventUsageLimited) == 1 })
		id := r.postTo("bob", "a prompt")
		r.heldBack(id, reason)
		if _, err := r.claude(s, "eve"); !team.IsCode(err, team.CodeLimit) || team.ReasonOf(err) != team.ReasonProviderLimited || team.HintOf(err) == "" {
			t.Fatalf("spawned: %v", err)
		}
		all, err := r.led.Members(t.Context(), false)
		if err != nil || slices.ContainsFunc(all, func(m ledger.Member) bool { return m.Name == "eve" }) {
			t.Fatalf("something of eve is left: %v", err)
		}
		if w.of("bob").has("a prompt") || w.of("ann").has("is over") {
			t.Fatal("given before the limit was over")
		}
		until := time.Now().Add(time.Second)
		if killed { // the next one knows it by the ledger
			s.Close()
			w.mu.Lock()
			clear(w.open)
			w.mu.Unlock()
			if err := ledger.Revise(t.Context(), r.led, quota.SettingLimited, func(limits *map[string]team.ProviderLimit) (*ledger.Event, bool, error) {
				l := (*limits)["claude"]
				l.Until = until.UnixMilli()
				(*limits)["claude"] = l
				return nil, true, nil
			}); err != nil {
				t.Fatal(err)
			}
			s = r.supervisor()
			r.sees("both channels", func() bool { return w.of("ann") != nil && w.of("bob") != nil })
		} else { // the program says so
			o.At, o.Until = time.Now(), until
			w.of("ann").report(o)
		}
		r.sees("the end of the limit", func() bool { return w.of("bob").has("a prompt") && w.of("ann").has("is over") })
		if time.Now().UnixMilli() < until.UnixMilli() || w.of("bob").has("is over") {
			t.Error("too early, or to one who was never stopped")
		}
		if _, err := r.claude(s, "eve"); err != nil {
			t.Error(err)
		}
		<-r.m.events
		s.Close()
	}
}

// Without a setting in the team file a person ends a limit; one without a date stays until then.
func TestProviderLimitedUntilResumed(t *testing.T) {
	t.Parallel()
	r, w, _ := claudes(t, "ann")
	past := time.Now().Add(-time.Minute).UnixMilli()
	for _, l := range []team.ProviderLimit{{Since: 1, Members: []string{"ann"}}, {Since: 2, Until: past}} {
		if err := r.led.Set(t.Context(), quota.SettingLimited, map[string]team.ProviderLimit{"claude": l}); err != nil {
			t.Fatal(err)
		}
		text := "prompt of " + time.UnixMilli(l.Since).UTC().String()
		r.heldBack(r.postTo("ann", text), "usage limit")
		if err := r.led.Set(t.Context(), quota.SettingLimited, map[string]team.ProviderLimit{}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.led.Event(t.Context(), ledger.Event{What: team.EventUsageResumed, ID: "claude"}); err != nil {
			t.Fatal(err)
		}
		r.sees("the prompt", func() bool { return w.of("ann").has(text) })
	}
}

// TestStartWithoutABudget checks that a start does not read what the members have used where no
// budget bounds it: nobody can read it here.
func TestStartWithoutABudget(t *testing.T) {
	t.Parallel()
	r, _, s := claudes(t, "ann")
	if err := r.led.Set(t.Context(), quota.SettingUsage, "unreadable"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.claude(s, "eve"); err != nil {
		t.Error(err)
	}
}

// At 80 % of a budget the lead is told, at 100 % the turn is broken off and prompts are held.
// Totals of conversations add up, and a higher budget lets the member continue.
func TestBudget(t *testing.T) {
	t.Parallel()
	r, w, s := claudes(t, "ann", "bob")
	r.budgets(team.Budgets{Members: map[string]team.Budget{"ann": {Tokens: 1000}}, Team: team.Budget{CostUSD: 100}})
	report := func(name, conversation string, u team.Usage) {
		w.of(name).report(team.Observation{Tier: team.TierChannel, Conversation: conversation, At: time.Now(), Source: "tokens", Usage: &u})
	}
	report("ann", "c1", team.Usage{InputTokens: 5700, CachedTokens: 5000, OutputTokens: 50})
	report("ann", "c2", team.Usage{InputTokens: 60})
	r.sees("a warning", func() bool { return r.seen(team.EventUsageBudgetWarned) == 1 })
	first := r.postTo("ann", "still under it")
	r.sees("mail", func() bool { return w.of("ann").has("still under it") })
	if ds, err := r.led.Deliveries(t.Context(), first); err != nil || ds[0].State == team.Held {
		t.Fatalf("held at 81 %%: %v", err)
	}
	report("ann", "c2", team.Usage{InputTokens: 260})
	r.sees("the end of it", func() bool { return r.seen(team.EventUsageBudgetUsedUp) == 1 && w.of("ann").interrupts() == 1 })
	id := r.postTo("ann", "over it")
	r.heldBack(id, "the budget of ann is used up")
	r.postTo("bob", "to another")
	r.sees("bob's", func() bool { return w.of("bob").has("to another") })

	s.Close() // what was used is known to the next one
	w.mu.Lock()
	clear(w.open)
	w.mu.Unlock()
	r.supervisor()
	r.sees("both channels", func() bool { return w.of("ann") != nil && w.of("bob") != nil })
	report("ann", "c3", team.Usage{InputTokens: 1})
	r.postTo("ann", "another")
	r.sees("the sum", func() bool {
		q, err := quota.Read(t.Context(), r.led)
		return err == nil && q.Team().Tokens() == 1011
	})
	if w.of("ann").has("over it") {
		t.Fatal("given over the budget")
	}
	r.budgets(team.Budgets{Members: map[string]team.Budget{"ann": {Tokens: 5000}}, Team: team.Budget{CostUSD: 100}})
	r.sees("what was held", func() bool { return w.of("ann").has("over it") && w.of("ann").has("another") })
	if n := r.seen(team.EventUsageBudgetWarned); n != 1 {
		t.Errorf("warned %d times", n)
	}

	report("bob", "b1", team.Usage{CostUSD: 101}) // the team's
	r.sees("both broken off", func() bool { return w.of("ann").interrupts() == 1 && w.of("bob").interrupts() == 1 })
	r.heldBack(r.postTo("ann", "at the team's end"), "the budget of the team is used up")
	// A request to stop goes through.
	if _, _, err := r.mailer().Post(t.Context(), ledger.NewMessage{Kind: team.KindShutdownRequest, From: team.LeadName, To: "ann", RequestID: "x", Text: `{"type":"shutdown_request","requestId":"x"}`}); err != nil {
		t.Fatal(err)
	}
	r.sees("the request", func() bool { return w.of("ann").has("shutdown_request") })
}

// A limit that a person has ended stays ended while its text is on the screen; a later text begins
// another.
func TestWordsOfALimitThatWasEnded(t *testing.T) {
	t.Parallel()
	r, w, s := claudes(t, "ann")
	began := time.Now()
	say := func(since time.Time) {
		w.of("ann").report(team.Observation{Tier: team.TierScreen, Activity: team.Limited, Since: since, At: time.Now(), Source: "rule usage-limit", Evidence: []string{"limit reached"}})
	}
	say(began)
	r.sees("the breaker", func() bool { return r.seen(team.EventUsageLimited) == 1 })
	r.heldBack(r.postTo("ann", "a prompt"), "usage limit")
	if err := quota.End(t.Context(), r.led, "claude", nil); err != nil {
		t.Fatal(err)
	}
	r.sees("the prompt", func() bool { return w.of("ann").has("a prompt") })
	for _, killed := range []bool{false, true} {
		if killed {
			s.Close()
			w.mu.Lock()
			clear(w.open)
			w.mu.Unlock()
			s = r.supervisor()
			r.sees("a channel", func() bool { return w.of("ann") != nil })
		}
		say(began)
		text := "another, killed: " + map[bool]string{true: "yes", false: "no"}[killed]
		r.postTo("ann", text)
		r.sees("it", func() bool { return w.of("ann").has(text) })
		r.wait("ann", "not limited", func(m ledger.Member) bool { return m.Activity != team.Limited })
	}
	if n := r.seen(team.EventUsageLimited); n != 1 {
		t.Errorf("%d limits", n)
	}
	say(time.Now().Add(time.Millisecond))
	r.wait("ann", "limited", func(m ledger.Member) bool { return m.Activity == team.Limited })
	r.heldBack(r.postTo("ann", "a third"), "usage limit")
}

// A supervisor that reads the screens of its members records the limits of their agents while a
// person ends one: that one stays ended, whoever writes last. Mail held by a breaker that never
// closes would never arrive.
func TestLimitEndedWhileOthersAreNoted(t *testing.T) {
	t.Parallel()
	r, w, _ := claudes(t, "ann")
	for i := range 20 {
		began, until := time.Now(), time.Now().Add(time.Hour)
		see := func() { // each is another write
			until = until.Add(time.Second)
			w.of("ann").report(team.Observation{Tier: team.TierScreen, Activity: team.Limited, Until: until, Since: began, At: time.Now(), Source: "rule", Evidence: []string{"limit reached"}})
		}
		see()
		r.sees("the breaker", func() bool { return r.seen(team.EventUsageLimited) == i+1 }) // else the prompt may come first
		text := fmt.Sprintf("prompt %d", i)
		r.heldBack(r.postTo("ann", text), "usage limit")
		done := make(chan struct{})
		var seeing sync.WaitGroup
		seeing.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					see()
				}
			}
		})
		err := quota.End(t.Context(), r.led, "claude", nil)
		close(done)
		seeing.Wait()
		if err != nil {
			t.Fatal(err)
		}
		r.sees(text, func() bool { return w.of("ann").has(text) })
	}
	if n := r.seen(team.EventUsageLimited); n != 20 {
		t.Errorf("%d limits", n)
	}
}

// A supervisor that is killed between the end of a limit and its message leaves the message to the
// next one: the agent whose turn was broken off is told once.
func TestEndOfALimitThatNobodyHeard(t *testing.T) {
	t.Parallel()
	r, w, s := claudes(t, "ann", "bob")
	w.of("ann").report(team.Observation{Tier: team.TierScreen, Activity: team.Limited, At: time.Now(), Source: "rule", Evidence: []string{"limit reached"}})
	r.sees("the breaker", func() bool { return r.seen(team.EventUsageLimited) == 1 })
	for i := range 3 {
		s.Close()
		if i == 0 {
			if err := quota.End(t.Context(), r.led, "claude", nil); err != nil {
				t.Fatal(err)
			}
		}
		w.mu.Lock()
		clear(w.open)
		w.mu.Unlock()
		s = r.supervisor()
		r.sees("both channels", func() bool { return w.of("ann") != nil && w.of("bob") != nil })
		if i == 0 {
			r.sees("the word", func() bool { return w.of("ann").has("is over") })
		}
		text := fmt.Sprintf("prompt %d", i)
		r.postTo("ann", text)
		r.sees(text, func() bool { return w.of("ann").has(text) })
	}
	if w.of("ann").has("is over") || w.of("bob").has("is over") {
		t.Error("told again, or to one who was never stopped")
	}
}

// A turn that waits for the end of a limit is broken off if a person ends that limit before the
// channel knows of the turn, because it is opened or informed only then.
func TestLimitEndedBeforeTheChannelKnows(t *testing.T) {
	t.Parallel()
	r, w, s := claudes(t, "ann")
	o := team.Observation{Tier: team.TierChannel, Activity: team.Limited, Since: time.Now(), Until: time.Now().Add(2 * time.Hour), At: time.Now(), Source: "retry"}
	w.of("ann").report(o)
	r.sees("the breaker", func() bool { return r.seen(team.EventUsageLimited) == 1 })
	r.heldBack(r.postTo("ann", "a prompt"), "usage limit")
	if err := quota.End(t.Context(), r.led, "claude", nil); err != nil {
		t.Fatal(err)
	}
	r.sees("the prompt", func() bool { return w.of("ann").has("a prompt") && w.of("ann").has("is over") })
	if n := w.of("ann").interrupts(); n != 0 {
		t.Errorf("%d interrupts of one that does not wait", n)
	}
	w.mu.Lock()
	w.retries = true
	w.mu.Unlock()
	o.At = time.Now()
	w.of("ann").report(o)
	r.sees("the interrupt", func() bool { return w.of("ann").interrupts() == 1 })
	s.Close()
	w.mu.Lock()
	clear(w.open)
	o.At = time.Now()
	w.first = &o
	w.mu.Unlock()
	r.supervisor()
	r.sees("the interrupt", func() bool { return w.of("ann") != nil && w.of("ann").interrupts() == 1 })
}

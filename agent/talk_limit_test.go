package agent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// gate is a Quota that the test opens and closes.
type gate struct {
	r       *rig
	reached chan time.Time
	used    chan team.Usage

	mu     sync.Mutex
	closed error
}

func newGate(r *rig) *gate {
	return &gate{r: r, reached: make(chan time.Time, 10), used: make(chan team.Usage, 100)}
}

func (g *gate) Blocked(context.Context, string) (why error, until time.Time, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed, until, nil
}

func (g *gate) Reached(_ context.Context, _ time.Time, limit *team.LimitReached) error {
	g.close(limit)
	g.reached <- limit.Until
	return nil
}

func (g *gate) Used(_ context.Context, u team.Usage) bool {
	g.used <- u
	return true
}

func (g *gate) close(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = why
}

// open opens the gate and writes to the ledger, like the end of a real limit.
func (g *gate) open() {
	g.r.t.Helper()
	g.close(nil)
	if err := g.r.led.Set(g.r.t.Context(), "limited", time.Now().String()); err != nil {
		g.r.t.Fatal(err)
	}
}

func (r *rig) coder() ledger.Member {
	r.t.Helper()
	m, err := r.led.MemberBySession(r.t.Context(), "session-coder")
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

// TestTalkAtALimit checks that a turn that ends at a limit leaves the member limited, not idle,
// and without prompts. After the limit the agent gets the refused prompt again, once, and then
// the messages sent meanwhile.
func TestTalkAtALimit(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} {
		r, m := newRig(t), newMate()
		g := newGate(r)
		m.mute = !begun
		wait := talkTo(t, r, m, TalkIn{Prompt: "the prompt", Quota: g})
		<-m.prompts
		until := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		m.finish <- &team.LimitReached{Until: until, Words: "the limit is reached"}
		if got := <-g.reached; !got.Equal(until) {
			t.Fatalf("until %s", got)
		}
		r.until("limited", func() bool {
			c := r.coder()
			return c.Activity == team.Limited && c.LimitedTo == until.UnixMilli() && c.Reason == "limited: the limit is reached"
		})
		msg := r.send(message("meanwhile"))
		r.until("held", func() bool { return r.state(msg.ID) == team.Held })
		if n := len(m.prompts); n != 0 || r.coder().Activity != team.Limited {
			t.Fatalf("%d prompts, it is %s", n, r.coder().Activity)
		}
		g.open()
		if !begun {
			if got := <-m.prompts; got != givenAgain+"the prompt" {
				t.Fatalf("again %q", got)
			}
			m.finish <- nil
		}
		got := <-m.prompts
		if !strings.Contains(got, "meanwhile") || strings.Contains(got, givenAgain) || r.coder().Activity != team.Working || r.coder().LimitedTo != 0 {
			t.Fatalf("given %q, it is %s", got, r.coder().Activity)
		}
		m.finish <- nil
		r.until("idle", func() bool { return r.coder().Activity == team.Idle && r.coder().Reason == "" })
		r.until("accepted", func() bool { return r.state(msg.ID) == team.Accepted })
		close(m.done)
		if err := wait(); err == nil {
			t.Error("no error")
		}
	}
}

// TestTalkMailAtALimit checks that mail refused at a limit is delivered again, and that a
// shutdown request is handled during a limit.
func TestTalkMailAtALimit(t *testing.T) {
	t.Parallel()
	r, m := newRig(t), newMate()
	g := newGate(r)
	m.mute = true
	wait := talkTo(t, r, m, TalkIn{Quota: g})
	msg := r.send(message("refused"))
	if got := <-m.prompts; strings.Contains(got, givenAgain) || !strings.Contains(got, msg.ID) {
		t.Errorf("given %q", got)
	}
	m.finish <- &team.LimitReached{Words: "the limit is reached"}
	<-g.reached
	r.until("limited", func() bool { return r.coder().Activity == team.Limited })
	if s := r.state(msg.ID); s != team.Injected {
		t.Errorf("it is %s", s)
	}
	g.open()
	// The agent may already have the message: the prompt says so, and the id is the same.
	if got := <-m.prompts; !strings.HasPrefix(got, givenAgain) || strings.Count(got, "\nrefused\n") != 1 || !strings.Contains(got, msg.ID) {
		t.Fatalf("given %q", got)
	}
	m.finish <- &team.LimitReached{Words: "once more"}
	<-g.reached
	r.askShutdown("coder")
	if err := wait(); err != nil {
		t.Fatal(err)
	}
}

// TestTalkAfterALimit checks that a member becomes idle at the end of a limit, that its mail
// waits until the quota permits it, and that another error of a turn is not a limit.
func TestTalkAfterALimit(t *testing.T) {
	t.Parallel()
	r, m := newRig(t), newMate()
	g := newGate(r)
	wait := talkTo(t, r, m, TalkIn{Prompt: "work", Quota: g})
	<-m.prompts
	m.finish <- &team.LimitReached{Until: time.Now().Add(50 * time.Millisecond), Words: "a moment"}
	<-g.reached
	r.until("idle", func() bool { c := r.coder(); return c.Activity == team.Idle && c.LimitedTo == 0 })
	msg := r.send(message("later"))
	r.until("held", func() bool { return r.state(msg.ID) == team.Held })
	g.open()
	if got := <-m.prompts; !strings.Contains(got, "later") {
		t.Fatalf("given %q", got)
	}
	m.finish <- errors.New("no such model")
	r.until("idle again", func() bool { return r.coder().Activity == team.Idle })
	close(m.done)
	if err := wait(); err == nil || len(g.reached) != 0 {
		t.Errorf("%v, %d more limits", err, len(g.reached))
	}
}

// counter is a mate that reports usage.
type counter struct{ *mate }

func (counter) Usage() team.Usage { return team.Usage{InputTokens: 7} }

func TestTalkTellsWhatItUsed(t *testing.T) {
	t.Parallel()
	r, m := newRig(t), newMate()
	g := newGate(r)
	wait := talkTo(t, r, counter{m}, TalkIn{Prompt: "work", Quota: g})
	<-m.prompts
	m.finish <- nil
	if u := <-g.used; u.InputTokens != 7 {
		t.Errorf("used %+v", u)
	}
	close(m.done)
	if err := wait(); err == nil || len(g.used) != 0 {
		t.Errorf("%v, told %d times more", err, len(g.used))
	}
}

package courier

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// How long typing waits for each change on the screen. LookAgain is the interval for looking at a
// pane whose change makes no output, as when a person leaves the history, lookSeldom that for one whose
// change the watch of the screen reports.
const (
	typeArrive = 3 * time.Second
	typeTaken  = 3 * time.Second
	typePoll   = 50 * time.Millisecond
	LookAgain  = 3 * time.Second
	lookSeldom = time.Minute
	// escapeAlone is how long nothing follows an Escape: a program reads what follows at once as
	// one key sequence with it, and the Escape is lost.
	escapeAlone = 250 * time.Millisecond
)

// Keyer is a Screen that can press a key without a character.
type Keyer interface {
	// Key presses a key, for example "Escape".
	Key(ctx context.Context, name string) error
}

// Scroller is a Screen that knows whether a person is scrolling in it.
type Scroller interface {
	Scrolling(ctx context.Context) (bool, error)
}

// Typist types into an agent's input box, as a last resort. It types only if the screen patterns
// show an idle agent with an empty box: never over what a person began, into a dialog, or blindly.
type Typist struct {
	f      Facts
	s      Screen
	report Report

	mu      sync.Mutex
	again   *time.Timer // nil: none is armed
	due     time.Time   // when it rings
	over    bool
	shown   team.Activity // what the last look for typing saw; "" if it saw nothing
	escaped time.Time     // when Escape was last pressed
	rings   sync.WaitGroup
	// The request for which a key was last pressed, and when.
	pressedFor string
	pressedAt  time.Time
}

// Typing is the channel of agents that can be reached only by keyboard. Channels of programs that
// have to be woken, or whose own way fails, build on it.
type Typing struct {
	Typist
	// The text sent last, until the agent has visibly taken it. Used only by Deliver.
	text string
	ids  []string
}

// NewTyping returns the channel of a generation.
func NewTyping(f Facts, s Screen, r Report) *Typing {
	return &Typing{Typist: Typist{f: f, s: s, report: r}}
}

func openTyping(_ context.Context, f Facts, s Screen, r Report) (Channel, error) {
	return NewTyping(f, s, r), nil
}

// Deliver types all mail as one message. An earlier text that was not seen to be taken comes
// first: it is never typed twice.
func (t *Typing) Deliver(ctx context.Context, mail []team.Mail) []team.Outcome {
	out := make([]team.Outcome, len(mail))
	if len(t.ids) > 0 {
		r := t.settle(ctx)
		for i, m := range mail {
			out[i] = team.Outcome{ID: m.ID, State: team.Held, Reason: "what was typed before it is not sent yet"}
			if slices.Contains(t.ids, m.ID) {
				out[i].State, out[i].Reason, out[i].Evidence = r.State, r.Reason, r.Evidence
			}
		}
		if r.State == team.Accepted {
			t.text, t.ids = "", nil
		}
		t.LookLater()
		return out
	}
	// A text in the box, or in flight to it, is sent first, as it was typed.
	text, ids := "", []string(nil)
	if f := t.flight(); slices.ContainsFunc(mail, func(m team.Mail) bool { return slices.Contains(f.IDs, m.ID) }) {
		text, ids = f.Text, f.IDs
	} else {
		texts := make([]string, len(mail))
		for i, m := range mail {
			texts[i], ids = m.Text, append(ids, m.ID)
		}
		text = strings.Join(texts, "\n\n")
	}
	r := t.Send(ctx, text, ids...)
	if r.State == team.Injected {
		t.text, t.ids = text, ids
		r.State, r.Reason = team.Held, "typed, and its Enter is not seen to have been taken"
		t.Later(LookAgain)
	}
	for i, m := range mail {
		out[i] = r
		if !slices.Contains(ids, m.ID) {
			out[i] = team.Outcome{State: team.Held, Reason: "what was typed before it is not sent yet"}
			t.LookLater()
		}
		out[i].ID = m.ID
	}
	return out
}

// settle finds out what became of the text sent before: it has left the box, or it is still there
// and gets another Enter.
func (t *Typing) settle(ctx context.Context) team.Outcome {
	seen, err := t.f.look.see(ctx)
	t.saw(seen)
	if err == nil && (seen.Activity == team.Working || seen.HasInput && seen.Input == "") {
		return team.Outcome{State: team.Accepted, Evidence: "typed and taken: it is not in the input box any more"}
	}
	if r := t.Send(ctx, t.text); r.State != team.Injected {
		return r
	}
	return team.Outcome{State: team.Held, Reason: "typed, and its Enter is not seen to have been taken"}
}

// Answer refuses: nothing shows which request the dialog on the screen belongs to.
func (t *Typist) Answer(context.Context, team.Reply) error {
	return team.Errorf(team.CodeNotFound, "%s is answered at its own dialog", t.f.AgentID).WithHint("teamctl attach " + t.f.Name)
}

// SetMode changes nothing: the mode of the start stays.
func (t *Typist) SetMode(mode team.Mode) string {
	if adapter.SameMode(t.f.Link, t.f.Link.Mode, mode) {
		return ""
	}
	return adapter.AtItsNextStart
}

// Interrupt presses Escape if the program supports it, else Ctrl-C.
func (t *Typist) Interrupt(ctx context.Context) error {
	if k, ok := t.s.(Keyer); ok && adapter.Escapes(t.f.Link.Agent) {
		err := k.Key(ctx, "Escape")
		t.mu.Lock()
		t.escaped = time.Now()
		t.mu.Unlock()
		return err
	}
	return t.s.Interrupt(ctx)
}

// alone waits until typed text can no longer combine with the last Escape.
func (t *Typist) alone(ctx context.Context) bool {
	t.mu.Lock()
	left := escapeAlone - time.Since(t.escaped)
	t.mu.Unlock()
	return left <= 0 || Pause(ctx, left)
}

// Later schedules another attempt at held mail after d, if no event would trigger one. An attempt that
// is due before that stays.
func (t *Typist) Later(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	due := time.Now().Add(d)
	switch {
	case t.over:
		return
	case t.again == nil:
		t.rings.Add(1)
	case !due.Before(t.due) || !t.again.Stop(): // the other one is sooner, or it rings
		return
	}
	t.due = due
	t.again = time.AfterFunc(d, func() {
		defer t.rings.Done()
		t.mu.Lock()
		t.again = nil
		over := t.over
		t.mu.Unlock()
		if !over {
			t.report(team.Observation{Tier: team.TierScreen, Source: "held mail is tried again"})
		}
	})
}

// LookLater schedules another attempt at mail that cannot be typed for what the last look has found.
// The watch of the screen reports the end of a turn and of a dialog, which may last until a person is
// back; one look a minute is for a report that came while the mail was being held.
func (t *Typist) LookLater() {
	t.mu.Lock()
	shown := t.shown
	t.mu.Unlock()
	if shown == team.Working || shown == team.Waiting {
		t.Later(lookSeldom)
		return
	}
	t.Later(LookAgain)
}

// saw records what a look has found.
func (t *Typist) saw(seen adapter.Seen) {
	t.mu.Lock()
	t.shown = seen.Activity
	t.mu.Unlock()
}

// Close stops the scheduled attempt.
func (t *Typist) Close() {
	t.mu.Lock()
	t.over = true
	if t.again != nil && t.again.Stop() {
		t.rings.Done()
	}
	t.again = nil
	t.mu.Unlock()
	t.rings.Wait()
}

// Blocked returns why nothing can be typed now, "" if it can.
func (t *Typist) Blocked(ctx context.Context) (why string, seen adapter.Seen) {
	defer func() { t.saw(seen) }()
	if sc, ok := t.s.(Scroller); ok {
		if on, err := sc.Scrolling(ctx); err == nil && on {
			t.Later(LookAgain)
			return "a person scrolls in its pane", seen
		}
	}
	limited, seen, err := t.f.look.read(ctx)
	switch {
	case err == nil && limited.Activity == team.Limited && t.f.look.limits.tell(limited):
		// The supervisor has not been notified of this limit. A limit that it knows holds mail back
		// until the limit ends or a person continues; then the text on the screen blocks nothing.
		t.report(observation(limited))
		t.Later(LookAgain)
		return "it has reached a usage limit", limited
	case err != nil:
		return "its screen cannot be read: " + err.Error(), seen
	case t.f.look.rules == nil:
		return "nothing is known of its screens: write rules/" + t.f.Link.Agent + ".yaml", seen
	case seen.Activity == team.Waiting:
		return "it waits for " + string(seen.For), seen
	case seen.Activity != team.Idle:
		return "it is " + string(seen.Activity), seen
	case !seen.HasInput:
		return "its input box is not to be seen", seen
	}
	return "", seen
}

// Send types a text and Enter. Injected: the box accepted it. Accepted: the agent is working on
// it. Held: nothing was sent, for the given reason. ids are those of the mail in the text, if any.
func (t *Typist) Send(ctx context.Context, text string, ids ...string) team.Outcome {
	if !t.alone(ctx) {
		return team.Outcome{State: team.Held, Reason: "its turn was interrupted this moment"}
	}
	text = adapter.Typed(t.f.look.enter(), text)
	why, seen := t.Blocked(ctx)
	flies := t.inFlight(seen)
	switch {
	case why != "":
		return team.Outcome{State: team.Held, Reason: why}
	case flies && !t.lost():
		t.Later(LookAgain)
		return team.Outcome{State: team.Held, Reason: "typed before, and the program may still have to read it"}
	}
	if seen.Input != "" && !t.Ours(seen.Input, text) {
		return team.Outcome{State: team.Held, Reason: "somebody has begun to type there"}
	}
	if seen.Input == "" {
		if why := t.paste(ctx, text, ids); why != "" {
			return team.Outcome{State: team.Held, Reason: why}
		}
	}
	arrived := t.until(ctx, typeArrive, func(s adapter.Seen) bool { return s.HasInput && t.Ours(s.Input, text) })
	if !arrived {
		t.Later(LookAgain)
		return team.Outcome{State: team.Held, Reason: "typed, and not seen to have arrived"}
	}
	if !Pause(ctx, t.f.look.enter().Wait) {
		return team.Outcome{State: team.Held, Reason: "typed, and not sent"}
	}
	// A person may have typed after it, or a dialog may have opened.
	if why, seen = t.Blocked(ctx); why != "" || !t.Ours(seen.Input, text) {
		t.Later(LookAgain)
		return team.Outcome{State: team.Held, Reason: "typed, and not sent: " + cmp.Or(why, "somebody types there")}
	}
	t.inFlight(seen) // it has arrived
	if err := t.s.TypeText(ctx, "", true); err != nil {
		return team.Outcome{State: team.Held, Reason: "typed, and not sent: " + err.Error()}
	}
	t.endFlight()
	var last adapter.Seen
	if t.until(ctx, typeTaken, func(s adapter.Seen) bool {
		last = s
		return s.Activity == team.Working || s.HasInput && s.Input == ""
	}) {
		return team.Outcome{State: team.Accepted, Evidence: fmt.Sprintf("typed and taken: the screen shows %q", cmp.Or(last.Rule, "an empty input box"))}
	}
	return team.Outcome{State: team.Injected, Evidence: "typed, with Enter"}
}

var pasted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^\[pasted (text|content|~?\d+ lines)`) })

// Ours reports whether the box holds the typed text, whole or as far as it is shown; many programs
// show a long paste as a placeholder. A text that was typed twice, because a slow program did not
// show it in time, is still ours: otherwise it would stay there for ever as somebody else's.
func (t *Typist) Ours(input, text string) bool {
	if pasted().MatchString(input) {
		return true
	}
	// A box breaks long words as well.
	in, want := strings.Join(strings.Fields(input), ""), strings.Join(strings.Fields(text), "")
	if in == "" || want == "" {
		return false
	}
	again := strings.TrimSpace(strings.ReplaceAll(in, want, "")) == ""
	return again || len(in) >= 16 && strings.Contains(want, in) // a box of few lines shows the end
}

// until looks at the screen until ok returns true, or until limit has passed.
func (t *Typist) until(ctx context.Context, limit time.Duration, ok func(adapter.Seen) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(typePoll)
	defer tick.Stop()
	for {
		if seen, err := t.f.look.see(ctx); err == nil && ok(seen) {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// Pause waits for d; it returns false if ctx ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// enter returns how a pasted text is sent.
func (l *looker) enter() adapter.Enter {
	if l.rules == nil {
		return adapter.Enter{}
	}
	return l.rules.Enter
}

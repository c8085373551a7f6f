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

// What typing waits for on the screen, each time. lookAgain is how soon a pane is
// looked at again whose change makes no output: a person who read back in it goes on.
const (
	typeArrive = 3 * time.Second
	typeTaken  = 3 * time.Second
	typePoll   = 50 * time.Millisecond
	lookAgain  = 3 * time.Second
	// escapeAlone is how long an Escape stands alone: what follows at once a program
	// reads as one key sequence with it, and the Escape is lost.
	escapeAlone = 250 * time.Millisecond
)

// Keyer is a Screen that can press a key that is no text.
type Keyer interface {
	// Key presses one: "Escape".
	Key(ctx context.Context, name string) error
}

// Scroller is a Screen that knows whether a person scrolls in it.
type Scroller interface {
	Scrolling(ctx context.Context) (bool, error)
}

// typist types into an agent's input box, as the last way. It does so only where
// the rules for its screens see it idle with an empty box: nothing is ever typed
// over what a person began, into a dialog, or blindly.
type typist struct {
	f      Facts
	s      Screen
	report Report

	mu      sync.Mutex
	again   *time.Timer // nil: none is armed
	over    bool
	escaped time.Time // when Escape was pressed last
	rings   sync.WaitGroup
	// The question that a key was pressed for last, and when.
	pressedFor string
	pressedAt  time.Time
}

// typing is the channel of agents that only a keyboard reaches.
type typing struct {
	typist
	// What was sent and not seen to have been taken. Used by Deliver only.
	text string
	ids  []string
}

func openTyping(_ context.Context, f Facts, s Screen, r Report) (Channel, error) {
	return &typing{typist: typist{f: f, s: s, report: r}}, nil
}

// Deliver types all of it as one message. What was sent before and not seen to have
// been taken comes first: it is never typed twice.
func (t *typing) Deliver(ctx context.Context, mail []team.Mail) []team.Outcome {
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
		t.later(lookAgain)
		return out
	}
	// What stands there, or is on its way there, is sent first, as it was typed.
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
	r := t.send(ctx, text, ids...)
	if r.State == team.Injected {
		t.text, t.ids = text, ids
		r.State, r.Reason = team.Held, "typed, and its Enter is not seen to have been taken"
		t.later(lookAgain)
	}
	for i, m := range mail {
		out[i] = r
		if !slices.Contains(ids, m.ID) {
			out[i] = team.Outcome{State: team.Held, Reason: "what was typed before it is not sent yet"}
			t.later(lookAgain)
		}
		out[i].ID = m.ID
	}
	return out
}

// settle finds out about what was sent before: it has gone from the box, or it stands
// there and gets another Enter.
func (t *typing) settle(ctx context.Context) team.Outcome {
	seen, err := t.f.look.see(ctx)
	if err == nil && (seen.Activity == team.Working || seen.HasInput && seen.Input == "") {
		return team.Outcome{State: team.Accepted, Evidence: "typed and taken: it is not in the input box any more"}
	}
	if r := t.send(ctx, t.text); r.State != team.Injected {
		return r
	}
	return team.Outcome{State: team.Held, Reason: "typed, and its Enter is not seen to have been taken"}
}

// Answer cannot be typed: nothing shows that the dialog is the one that asked.
func (t *typist) Answer(context.Context, team.Reply) error {
	return team.Errorf(team.CodeNotFound, "%s is answered at its own dialog", t.f.AgentID).WithHint("teamctl attach " + t.f.Name)
}

// SetMode changes nothing: what it was started with holds.
func (t *typist) SetMode(mode team.Mode) string {
	if adapter.SameMode(t.f.Link, t.f.Link.Mode, mode) {
		return ""
	}
	return adapter.AtItsNextStart
}

// Interrupt presses Escape, or Ctrl-C where that is the way.
func (t *typist) Interrupt(ctx context.Context) error {
	if k, ok := t.s.(Keyer); ok && adapter.Escapes(t.f.Link.Agent) {
		err := k.Key(ctx, "Escape")
		t.mu.Lock()
		t.escaped = time.Now()
		t.mu.Unlock()
		return err
	}
	return t.s.Interrupt(ctx)
}

// alone waits until nothing typed is taken for a part of the last Escape.
func (t *typist) alone(ctx context.Context) bool {
	t.mu.Lock()
	left := escapeAlone - time.Since(t.escaped)
	t.mu.Unlock()
	return left <= 0 || Pause(ctx, left)
}

// later has what is held tried once more after so long, where nothing that happens
// would tell that it can be.
func (t *typist) later(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.again != nil {
		return
	}
	t.rings.Add(1)
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

// Close ends what was to be tried later.
func (t *typist) Close() {
	t.mu.Lock()
	t.over = true
	if t.again != nil && t.again.Stop() {
		t.rings.Done()
	}
	t.again = nil
	t.mu.Unlock()
	t.rings.Wait()
}

// blocked says why nothing can be typed now; "" that it can.
func (t *typist) blocked(ctx context.Context) (why string, seen adapter.Seen) {
	if sc, ok := t.s.(Scroller); ok {
		if on, err := sc.Scrolling(ctx); err == nil && on {
			t.later(lookAgain)
			return "a person scrolls in its pane", seen
		}
	}
	limited, seen, err := t.f.look.read(ctx)
	switch {
	case err == nil && limited.Activity == team.Limited && t.f.look.limits.tell(limited):
		// The supervisor has not heard of it. What it knows of holds mail back until it is
		// over, or a person goes on: then its words on the screen are in nobody's way.
		t.report(observation(limited))
		t.later(lookAgain)
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

// send types a text and Enter. Injected: the box took it. Accepted: the agent works
// on it. Held: nothing was sent, for the reason.
// ids are of the mail that the text is, where it is any.
func (t *typist) send(ctx context.Context, text string, ids ...string) team.Outcome {
	if !t.alone(ctx) {
		return team.Outcome{State: team.Held, Reason: "its turn was interrupted this moment"}
	}
	text = adapter.Typed(t.f.look.enter(), text)
	why, seen := t.blocked(ctx)
	flies := t.inFlight(seen)
	switch {
	case why != "":
		return team.Outcome{State: team.Held, Reason: why}
	case flies && !t.lost():
		t.later(lookAgain)
		return team.Outcome{State: team.Held, Reason: "typed before, and the program may still have to read it"}
	}
	if seen.Input != "" && !t.ours(seen.Input, text) {
		return team.Outcome{State: team.Held, Reason: "somebody has begun to type there"}
	}
	if seen.Input == "" {
		if why := t.paste(ctx, text, ids); why != "" {
			return team.Outcome{State: team.Held, Reason: why}
		}
	}
	arrived := t.until(ctx, typeArrive, func(s adapter.Seen) bool { return s.HasInput && t.ours(s.Input, text) })
	if !arrived {
		t.later(lookAgain)
		return team.Outcome{State: team.Held, Reason: "typed, and not seen to have arrived"}
	}
	if !Pause(ctx, t.f.look.enter().Wait) {
		return team.Outcome{State: team.Held, Reason: "typed, and not sent"}
	}
	// A person may have gone on typing behind it, or a dialog may have come up.
	if why, seen = t.blocked(ctx); why != "" || !t.ours(seen.Input, text) {
		t.later(lookAgain)
		return team.Outcome{State: team.Held, Reason: "typed, and not sent: " + cmp.Or(why, "somebody types there")}
	}
	t.inFlight(seen) // it has landed
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

// ours reports whether the box holds what was typed, whole or as far as it shows;
// many programs show a long paste as a mark. What was typed once more because a slow program
// had not shown it yet is ours still: it would stand there for ever as somebody else's.
func (t *typist) ours(input, text string) bool {
	if pasted().MatchString(input) {
		return true
	}
	// A box breaks long words, too.
	in, want := strings.Join(strings.Fields(input), ""), strings.Join(strings.Fields(text), "")
	if in == "" || want == "" {
		return false
	}
	again := strings.TrimSpace(strings.ReplaceAll(in, want, "")) == ""
	return again || len(in) >= 16 && strings.Contains(want, in) // a box of few lines shows the end
}

// until looks at the screen until ok, or for so long.
func (t *typist) until(ctx context.Context, limit time.Duration, ok func(adapter.Seen) bool) bool {
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

// Pause waits; false says that ctx has ended first.
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

// enter is how a pasted text is sent.
func (l *looker) enter() adapter.Enter {
	if l.rules == nil {
		return adapter.Enter{}
	}
	return l.rules.Enter
}

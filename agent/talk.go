package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Conversation is a foreign agent that takes one prompt at a time.
type Conversation interface {
	// Prompt sends a text and returns the stop reason when the turn is over. It calls begun once,
	// at the first sign that the agent has the text. If it fails because the agent is gone, Done is
	// closed before it returns.
	Prompt(ctx context.Context, text string, begun func()) (reason string, err error)
	// Cancel cancels the current turn.
	Cancel(ctx context.Context) error
	// Done is closed when the agent is gone: it has exited, or takes nothing more.
	Done() <-chan struct{}
}

// Moder is a Conversation whose agent can be put into a permission mode, also while it works; has
// is false if it has no such mode.
type Moder interface {
	SetMode(ctx context.Context, mode team.Mode) (has bool, err error)
}

// TalkIn is the input of Talk.
type TalkIn struct {
	Prompt    string          // first text, may be empty
	Briefing  string          // precedes the first prompt, whatever that is
	Interrupt <-chan struct{} // interrupts the current turn; values from before a turn are dropped
	Quota     Quota           // nil: usage is not counted, and no limit applies
}

const (
	injectEvidence = "given to the agent"
	beganEvidence  = "the agent began a turn with it"
	cancelLimit    = 10 * time.Second

	// givenAgain precedes a text that a conversation has refused without a sign that it has the
	// text: some agents keep such a prompt, others do not, and the protocol does not say.
	givenAgain = "Some of what follows was given to you when a usage limit was reached. If you have it already, it is the same once more.\n\n"
)

// Talk delivers mail to a conversation, one turn at a time: all unread mail, most urgent first. A
// message is marked injected before it is sent and accepted when the turn has begun, so no message
// is given to a conversation twice; mail for a turn that never began becomes unread again. A turn
// ended by a usage limit leaves the member limited; mail that the agent refused then, without a
// sign that it has it, is sent again after the limit, marked as such. A shutdown request of the
// lead or an operator ends the current turn and is the next prompt; Talk returns nil once the
// agent has approved it and its turn is over, or at once if the agent has had no prompt or can
// have none. It returns an error when the agent exits, and when ctx ends.
func Talk(ctx context.Context, id Identity, env Env, conv Conversation, in TalkIn) error {
	w := newWorker(id, env)
	changes, stop, err := env.Ledger.Changes(ctx)
	if err != nil {
		return fmt.Errorf("agent %s: watch the ledger: %w", id.AgentID, err)
	}
	defer stop()
	w.changes = changes
	w.did(ctx)
	if env.Ready != nil {
		env.Ready()
	}
	t := talk{limits: newLimits(w, in.Quota), conv: conv, briefing: in.Briefing, interrupt: in.Interrupt}
	if err := t.loop(ctx, in.Prompt); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("agent %s: %w", id.AgentID, err)
	}
	return nil
}

type talk struct {
	limits
	conv      Conversation
	interrupt <-chan struct{}
	mode      team.Mode // mode that was last set; "" is its own

	counted  team.Usage // recorded
	briefing string     // for the first prompt that it accepts
	prompted bool       // a turn has begun
}

// follow puts the conversation into the member's current mode: an approved plan or a person may
// have changed it.
func (t *talk) follow(ctx context.Context) {
	c, ok := t.conv.(Moder)
	if !ok {
		return
	}
	m, err := t.env.Ledger.MemberBySession(ctx, t.id.Session)
	if err != nil {
		return // the next call sets it
	}
	if m.Spec.Mode == t.mode || t.mode == "" && m.Spec.Mode == team.ModeDefault {
		return
	}
	c1, cancel := context.WithTimeout(ctx, cancelLimit)
	defer cancel()
	has, err := c.SetMode(c1, m.Spec.Mode)
	switch {
	case err != nil:
		t.out.line("%s: %v", t.id.AgentID, err)
		return
	case !has:
		t.out.line("%s: it has no mode like %s", t.id.AgentID, m.Spec.Mode)
	}
	t.mode = m.Spec.Mode
	if t.mode == "" {
		t.mode = team.ModeDefault
	}
}

func (t *talk) loop(ctx context.Context, prompt string) error {
	first := prompt // the initial prompt, until a turn has it
	twice := false  // it was sent, and refused
	for {
		t.again = 0
		prompt, given, stop := t.mail(ctx)
		if stop {
			return nil
		}
		waits := given
		again := slices.ContainsFunc(given, func(l letter) bool { return t.gave[l.entry.Key()] })
		if first != "" {
			prompt, given, again = first, nil, twice
		}
		if again {
			prompt = givenAgain + prompt
		}
		if prompt != "" && t.briefing != "" && !t.prompted {
			prompt = t.briefing + "\n\n" + prompt
		}
		if (prompt != "" || t.stopped != nil) && !t.blocked(ctx, prompt != "", waits) && prompt != "" {
			refused, err := t.turn(ctx, prompt, given)
			if err != nil {
				return err
			}
			if t.approved(ctx, given) {
				return nil
			}
			if twice = refused; !refused {
				first = ""
			}
			continue
		}
		t.rest(ctx)
		t.count(ctx)
		select {
		case <-t.conv.Done():
			return errors.New("the agent has ended")
		default:
		}
		if err := t.wait(ctx); err != nil {
			return err
		}
	}
}

// wait is the worker's wait, and also ends when the agent exits.
func (t *talk) wait(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-t.conv.Done():
			cancel(errors.New("the agent has ended"))
		case <-ctx.Done():
		}
	}()
	err := t.worker.wait(ctx)
	if err != nil {
		err = context.Cause(ctx)
	}
	cancel(nil)
	<-ended
	return err
}

// mail returns the next prompt, with all unread mail; stop means that a shutdown was approved.
func (t *talk) mail(ctx context.Context) (prompt string, given []letter, stop bool) {
	t.settleOwed(ctx)
	letters, ok := t.letters(ctx)
	if !ok {
		return "", nil, false
	}
	ask, stop := t.shutdowns(ctx, letters)
	if stop {
		t.markRead(ctx)
		return "", nil, true
	}
	if len(ask) > 0 { // the rest stays unread for after it, or for the next life
		letters = ask
	}
	for _, l := range letters {
		if l.done || t.handled[l.entry.Key()] {
			t.handled[l.entry.Key()] = true
			continue
		}
		given = append(given, l)
	}
	t.markRead(ctx)
	prompt = render(given)
	if len(ask) > 0 {
		prompt += goOnAfter
	}
	return prompt, given, false
}

// unfinished maps the protocol's reasons for a turn that the agent did not finish to text. A
// cancelled turn was ended on request.
var unfinished = map[string]string{
	"refusal":           "the agent refused to go on (refusal)",
	"max_tokens":        "the answer was cut off at the model's limit (max_tokens)",
	"max_turn_requests": "the turn took more requests than the agent allows (max_turn_requests)",
}

// maxFailure is the maximum length of an error that ended a turn, in characters.
const maxFailure = 500

// turn runs one prompt, until the end of the agent's turn. refused means that the agent has
// refused it at a usage limit, without a sign that it has begun, so that it is to be sent again.
func (t *talk) turn(ctx context.Context, prompt string, given []letter) (refused bool, err error) {
	t.notified, t.broken, t.failed = false, false, ""
	select {
	case <-t.interrupt:
	default:
	}
	t.setActivity(ctx, team.Working)
	t.follow(ctx)
	for _, l := range given {
		t.gave[l.entry.Key()] = true
		t.injected(ctx, l)
	}
	sign := make(chan struct{}) // closed once, as Prompt guarantees
	begun := sign
	type end struct {
		reason string
		err    error
	}
	over := make(chan end, 1)
	go func() {
		reason, err := t.conv.Prompt(ctx, prompt, func() { close(sign) })
		over <- end{reason, err}
	}()
	gives := given
	asked := func() bool { return t.asked(ctx, gives) }
	accept := func() {
		t.prompted = true
		for _, l := range given {
			t.receipt(ctx, l, beganEvidence)
			t.handled[l.entry.Key()] = true
		}
		given = nil
		t.markRead(ctx)
	}
	cancelled, early := false, false
	breakOff := func(why string) {
		select {
		case <-sign:
		default:
			early = true // it may arrive before the prompt does, and have no effect
		}
		t.cancel(ctx, why)
	}
	for {
		select {
		case e := <-over:
			select {
			case <-sign:
				accept()
				begun = nil
			default:
			}
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			t.count(ctx)
			if e.err != nil {
				select {
				case <-t.conv.Done():
					return false, e.err
				default:
				}
				t.out.line("%s: the turn failed: %v", t.id.AgentID, e.err)
				var limit *team.LimitReached
				if t.quota != nil && errors.As(e.err, &limit) {
					t.limited(ctx, limit)
					return begun != nil, nil
				}
				t.failed = cut(oneLine(e.err.Error()), maxFailure)
				// A message that the agent does not accept must not be sent for ever.
				for _, l := range given {
					t.handled[l.entry.Key()] = true
				}
				return false, nil
			}
			t.out.line("%s: turn over: %s", t.id.AgentID, e.reason)
			t.failed = unfinished[e.reason]
			return false, nil
		case <-begun:
			accept()
			begun = nil
			if early {
				t.cancel(ctx, "it has begun all the same: once more")
			}
		case <-t.interrupt:
			t.broken = true
			breakOff("interrupted")
		case <-t.changes:
			t.follow(ctx)
			if !cancelled && asked() {
				cancelled = true
				breakOff("shutdown requested")
			}
		case _, ok := <-t.env.Mail:
			if !ok {
				t.env.Mail = nil
			}
			if !cancelled && asked() {
				cancelled = true
				breakOff("shutdown requested")
			}
		}
	}
}

// asked reports whether an authorised sender has requested a shutdown, in mail that this turn does
// not contain.
func (t *talk) asked(ctx context.Context, given []letter) bool {
	letters, _ := t.letters(ctx)
	return slices.ContainsFunc(letters, func(l letter) bool {
		return l.known && !l.done && l.msg.Kind == team.KindShutdownRequest && l.commands &&
			!slices.ContainsFunc(given, func(g letter) bool { return g.entry.Key() == l.entry.Key() })
	})
}

func (t *talk) cancel(ctx context.Context, why string) {
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelLimit)
	defer cancel()
	t.out.line("%s: %s", t.id.AgentID, why)
	if err := t.conv.Cancel(c); err != nil {
		t.out.line("%s: %v", t.id.AgentID, err)
	}
}

// injected records that a message is being sent. A failure is harmless: accepted messages have a
// receipt.
func (t *talk) injected(ctx context.Context, l letter) {
	if !l.known {
		return
	}
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	err := t.few(c, func() error {
		_, err := t.env.Ledger.Mark(c, ledger.DeliveryMark{MessageID: l.msg.ID, Recipient: t.id.Name, State: team.Injected, Evidence: injectEvidence})
		return err
	})
	if err != nil && !lost(err) {
		t.out.line("message %s: not noted as given: %v", l.msg.ID, err)
	}
}

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

// Conversation is an agent of another maker that takes one prompt at a time.
type Conversation interface {
	// Prompt gives a text and returns when the turn is over, with the reason. begun
	// is called once, at the first sign that the agent has the text.
	Prompt(ctx context.Context, text string, begun func()) (reason string, err error)
	// Cancel ends the turn under way.
	Cancel(ctx context.Context) error
	// Done is closed when the agent has ended.
	Done() <-chan struct{}
}

// Moder is a Conversation whose agent can be put into a permission mode, also while it
// works; has is false where it has none of that kind.
type Moder interface {
	SetMode(ctx context.Context, mode team.Mode) (has bool, err error)
}

// TalkIn is a Talk's.
type TalkIn struct {
	Prompt    string          // first text, may be empty
	Briefing  string          // stands before the first prompt, whatever that is
	Interrupt <-chan struct{} // ends the turn under way; what is in it before a turn begins ends none
	Quota     Quota           // nil: nothing is counted, and no limit holds
}

const (
	injectEvidence = "given to the agent"
	beganEvidence  = "the agent began a turn with it"
	cancelLimit    = 10 * time.Second

	// givenAgain stands before what a conversation has refused without a sign that it has
	// it: some agents keep the text of such a prompt, others do not, and the protocol does
	// not say which.
	givenAgain = "Some of what follows was given to you when a usage limit was reached. If you have it already, it is the same once more.\n\n"
)

// Talk gives a conversation its mail, one turn at a time: all that is unread, the
// most urgent first. A message is marked injected before it is given and accepted
// when the turn has begun, so none is given twice in a conversation; what a turn
// that never began was given is unread again. A turn that a usage limit has ended leaves
// the member limited; what the agent has refused then, without a sign that it has it, is
// given when the limit is over, and said to be given again. A shutdown request of the lead
// or an operator ends the turn under way and is the next prompt; Talk returns nil once the
// agent has approved it and its turn is over, or at once if it has had no prompt or can
// have none. It returns an error when the agent ends, and when ctx does.
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
	mode      team.Mode // that the conversation was last put into; "" is its own

	counted  team.Usage // written down
	briefing string     // for the first prompt that it takes
	prompted bool       // a turn has begun
}

// follow puts the conversation into the mode that the member is in: an approved plan or a
// person may have changed it.
func (t *talk) follow(ctx context.Context) {
	c, ok := t.conv.(Moder)
	if !ok {
		return
	}
	m, err := t.env.Ledger.MemberBySession(ctx, t.id.Session)
	if err != nil {
		return // the next look has it
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
	first := prompt // what it was started with, until a turn has it
	twice := false  // that was given, and refused
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

// wait is the worker's, and ends with the agent.
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

// mail is the next prompt, of all that is unread; stop means that a shutdown was
// approved.
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

// unfinished are the protocol's reasons for the end of a turn that the agent has not
// brought to its end, in words. A cancelled one was ended by somebody.
var unfinished = map[string]string{
	"refusal":           "the agent refused to go on (refusal)",
	"max_tokens":        "the answer was cut off at the model's limit (max_tokens)",
	"max_turn_requests": "the turn took more requests than the agent allows (max_turn_requests)",
}

// maxFailure bounds the words of an error that ended a turn, in characters.
const maxFailure = 500

// turn is one prompt, from its handing over to the end of the agent's turn. One that the
// agent has refused at a usage limit, without a sign that it has begun, is to be given
// again.
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
	sign := make(chan struct{}) // closed once: Prompt promises it
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
			early = true // it may come before the prompt does, and end nothing
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
				// A message that the agent does not take must not be given for ever.
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

// asked reports that somebody who may has asked for a shutdown, in mail that is not given
// in this turn.
func (t *talk) asked(ctx context.Context, given []letter) bool {
	letters, _ := t.letters(ctx)
	return slices.ContainsFunc(letters, func(l letter) bool {
		return l.known && !l.done && l.msg.Kind == team.KindShutdownRequest && t.mayCommand(ctx, l.msg.From) &&
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

// injected notes that a message is being given. Nothing hangs on it: what was taken
// has a receipt.
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

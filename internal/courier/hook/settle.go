package hook

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// How long an answer may take to reach the transcript, which programs write from time to time.
// After that the program has not taken it.
const (
	patience = 30 * time.Second
	// queuePatience is how long later mail waits behind messages in the program's own queue: a long
	// text takes minutes on a loaded machine.
	queuePatience = 10 * time.Minute
	// atOnce is the maximum time between hooks of one boundary.
	atOnce = 3 * time.Second
)

// transcript is a transcript read from an offset on.
type transcript struct {
	from int64
	adapter.Transcript
}

// verdict is what is known about a message that was handed over.
type verdict struct {
	state    state
	evidence string
	queued   bool // pending in the program's own queue
	noted    bool // pending in the conversation: the model has not answered yet
	prompted bool // pending as the prompt of the beginning turn
	kept     bool // pending in the conversation that an earlier process had, and that this one has resumed
}

type state int

const (
	isPending  state = iota // no evidence yet whether it arrived
	isAccepted              // the model has it, or gets it with its next answer
	isOpen                  // it has not arrived and is given again
)

// settle moves earlier deliveries to accepted if there is evidence. It returns the messages to
// give, and those that may still arrive.
func (r *run) settle(ctx context.Context, t *tool.Team, waiting []ledger.Outgoing) (open []ledger.Outgoing, pending []handed, err error) {
	r.read = nil // the waiting hook calls settle several times
	from := r.transcriptSize()
	g := readGiven(r.bundle)
	r.said = g.Said
	if adapter.Compacts(r.CLI, r.Event, r.hook) {
		if err := r.lose(&g); err != nil {
			return nil, nil, err
		}
	}
	var marks []ledger.DeliveryMark
	changed := false
	for _, o := range waiting {
		if !o.Delivery.State.HandedOver() {
			open = append(open, o)
			continue
		}
		h := g.find(o.Message.ID)
		switch v := r.judge(ctx, t, h, o); v.state {
		case isAccepted:
			marks = append(marks, ledger.DeliveryMark{MessageID: o.Message.ID, Recipient: o.Delivery.Recipient, State: team.Accepted, Evidence: v.evidence})
		case isOpen:
			open = append(open, o)
			if r.cut = r.cut || r.cancelled(since(h)); r.cut { // the turn does not continue: the supervisor wakes the agent for held mail
				marks = append(marks, ledger.DeliveryMark{MessageID: o.Message.ID, Recipient: o.Delivery.Recipient, State: team.Held, Reason: "the turn that had it was cancelled"})
			}
		case isPending:
			if v.prompted {
				h, changed = r.prompted(&g, o.Message.ID, from), true
			}
			wait := *h
			wait.queued, wait.noted, wait.kept = v.queued, v.noted, v.kept
			pending = append(pending, wait)
		}
	}
	if _, err := t.Ledger.MarkMany(ctx, marks); err != nil {
		return nil, nil, err
	}
	// This hook or another one has settled what is not injected any more; a message held since then
	// may be known.
	stays := func(id string) bool {
		return slices.ContainsFunc(waiting, func(o ledger.Outgoing) bool {
			return o.Message.ID == id && (o.Delivery.State.HandedOver() || o.Delivery.State == team.Held)
		}) && !slices.ContainsFunc(marks, func(m ledger.DeliveryMark) bool { return m.MessageID == id && m.State == team.Accepted })
	}
	n := len(g.Handed)
	if g.Handed = slices.DeleteFunc(g.Handed, func(h handed) bool { return !stays(h.ID) }); len(g.Handed) < n || changed {
		err = r.writeGiven(g)
	}
	return open, pending, err
}

// prompted records that a message is in the prompt of the beginning turn: from here on it counts
// as given by this hook. The transcript, whose length is from, does not hold it yet.
func (r *run) prompted(g *given, id string, from int64) *handed {
	h := g.find(id)
	if h == nil {
		g.Handed = append(g.Handed, handed{})
		h = &g.Handed[len(g.Handed)-1]
	}
	if h.ID != id || h.Event != r.Event || h.Generation != r.gen {
		*h = handed{ID: id, Generation: r.gen, Conversation: r.hook.Conversation, Event: r.Event, At: r.now, From: from, Out: true}
	}
	return h
}

// judge returns what is known about a message that was handed over; h is nil if no record says
// which hook gave it.
func (r *run) judge(ctx context.Context, t *tool.Team, h *handed, o ledger.Outgoing) verdict {
	if r.tookFromTool(o.Message.ID) {
		return verdict{state: isAccepted, evidence: r.CLI + " has the answer of " + r.hook.Tool}
	}
	records := adapter.Records(r.CLI, r.version) && r.hook.Transcript != ""
	same := h != nil && h.Generation == r.gen && h.Conversation == r.hook.Conversation
	from := int64(0)
	if h != nil && h.Conversation == r.hook.Conversation {
		from = h.From
	}
	tr := r.transcript(from)
	parts := courier.Kernel(mail.Of(ctx, t.Ledger, o.Message))
	if tr.Holds(parts...) {
		evidence := "the transcript of " + r.hook.Conversation + " holds it"
		if h != nil {
			evidence += "; given by the hook " + h.Event + " to generation " + h.Generation
		}
		return verdict{state: isAccepted, evidence: evidence}
	}
	// An answer at the end of a turn may return as the prompt of the next turn. Until the program
	// records it or asks its model, only the program's memory has it.
	if adapter.PromptHolds(r.CLI, r.Event, r.hook, parts...) {
		return verdict{prompted: true}
	}
	switch {
	case same && records && tr.Noted(parts...):
		return verdict{noted: true}
	case h != nil && h.Conversation == r.hook.Conversation && records && tr.Kept(r.version, parts...):
		return verdict{noted: true, kept: true}
	case !same || !h.Out: // the process is gone, the conversation is over, or the hook died
		return verdict{state: isOpen}
	case h.Lost:
		return r.afterLoss(h)
	case records:
		return r.recorded(h, tr, parts)
	}
	return r.followed(h, tr)
}

// tookFromTool reports whether this hook carries an InboxRead result with the message: the agent
// has it, though its transcript may lack it still.
func (r *run) tookFromTool(id string) bool {
	return adapter.EndsTool(r.CLI, r.Event) && r.hook.Helper == "" && strings.HasSuffix(r.hook.Tool, "InboxRead") && bytes.Contains(r.Input, []byte(id))
}

// recorded judges a message that is missing in the transcript of a program that records hook
// output.
func (r *run) recorded(h *handed, tr *transcript, parts []string) verdict {
	age := r.now.Sub(h.At)
	switch {
	case tr.Interrupted:
		return verdict{state: isOpen}
	case h.Event == adapter.Wait && tr.Queued(parts...):
		return verdict{queued: true}
	case age < patience && (!tr.Ended || !adapter.EndsTool(r.CLI, h.Event)):
		return verdict{}
	}
	return verdict{state: isOpen}
}

// followed judges a message given to a program that does not record hook output in its transcript:
// it arrived if the model has answered since, in the same turn.
func (r *run) followed(h *handed, tr *transcript) verdict {
	took := verdict{state: isAccepted, evidence: r.CLI + " took the answer of its hook " + h.Event + ", its model has answered, and it called " + r.Event}
	switch {
	case tr.Interrupted:
		return verdict{state: isOpen}
	case r.hook.Helper != "":
		return verdict{}
	case adapter.EndsSession(r.CLI, r.Event): // a program that is ended calls it before its model has answered
		return verdict{}
	case r.cancelled(h.From), adapter.Interrupts(r.CLI, r.Event):
		return verdict{state: isOpen}
	case adapter.EndsTurn(r.CLI, r.Event), tr.Answered && r.Event != adapter.Wait:
		return took
	case adapter.BeginsTurn(r.CLI, h.Event) && adapter.BeginsTool(r.CLI, r.Event):
		return took
	case adapter.BeginsTurn(r.CLI, r.Event): // the turn in which it was given had no recorded end
		return verdict{state: isOpen}
	}
	return verdict{}
}

// cancelled reports whether this hook marks the end of a cancelled turn. A turn that has failed
// since an offset of the transcript is not one: it has asked its model.
func (r *run) cancelled(from int64) bool {
	return adapter.EndsTurn(r.CLI, r.Event) && adapter.Unanswered(r.CLI, r.hook, r.said == digest(r.hook.Answer)) &&
		adapter.FailedTurn(courier.ReadTail(r.hook.Transcript, failedTail, from)) == ""
}

// since is the length of the transcript when a message was given; 0 where that is not known.
func since(h *handed) int64 {
	if h == nil {
		return 0
	}
	return h.From
}

// afterLoss judges a message given before the conversation was compacted and missing in what
// followed.
func (r *run) afterLoss(h *handed) verdict {
	if adapter.Compacts(r.CLI, r.Event, r.hook) {
		return verdict{}
	}
	return verdict{state: isOpen}
}

// lose records that the conversation was compacted before there was evidence that the model had
// read the last messages: only later parts of the transcript count for them.
func (r *run) lose(g *given) error {
	size := r.transcriptSize()
	changed := false
	for i, h := range g.Handed {
		if h.Conversation == r.hook.Conversation && h.Generation == r.gen {
			g.Handed[i].Lost, g.Handed[i].From, changed = true, size, true
		}
	}
	if !changed {
		return nil
	}
	return r.writeGiven(*g)
}

// holdsUp reports whether a message that may still arrive keeps this hook from giving more: later
// mail must not arrive first, and a program orders the answers of hooks that run at one boundary
// arbitrarily.
func (r *run) holdsUp(h handed) bool {
	switch {
	case h.noted: // what is given now comes after it
		return false
	case h.queued:
		return r.now.Sub(h.At) < queuePatience
	}
	if adapter.Records(r.CLI, r.version) {
		return r.now.Sub(h.At) < patience
	}
	return r.now.Sub(h.At) < atOnce
}

func (r *run) transcriptSize() int64 {
	info, err := os.Stat(r.hook.Transcript)
	if err != nil {
		return 0
	}
	return info.Size()
}

// transcript returns the transcript of the conversation from an offset on.
func (r *run) transcript(from int64) *transcript {
	if r.read == nil || r.read.from != from {
		r.read = &transcript{from, adapter.ReadTranscript(r.CLI, courier.ReadTail(r.hook.Transcript, courier.RecordTail, from))}
	}
	return r.read
}

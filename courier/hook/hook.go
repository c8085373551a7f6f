// Package hook is what runs when an agent CLI calls one of its hooks: it gives mail,
// tells the supervisor what the event shows, and answers permission requests.
//
// A hook must never be in the agent's way. It answers within a bound that is short
// wherever the agent waits for it, and whatever goes wrong (the team is gone, the
// ledger is busy, the input is not understood) it exits as if there were nothing to
// say; the mail stays where it is for the next one.
//
// # At most once
//
// Hooks of one member are serialised by a lock, for tools run in parallel. One that
// gives mail first moves the deliveries to injected, then writes its answer, and
// then notes in the bundle (given.json) that the answer is out. The next hook of the
// same conversation is the evidence that the CLI took that answer, and moves them to
// accepted. A delivery that is injected without such a note was claimed by a hook
// that died before its answer: it is given again, unless the transcript has its id.
// So is one whose answer went into a conversation that does not go on, or that was
// compacted before the agent called another hook: the model has not answered since, and
// what is left of the answer is what a summary makes of it.
package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/adapter"
	"github.com/teamctl/teamctl/courier"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Bounds of a hook that the agent waits for: for the lock of its member, and for
// everything.
const (
	lockWithin = 500 * time.Millisecond
	giveWithin = 3 * time.Second
)

// maxGiven is how many bytes of mail one hook gives; the rest waits for the next.
const maxGiven = 64 * 1024

// In is one call of a hook.
type In struct {
	CLI, Event string
	Input      []byte              // standard input
	Getenv     func(string) string // the agent's environment
	Open       func(ctx context.Context, key string) (*tool.Team, error)
	Tell       func(agent, generation string, o team.Observation) error // the supervisor; errors do not matter
	// Wrote writes the answer; it is called at most once, before the answer counts
	// as given.
	Write func(adapter.HookReply) error
}

// run is a hook under way.
type run struct {
	In
	hook   adapter.HookIn
	key    string
	name   string
	gen    string
	bundle team.Bundle
	now    time.Time
}

// given is given.json: answers that are out.
type given struct {
	Conversation string   `json:"conversation"`
	IDs          []string `json:"ids"`
	Event        string   `json:"event"`
	// Of a conversation that was compacted: what went with it, and how long its
	// transcript was then.
	Lost  []string `json:"lost,omitempty"`
	After int64    `json:"after,omitempty"`
}

// Run runs one hook and writes its answer. Its error is for a log only: the answer
// stands in any case.
func Run(ctx context.Context, in In) error {
	r := &run{In: in, hook: adapter.ParseHook(in.Input), now: time.Now(), gen: in.Getenv(team.EnvGen)}
	name, key, ok := team.ParseAgentID(in.Getenv(team.EnvAgentID))
	if !ok || r.gen == "" {
		return in.Write(adapter.HookReply{}) // no member of a team: somebody's own session
	}
	home := team.Home{Dir: in.Getenv(team.EnvHome)}
	if home.Dir == "" {
		var err error
		if home, err = team.FindHome(); err != nil {
			return firstError(in.Write(adapter.HookReply{}), err)
		}
	}
	r.name, r.key, r.bundle = name, key, home.Team(key).Bundle(name)
	switch in.Event {
	case adapter.Wait:
		return r.wait(ctx)
	case "PermissionRequest":
		return r.permission(ctx)
	}
	return r.event(ctx)
}

func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// event is a hook that answers at once.
func (r *run) event(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, giveWithin)
	defer cancel()
	var gave bool
	err := r.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
		serr := r.settleAsks(ctx, t, c)
		var err error
		gave, err = r.give(ctx, t, c)
		return firstError(err, serr)
	})
	if !gave {
		err = firstError(err, r.Write(adapter.HookReply{}))
	}
	r.tell(gave)
	return err
}

// tell reports what the event shows, after the answer: the agent does not wait for it.
func (r *run) tell(blocked bool) {
	blocked = blocked && adapter.EndsTurn(r.CLI, r.Event)
	if adapter.FailsInTranscript(r.CLI, r.Event) {
		r.hook.Failed = adapter.FailedTurn(r.tail(failedTail, 0))
	}
	o := adapter.HookSees(r.CLI, r.Event, r.hook, blocked, r.now)
	if o.Activity == "" && !o.Ready {
		return
	}
	o.Usage = r.usage()
	r.say(o)
}

// say tells the supervisor, and the next one where nobody is there.
func (r *run) say(o team.Observation) {
	last := o
	if last.Usage == nil { // what an earlier hook has counted may not have been heard
		last.Usage = r.counted()
	}
	_ = courier.WriteSeen(r.bundle, courier.SeenFile{Generation: r.gen, Seen: last})
	_ = r.Tell(r.name, r.gen, o)
}

// withTeam opens the team and proves who the agent is.
func (r *run) withTeam(ctx context.Context, f func(*tool.Team, tool.Caller) error) error {
	t, err := r.Open(ctx, r.key)
	if err != nil {
		return err
	}
	token := r.Getenv(team.EnvToken)
	if token == "" { // a CLI that keeps secrets from its hooks
		if b, err := os.ReadFile(r.bundle.Token()); err == nil {
			token = strings.TrimSpace(string(b))
		}
	}
	c, err := t.Identify(ctx, r.Getenv(team.EnvAgentID), token)
	if err == nil {
		err = f(t, c)
	}
	return firstError(err, t.Close())
}

// give settles what was given before and gives what waits. It reports whether it
// has written an answer.
func (r *run) give(ctx context.Context, t *tool.Team, c tool.Caller) (bool, error) {
	lctx, cancel := context.WithTimeout(ctx, lockWithin)
	lock, err := filelock.Lock(lctx, filepath.Join(string(r.bundle), "hook.lock"))
	cancel()
	if err != nil {
		return false, err // another hook gives: there is nothing left for this one
	}
	defer func() { _ = lock.Unlock() }()
	if err := r.converse(c.Session); err != nil {
		return false, err
	}
	waiting, err := t.Ledger.Waiting(ctx, c.Session)
	if err != nil || len(waiting) == 0 {
		return false, err
	}
	waiting, err = r.settle(ctx, t, waiting)
	if err != nil || adapter.TakesMail(r.CLI, r.Event) == "" || len(waiting) == 0 {
		return false, err
	}
	if no, err := r.blocked(ctx, t, c.Session); no || err != nil {
		return false, err
	}
	return r.hand(ctx, t, waiting)
}

// converse notes the conversation and whether its agent is in a turn.
func (r *run) converse(session string) error {
	c, err := courier.ReadConversation(r.bundle, session)
	if err != nil {
		return err
	}
	next := c
	next.Agent, next.Session, next.Generation = r.CLI, session, r.gen
	if id := r.hook.Conversation; id != "" {
		if id != c.ID {
			next.Began, next.Working = false, false
		}
		next.ID = id
	}
	if r.hook.Transcript != "" {
		next.Transcript = r.hook.Transcript
	}
	switch {
	case adapter.EndsTurn(r.CLI, r.Event):
		next.Working = false
	case r.Event != "SessionStart" && r.Event != "Notification" && r.Event != adapter.Wait:
		next.Began, next.Working = true, true
	}
	if next == c {
		return nil
	}
	return courier.WriteConversation(r.bundle, next)
}

func (r *run) givenFile() string { return filepath.Join(string(r.bundle), "given.json") }

func (r *run) readGiven() (g given) {
	if data, err := os.ReadFile(r.givenFile()); err == nil {
		_ = json.Unmarshal(data, &g) // without it they are given again
	}
	return g
}

// settle moves what an earlier hook gave to accepted: this hook is the evidence. It
// returns what is still to be given.
func (r *run) settle(ctx context.Context, t *tool.Team, waiting []ledger.Outgoing) ([]ledger.Outgoing, error) {
	g := r.readGiven()
	if adapter.Compacts(r.CLI, r.Event, r.hook) && g.Conversation == r.hook.Conversation {
		var err error
		if g, err = r.lose(g, waiting); err != nil {
			return nil, err
		}
	}
	var open []ledger.Outgoing
	var marks []ledger.DeliveryMark
	for _, o := range waiting {
		d := o.Delivery
		switch {
		case d.State != team.Injected:
			open = append(open, o)
		case r.tookFromTool(d.MessageID):
			marks = append(marks, ledger.DeliveryMark{MessageID: d.MessageID, Recipient: d.Recipient, State: team.Accepted,
				Evidence: r.CLI + " has the answer of " + r.hook.Tool})
		case slices.Contains(g.IDs, d.MessageID) && g.Conversation == r.hook.Conversation:
			marks = append(marks, ledger.DeliveryMark{MessageID: d.MessageID, Recipient: d.Recipient, State: team.Accepted,
				Evidence: r.CLI + " took the answer of its hook " + g.Event + " and called " + r.Event})
		case slices.Contains(g.Lost, d.MessageID) && g.Conversation == r.hook.Conversation:
			if !r.inTranscript(d.MessageID, g.After) {
				open = append(open, o)
				continue
			}
			fallthrough
		case r.inTranscript(d.MessageID, 0):
			marks = append(marks, ledger.DeliveryMark{MessageID: d.MessageID, Recipient: d.Recipient, State: team.Accepted,
				Evidence: "its id stands in the transcript"})
		default:
			open = append(open, o)
		}
	}
	_, err := t.Ledger.MarkMany(ctx, marks)
	return open, err
}

// tookFromTool reports that this hook is told of an answer of InboxRead that has a message:
// the agent has it, though its transcript may not yet.
func (r *run) tookFromTool(id string) bool {
	return adapter.EndsTool(r.CLI, r.Event) && strings.HasSuffix(r.hook.Tool, "InboxRead") && bytes.Contains(r.In.Input, []byte(id))
}

// lose notes that the conversation was compacted before anything showed that the model
// had read what was given last.
func (r *run) lose(g given, waiting []ledger.Outgoing) (given, error) {
	next := given{Conversation: g.Conversation, Event: r.Event, Lost: g.Lost, After: g.After}
	for _, o := range waiting {
		if d := o.Delivery; d.State == team.Injected && slices.Contains(g.IDs, d.MessageID) {
			next.Lost = append(next.Lost, d.MessageID)
		}
	}
	if len(next.Lost) == 0 {
		return g, nil
	}
	if info, err := os.Stat(r.hook.Transcript); err == nil {
		next.After = info.Size()
	}
	data, err := json.Marshal(next)
	if err == nil {
		err = atomicfile.Write(r.givenFile(), data, 0o600, false)
	}
	return next, err
}

// transcriptTail is how much of a transcript is searched for an id, from its end.
const transcriptTail = 4 << 20

// failedTail is how much of it is searched for the error that has ended a turn: little
// follows that.
const failedTail = 64 << 10

// inTranscript reports whether the transcript of the conversation has an id, from an
// offset on.
func (r *run) inTranscript(id string, after int64) bool {
	return bytes.Contains(r.tail(transcriptTail, after), []byte(id))
}

// tail is the end of the transcript, of at most so many bytes from an offset on; nil
// where it cannot be read.
func (r *run) tail(most, after int64) []byte {
	f, err := os.Open(r.hook.Transcript)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	if _, err := f.Seek(max(after, info.Size()-most), io.SeekStart); err != nil {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil
	}
	return data
}

// blocked reports whether the member must get no prompts now: its provider has
// reached a limit, or its budget is used up. A request to stop goes through. Nobody is
// woken who cannot work before a person has logged in or accepted the directory.
func (r *run) blocked(ctx context.Context, t *tool.Team, session string) (bool, error) {
	row, err := t.Ledger.Member(ctx, r.name)
	if err != nil || row.SessionKey != session {
		return false, err
	}
	if r.Event == adapter.Wait && row.Activity == team.Waiting && (row.WaitsFor == team.WaitLogin || row.WaitsFor == team.WaitTrust) {
		return true, nil
	}
	q, err := supervisor.ReadQuota(ctx, t.Ledger)
	if err != nil || q.Blocks(row, r.now) == nil {
		return false, err
	}
	waiting, err := t.Ledger.Waiting(ctx, session)
	return !slices.ContainsFunc(waiting, func(o ledger.Outgoing) bool { return o.Message.Kind == team.KindShutdownRequest }), err
}

// hand gives mail with this hook's answer.
func (r *run) hand(ctx context.Context, t *tool.Team, waiting []ledger.Outgoing) (bool, error) {
	var texts, ids []string
	var marks []ledger.DeliveryMark
	size := 0
	for _, o := range waiting {
		if o.Delivery.State == team.Posted {
			continue // its poster mails it in a moment
		}
		m := supervisor.MailOf(ctx, t.Ledger, o.Message)
		if size += len(m.Text); len(texts) > 0 && size > maxGiven {
			break
		}
		text := m.Text
		if len(texts) > 0 {
			text = strings.TrimPrefix(text, inbox.Notice+"\n\n")
		}
		texts, ids = append(texts, text), append(ids, m.ID)
		marks = append(marks, ledger.DeliveryMark{MessageID: m.ID, Recipient: o.Delivery.Recipient, State: team.Injected,
			Evidence: "hook " + r.Event + " of " + r.CLI + " in " + r.hook.Conversation})
	}
	if len(texts) == 0 {
		return false, nil
	}
	link, err := courier.ReadLink(r.bundle, r.gen)
	if err != nil {
		return false, err
	}
	v, _ := adapter.ParseVersion(link.Version)
	reply := adapter.GiveMail(r.CLI, r.Event, v, strings.Join(texts, "\n\n"))
	// From here on it goes through: what is claimed is given, or found unclaimed.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveWithin)
	defer cancel()
	if _, err := t.Ledger.MarkMany(ctx, marks); err != nil {
		return false, err
	}
	if err := r.Write(reply); err != nil {
		return true, err
	}
	data, err := json.Marshal(given{Conversation: r.hook.Conversation, IDs: ids, Event: r.Event})
	if err == nil {
		err = atomicfile.Write(r.givenFile(), data, 0o600, false)
	}
	box, berr := inbox.Open(t.Layout.Inboxes(), t.Layout.Locks(), r.name)
	if berr == nil {
		_, berr = box.MarkRead(ctx, ids...)
	}
	return true, firstError(err, berr)
}

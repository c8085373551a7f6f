// Package hook delivers mail to agents whose program calls hooks: Claude Code and Gemini CLI.
//
// Run is the hook itself, a process that the agent's program starts: it gives mail to the agent,
// reports to the supervisor what the event shows, and answers permission requests. Open is the
// supervisor's side, a channel: it types one line to wake an idle agent that no hook would, reads
// the transcript for mail that a hook has given, answers dialogs by their keys, and types the mail
// itself if no hook runs. The two share files of the bundle: seen.json (what the newest hook has
// seen), conversation.json, and wait.lock (held by the hook that waits for mail).
//
// A hook must never be in the agent's way. It answers within a bound, a short one if the agent
// waits for it. On any failure (the team is gone, the ledger is busy, the input is not understood)
// it exits as if it had nothing to say, and the mail stays in place for the next hook.
//
// # Evidence
//
// A lock serialises the hooks of one member, since an agent runs tools in parallel. A hook that
// gives mail records in the bundle (given.json) which messages it gives to which generation and
// conversation, and the length of the transcript. It then moves the deliveries to injected, writes
// its answer, and records that the answer is out. A later hook moves the deliveries to accepted
// when the running program has the whole text where its model sees it:
//
//   - If the program writes the output of its hooks to its transcript, as its model gets it
//     (adapter.Records), the transcript holds the message. A resumed conversation has the content
//     of its transcript, so that counts for every generation.
//   - Otherwise a hook of the same generation and conversation shows that the model has answered
//     since.
//
// An answer at the end of a turn may return as the prompt of the next turn; it then counts as given
// by the hook of that prompt. It is lost if the process is killed before that. Claude Code adds it to
// the conversation instead.
//
// Claude Code 2.1.329 resumes a conversation with all that hooks had added to it: an agent that has
// not answered is reminded of it once, and the next answer shows whether the conversation has it.
//
// Messages are given again, with a remark that they may be known, in these cases: an earlier
// generation got them and its transcript lacks them; a turn has ended or was interrupted without
// them; the hook that claimed them died before its answer; their conversation does not continue, or
// was compacted before the agent called another hook, which leaves at most a summary of them.
//
// An answer never has more characters than the program shows its model whole (adapter.GiveMail).
// Messages stay whole and in order: the first that does not fit and all later ones wait for the
// next hook, and the agent is notified once that they wait.
package hook

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Bounds of a hook for which the agent waits: of the wait for its member's lock, and in total.
const (
	lockWithin = 500 * time.Millisecond
	giveWithin = 3 * time.Second
)

// In is one call of a hook.
type In struct {
	CLI, Event string
	Input      []byte              // standard input
	Getenv     func(string) string // of the agent's environment
	Open       func(ctx context.Context, key string) (*tool.Team, error)
	Tell       func(agent, generation string, o team.Observation) error // notifies the supervisor; errors are ignored
	// Write writes the answer; it is called at most once, before the answer counts as given.
	Write func(adapter.HookReply) error

	within time.Duration // bounds each step; 0: giveWithin
}

// run is a running hook.
type run struct {
	In
	hook   adapter.HookIn
	key    string
	name   string
	gen    string
	bundle team.Bundle
	now    time.Time

	version adapter.Version // of the program
	read    *transcript     // the part of the transcript that settle has read; nil before
	said    string          // given.Said, before this hook
	cut     bool            // the turn that ends was cancelled with mail
	noted   bool            // converse was called
}

// Run runs one hook and writes its answer. Its error is only for a log: the answer is valid in any
// case.
func Run(ctx context.Context, in In) error {
	r := newRun(in)
	name, key, ok := team.ParseAgentID(in.Getenv(team.EnvAgentID))
	if !ok || r.gen == "" {
		return in.Write(adapter.HookReply{}) // not a member of a team: a session of the user's own
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

func newRun(in In) *run {
	return &run{In: in, hook: adapter.ParseHook(in.Input), now: time.Now(), gen: in.Getenv(team.EnvGen)}
}

func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// event runs a hook that answers at once.
func (r *run) event(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.within, giveWithin))
	defer cancel()
	var gave bool
	err := r.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
		serr := r.settleAsks(ctx, t, c)
		var err error
		gave, err = r.give(ctx, t, c)
		return firstError(err, serr)
	})
	if ctx.Err() != nil && !r.noted {
		err = firstError(err, r.late())
	}
	if !gave {
		err = firstError(err, r.Write(adapter.HookReply{}))
	}
	r.tell(gave)
	return err
}

// tell reports what the event shows, after the answer, so that the agent does not wait for it.
func (r *run) tell(blocked bool) {
	blocked = blocked && adapter.EndsTurn(r.CLI, r.Event)
	if adapter.FailsInTranscript(r.CLI, r.Event) {
		r.hook.Failed = adapter.FailedTurn(courier.ReadTail(r.hook.Transcript, failedTail, 0))
	}
	o := adapter.HookSees(r.CLI, r.Event, r.hook, blocked, r.now)
	if o.Activity == "" && !o.Ready {
		return
	}
	o.Usage = r.usage()
	r.say(o)
}

// say notifies the supervisor, and records the observation for the next supervisor.
func (r *run) say(o team.Observation) {
	last := o
	if last.Usage == nil { // the supervisor may have missed what an earlier hook has counted
		last.Usage = r.counted()
	}
	_ = courier.WriteSeen(r.bundle, courier.SeenFile{Generation: r.gen, Seen: last})
	_ = r.Tell(r.name, r.gen, o)
}

// withTeam opens the team and authenticates the agent.
func (r *run) withTeam(ctx context.Context, f func(*tool.Team, tool.Caller) error) error {
	t, err := r.Open(ctx, r.key)
	if err != nil {
		return err
	}
	c, err := r.identify(ctx, t)
	if err == nil {
		err = f(t, c)
	}
	return firstError(err, t.Close())
}

// identify authenticates the agent.
func (r *run) identify(ctx context.Context, t *tool.Team) (tool.Caller, error) {
	token := r.Getenv(team.EnvToken)
	if token == "" { // a CLI that hides secrets from its hooks
		if b, err := regular.ReadFile(r.bundle.Token()); err == nil {
			token = strings.TrimSpace(string(b))
		}
	}
	return t.Identify(ctx, r.Getenv(team.EnvAgentID), token)
}

// lock serialises the hooks of the member.
func (r *run) lock(ctx context.Context) (*filelock.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, lockWithin)
	defer cancel()
	return filelock.Lock(ctx, filepath.Join(string(r.bundle), "hook.lock"))
}

// give settles earlier deliveries and gives waiting mail. It reports whether it has written an
// answer.
func (r *run) give(ctx context.Context, t *tool.Team, c tool.Caller) (bool, error) {
	lock, err := r.lock(ctx)
	if err != nil {
		return false, err // another hook is giving the mail: nothing is left for this one
	}
	defer func() { _ = lock.Unlock() }()
	if err := r.converse(c.Session); err != nil {
		return false, err
	}
	waiting, err := t.Ledger.Waiting(ctx, c.Session)
	if err != nil || len(waiting) == 0 {
		return false, firstError(err, r.turnEnds())
	}
	link, err := courier.ReadLink(r.bundle, r.gen)
	if err != nil {
		return false, err
	}
	r.version, _ = adapter.ParseVersion(link.Version)
	waiting, pending, err := r.settle(ctx, t, waiting)
	if err == nil {
		waiting, err = r.untyped(waiting)
	}
	wakes := r.Event == adapter.Wait && slices.ContainsFunc(pending, func(h handed) bool { return h.kept })
	if err != nil || adapter.TakesMail(r.CLI, r.Event) == "" || r.hook.Helper != "" || len(waiting) == 0 && !wakes {
		return false, err
	}
	if slices.ContainsFunc(pending, r.holdsUp) || adapter.WokenByMail(r.CLI, r.Event, r.Input) {
		return false, nil
	}
	if r.cut || r.cancelled(0) { // the agent does not continue
		return false, r.turnEnds()
	}
	if no, err := r.blocked(ctx, t, c.Session); no || err != nil {
		return false, err
	}
	if len(waiting) == 0 {
		return r.remind(pending)
	}
	return r.hand(ctx, t, waiting)
}

// untyped returns the mail that the supervisor does not type. It types mail if it has not heard
// from any hook.
func (r *run) untyped(waiting []ledger.Outgoing) ([]ledger.Outgoing, error) {
	typed, err := courier.Typed(r.bundle, r.gen)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(waiting, func(o ledger.Outgoing) bool { return typed[o.Message.ID] && !o.Delivery.State.HandedOver() }), nil
}

// converse records the conversation and whether its agent is in a turn. The hook of a session's end
// says nothing of either: a Claude Code that does not find the conversation calls it, too.
func (r *run) converse(session string) error {
	r.noted = true
	if adapter.EndsSession(r.CLI, r.Event) {
		return nil
	}
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

// late is converse for a hook whose time was over before the ledger was read: whether a turn has
// ended must not depend on the speed of the machine. The generation has authenticated itself before
// if it has reported the conversation.
func (r *run) late() error {
	lock, err := r.lock(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	c, err := courier.ReportedBy(r.bundle, r.gen)
	if err != nil || c.Session == "" {
		return err
	}
	return r.converse(c.Session)
}

// failedTail is how much of the transcript's end is searched for the error that ended a turn:
// little follows that error.
const failedTail = 64 << 10

// blocked reports whether the member must get no prompts now: its provider has reached a limit, or
// its budget is used up; a shutdown request is let through. The waiting hook also wakes no agent
// that waits for a person to log in or to trust the directory.
func (r *run) blocked(ctx context.Context, t *tool.Team, session string) (bool, error) {
	row, err := t.Ledger.Member(ctx, r.name)
	if err != nil || row.SessionKey != session {
		return false, err
	}
	if r.Event == adapter.Wait && row.Activity == team.Waiting && (row.WaitsFor == team.WaitLogin || row.WaitsFor == team.WaitTrust) {
		return true, nil
	}
	q, err := quota.Bounds(ctx, t.Ledger)
	if err != nil || q.Blocks(row, r.now) == nil {
		return false, err
	}
	waiting, err := t.Ledger.Waiting(ctx, session)
	return !slices.ContainsFunc(waiting, func(o ledger.Outgoing) bool { return o.Message.Kind == team.KindShutdownRequest }), err
}

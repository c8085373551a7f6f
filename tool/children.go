package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Bounds of what sessions tell each other.
const (
	MaxInjection = 100 << 10 // bytes of a text that a session is told, and of a history
	MinWake      = time.Minute
	MaxWake      = 24 * time.Hour
)

// ChildIn is a child session to be.
type ChildIn struct {
	Parent string          // key of the parent, or name of its member; "": the caller's own
	Agent  string          // id or name of its spec; "": that of the parent
	Label  string          // what it is for, in a few words
	Tags   []string        // come back with its results
	Meta   json.RawMessage // an object that is kept with the session
}

// SpawnSession opens a child of a session: a conversation of the same member, in the same
// process and worktree, with tools that the parent has. What its turns come to is announced
// to the parent. Errors: CodeLimit session_depth, too_many_children; CodeConflict
// session_closed.
func (t *Team) SpawnSession(ctx context.Context, c Caller, in ChildIn) (ledger.Session, error) {
	if err := t.may(ctx, c, OpSessions); err != nil {
		return ledger.Session{}, err
	}
	parent, err := t.parentOf(ctx, c, in.Parent)
	if err != nil {
		return parent, err
	}
	spec, err := t.spec(ctx, cmp.Or(in.Agent, parent.ActiveAgentID), false)
	if err != nil {
		return parent, err
	}
	more, err := t.beyondModels(ctx, c, spec.Defaults.Model)
	if err == nil {
		err = t.entitle(ctx, c, "session_spawn", more, map[string]string{"agent_id": spec.ID, "parent_session_key": parent.Key})
	}
	if err != nil {
		return parent, err
	}
	routing, err := routingOf(in)
	if err != nil {
		return parent, err
	}
	n := ledger.NewSession{
		Key: team.NewSessionKey(spec.ID, team.SessionSubagent).String(), Owner: parent.Key, Label: oneLine(in.Label, maxLabel), Routing: routing,
	}
	if spec.Defaults.Model.Model == "" { // it thinks with what its parent thinks with
		n.Provider, n.Model = parent.ProviderOverride, parent.ModelOverride
		if own, err := t.spec(ctx, parent.ActiveAgentID, true); n.Model == "" && err == nil {
			n.Provider, n.Model = own.Defaults.Model.Provider, own.Defaults.Model.Model
		}
	}
	if err := t.checkSession(ctx, parent, n.Provider, n.Model, spec.AgentSpec); err != nil {
		return parent, err
	}
	return t.as(c).OpenSession(ctx, n)
}

// maxLabel is how many characters a label has.
const maxLabel = 200

// parentOf is the session that is to have a child: the caller's own, or one that it may
// change.
func (t *Team) parentOf(ctx context.Context, c Caller, key string) (ledger.Session, error) {
	key, err := ownOr(c, key)
	if err != nil {
		return ledger.Session{}, err
	}
	s, err := t.Session(ctx, key)
	if err == nil {
		_, err = t.mayChange(ctx, c, s)
	}
	return s, err
}

// ownOr is a session that is named, or else the caller's own.
func ownOr(c Caller, key string) (string, error) {
	if key = cmp.Or(key, c.OwnSession()); key == "" {
		return "", team.Errorf(team.CodeInvalid, "session_key is required: you have no session of your own").WithReason(team.ReasonInput).
			WithHint("teamctl session ls")
	}
	return key, nil
}

// routingOf is what a child keeps of its spawn.
func routingOf(in ChildIn) (json.RawMessage, error) {
	r := map[string]any{}
	if len(in.Tags) > 0 {
		r["tags"] = in.Tags
	}
	if len(in.Meta) > 0 {
		if err := anObject("meta", in.Meta); err != nil {
			return nil, err
		}
		r["meta"] = in.Meta
	}
	if len(r) == 0 {
		return nil, nil
	}
	return json.Marshal(r)
}

func anObject(what string, raw json.RawMessage) error {
	var v map[string]json.RawMessage
	if err := json.Unmarshal(raw, &v); err != nil || v == nil {
		return team.Errorf(team.CodeInvalid, "%s is not a JSON object", what).WithReason(team.ReasonInput)
	}
	return nil
}

// InjectIn is a text for a session.
type InjectIn struct {
	Session    string // key
	Message    string
	Key        string          // idempotency key: the same of the same sender is taken once
	Meta       json.RawMessage // an object that is kept with the entry
	Provenance json.RawMessage // an object that is kept beside who has sent it
}

// Injected is what became of a text.
type Injected struct {
	SessionKey string `json:"session_key"`
	RunID      int64  `json:"run_id,omitempty" jsonschema:"The turn that it begins or becomes a part of; 0 where it waits for the end of another."`
	Queued     bool   `json:"queued" jsonschema:"A turn is under way: it waits in the backlog for the next one."`
}

// SendSession gives a session a text, on the internal channel: a child of the caller's, or
// another session of its member. Errors: CodeDenied self_send; CodeNotFound
// session_not_found, for sessions of others too; CodeConflict session_closed; CodeLimit
// message_too_large, hop_limit, backlog_full.
func (t *Team) SendSession(ctx context.Context, c Caller, in InjectIn) (Injected, error) {
	if err := t.may(ctx, c, OpSessions); err != nil {
		return Injected{}, err
	}
	from := c.OwnSession()
	s, err := t.reach(ctx, c, in.Session)
	if err != nil {
		return Injected{}, err
	}
	out := Injected{SessionKey: s.Key}
	switch {
	case s.Key == from:
		return out, team.Errorf(team.CodeDenied, "a session does not send to itself").WithReason(team.ReasonSelfSend)
	case s.Key == s.Member && (c.Person || !t.sameMember(ctx, from, s)):
		return out, team.Errorf(team.CodeInvalid, "%s is the conversation of a member, which gets messages", s.Key).WithReason(team.ReasonInput).
			WithHint("SendMessage, or teamctl send NAME TEXT")
	case strings.TrimSpace(in.Message) == "":
		return out, team.Errorf(team.CodeInvalid, "the message is empty").WithReason(team.ReasonInput)
	case len(in.Message) > MaxInjection:
		return out, team.Errorf(team.CodeLimit, "the message has %d bytes, at most %d are taken", len(in.Message), MaxInjection).WithReason(team.ReasonMessageTooLarge).
			WithHint("write it to a file, and send its name")
	}
	hop, err := t.nextHop(ctx, from)
	if err != nil {
		return out, err
	}
	source := "inject:" + team.NewUUID()
	if in.Key != "" {
		source = "inject:" + cmp.Or(from, c.Name) + ":" + in.Key
	}
	text, file, err := t.keepText(ctx, s, in, source)
	if err != nil {
		return out, err
	}
	entry, err := injection(c, from, in, source, text, file)
	if err != nil {
		return out, err
	}
	defer func() { // a text that was refused needs no file
		if code := team.CodeOf(err); file != "" && (code == team.CodeLimit || code == team.CodeConflict || code == team.CodeNotFound) {
			_ = os.Remove(file)
		}
	}()
	got, err := t.as(c).TakeIn(ctx, ledger.TakeIn{Session: s.Key, Hop: hop, Inputs: []ledger.Input{{NewEntry: entry}}})
	if out.Queued = got.Backlogged; !out.Queued {
		out.RunID = got.Job
	}
	return out, err
}

// keepText writes a text that is too long for an entry to a file of the member of the session, and
// returns what the entry has instead, and the file. It writes none for a text whose source the
// session has: the first has its own.
func (t *Team) keepText(ctx context.Context, s ledger.Session, in InjectIn, source string) (short, file string, err error) {
	text := in.Message
	if len(text) <= ledger.MaxEntryText {
		return text, "", nil
	}
	known, err := t.Ledger.KnowsSource(ctx, s.Key, source)
	if err != nil || known {
		return ledger.ShortText(text, maxLabel, ""), "", err
	}
	m, err := t.Ledger.MemberBySession(ctx, s.Member)
	if err != nil {
		return "", "", err
	}
	// The same text that is sent again after a kill is in the same file.
	file, err = atomicfile.WriteNamed(t.Layout.Bundle(m.Name).Outputs(), "entry", source, text)
	if err != nil {
		return "", "", team.Errorf(team.CodeUnavailable, "keep a text of %d bytes: %w", len(text), err)
	}
	return ledger.ShortText(text, maxLabel, filepath.Base(file)), file, nil
}

// injection is a text as the entry that it becomes: the text itself, or what is short for the one in
// a file.
func injection(c Caller, from string, in InjectIn, source, text, file string) (ledger.NewEntry, error) {
	e := ledger.NewEntry{Kind: ledger.EntryUser, Content: text, Channel: team.ChannelInternal, Source: source}
	who, meta := map[string]any{"from": c.Name}, map[string]any{"task": oneLine(in.Message, maxLabel)}
	if file != "" {
		meta["long"] = filepath.Base(file)
	}
	if from != "" {
		who["session"] = from
	}
	for _, more := range []struct {
		what string
		raw  json.RawMessage
		into map[string]any
	}{{"provenance", in.Provenance, who}, {"meta", in.Meta, meta}} {
		if len(more.raw) == 0 {
			continue
		}
		if err := anObject(more.what, more.raw); err != nil {
			return e, err
		}
		more.into["given"] = more.raw
	}
	var err error
	if e.Provenance, err = json.Marshal(who); err != nil {
		return e, fmt.Errorf("encode the provenance: %w", err)
	}
	e.Meta, err = json.Marshal(meta)
	return e, err
}

// sameMember reports whether two sessions are of one member.
func (t *Team) sameMember(ctx context.Context, own string, s ledger.Session) bool {
	if own == "" {
		return false
	}
	mine, err := t.Ledger.Session(ctx, own)
	return err == nil && mine.Member == s.Member
}

// reach finds a session that the caller may tell something, read and stop: those of its own
// member, and of others where it leads the team. Every other one is not found.
func (t *Team) reach(ctx context.Context, c Caller, key string) (ledger.Session, error) {
	s, err := t.Session(ctx, key)
	if err != nil || c.Person || t.sameMember(ctx, c.OwnSession(), s) || granted(c, OpRule) != no {
		return s, err
	}
	return ledger.Session{}, team.Errorf(team.CodeNotFound, "you have no session %q", key).WithReason(team.ReasonSessionNotFound).
		WithHint("session_list has yours; SendMessage reaches other members")
}

// nextHop counts the injections that lead to one which the turn under way makes: one more
// than have led to that turn.
func (t *Team) nextHop(ctx context.Context, from string) (int, error) {
	if from == "" {
		return 0, nil
	}
	open, err := t.Ledger.TurnJobs(ctx, ledger.JobFilter{Session: from, Open: true})
	for _, j := range open {
		if j.State == team.TurnRunning {
			return j.Hop + 1, nil
		}
	}
	return 1, err
}

// StopSession closes a session that is the caller's child, or below one: its turn and those
// of its children end. Errors: CodeNotFound session_not_found; CodeDenied for the session
// itself.
func (t *Team) StopSession(ctx context.Context, c Caller, key string) (ledger.Session, error) {
	if err := t.may(ctx, c, OpSessions); err != nil {
		return ledger.Session{}, err
	}
	s, err := t.reach(ctx, c, key)
	if err != nil {
		return s, err
	}
	switch {
	case s.Key == c.OwnSession():
		err = team.Errorf(team.CodeDenied, "a session does not stop itself").WithReason(team.ReasonSelfSend).WithHint("end the turn with an answer")
	case s.Key == s.Member:
		err = team.Errorf(team.CodeInvalid, "%s is the conversation of a member", s.Key).WithReason(team.ReasonInput).
			WithHint("teamctl interrupt ends its turn, teamctl stop its process, teamctl session close the conversation")
	default:
		_, err = t.mayChange(ctx, c, s)
	}
	if err == nil {
		err = t.as(c).CloseSession(ctx, s.Key, "stopped by "+c.Name)
	}
	if err != nil {
		return s, err
	}
	return t.Ledger.Session(ctx, s.Key)
}

// WakeIn asks for a turn at a time.
type WakeIn struct {
	Session string // "": the caller's own
	After   time.Duration
	Text    string // with which the turn begins
}

// Wake is a turn that waits for its time.
type Wake struct {
	SessionKey string `json:"session_key"`
	RunID      int64  `json:"run_id"`
	At         int64  `json:"at" jsonschema:"Unix milliseconds."`
}

// WakeSession queues a turn of a session for later. It is kept in the ledger, and begins
// when the session has no other turn. Errors: CodeInvalid; CodeLimit too_many_wakes,
// hop_limit; CodeConflict session_closed.
func (t *Team) WakeSession(ctx context.Context, c Caller, in WakeIn) (Wake, error) {
	if err := t.may(ctx, c, OpSessions); err != nil {
		return Wake{}, err
	}
	s, err := t.parentOf(ctx, c, in.Session)
	if err != nil {
		return Wake{}, err
	}
	switch {
	case in.After < MinWake || in.After > MaxWake:
		return Wake{}, team.Errorf(team.CodeInvalid, "a session is woken after %s to %s, not after %s", short(MinWake), short(MaxWake), short(in.After)).WithReason(team.ReasonInput)
	case strings.TrimSpace(in.Text) == "":
		return Wake{}, team.Errorf(team.CodeInvalid, "a wake needs a text").WithReason(team.ReasonInput)
	case len(in.Text) > MaxInjection:
		return Wake{}, team.Errorf(team.CodeLimit, "the text has %d bytes, at most %d are taken", len(in.Text), MaxInjection).WithReason(team.ReasonMessageTooLarge)
	}
	hop, err := t.nextHop(ctx, c.OwnSession())
	if err != nil {
		return Wake{}, err
	}
	w := Wake{SessionKey: s.Key, At: time.Now().Add(in.After).UnixMilli()}
	w.RunID, err = t.as(c).QueueTurn(ctx, ledger.NewTurn{
		Session: s.Key, Input: "[Wake] " + in.Text, Cause: team.CauseWake, Lane: team.LaneCron, NotBefore: w.At, Hop: hop,
	})
	return w, err
}

// short is a duration without its empty parts: 1m and not 1m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// oneLine is a text as one line of at most n characters.
func oneLine(text string, n int) string {
	return ledger.CutAtWord(strings.Join(strings.Fields(text), " "), n)
}

package opencode

import (
	"context"
	"slices"
	"strings"
	"time"
)

// takeUpTries bounds the turns begun for one message: turns that end before an answer, for
// instance because the model does not exist, would otherwise be begun for ever. The first one may
// be lost in a turn that is just ending.
const takeUpTries = 4

// minted reports whether this channel made a message's id: opencode's own ids end in letters of
// both cases.
func minted(id string) bool {
	rest, ok := strings.CutPrefix(id, "msg_")
	return ok && len(rest) == stampLen+hashLen && strings.Trim(rest, "0123456789abcdef") == ""
}

// unanswered returns the newest of our messages if the session is at rest and neither that message
// nor a later one was answered, and whether a turn may be begun for it.
func (s *server) unanswered() (msg string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.up || s.busy || s.given <= s.answered {
		return "", false
	}
	return s.given, s.given != s.tried || s.tries < takeUpTries
}

// takeUp begins a turn for one of our messages that is in the session without an answer. opencode
// keeps messages that arrive while a turn is being aborted or fails, and does not process them
// when that turn is over; it reports idle twice then, once before that point. takeUp is called
// whenever the session was reported idle, and costs nothing if no such message exists.
//
// Posting the same message without content begins a turn and adds no text; with its text the
// message would have it twice. The message must have its text before that, or the turn is about an
// empty message. If a request fails, a session that stays at rest reports nothing further: it is
// looked at again by lookLate.
func (s *server) takeUp(ctx context.Context) {
	s.restoreNow(ctx)
	open, ok := s.unanswered()
	if !ok {
		return
	}
	s.mu.Lock()
	session := s.session
	s.mu.Unlock()
	all, err := s.read(ctx, session, open)
	if err != nil {
		s.f.Log.Warn("look for what has no answer", "member", s.f.Name, "err", err)
		s.lookAgain()
		return
	}
	msg, ok := s.unanswered()
	if !ok || !hasText(all, msg) {
		return
	}
	s.mu.Lock()
	if s.tried != msg {
		s.tried, s.tries = msg, 0
	}
	s.tries++
	s.mu.Unlock()
	s.f.Log.Info("begin a turn for a message that was kept and not run", "member", s.f.Name, "message", msg)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := s.prompt(ctx, session, msg, ""); err != nil {
		s.f.Log.Warn("begin a turn for a message", "member", s.f.Name, "message", msg, "err", err)
		s.lookAgain()
	}
}

func hasText(all []sessionMessage, id string) bool {
	return slices.ContainsFunc(all, func(m sessionMessage) bool { return m.Info.ID == id && m.text() != "" })
}

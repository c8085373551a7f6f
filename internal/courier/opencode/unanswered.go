package opencode

import (
	"context"
	"slices"
	"strings"
	"time"
)

// takeUpTries bounds how often a turn is begun for one message: a turn that comes to its
// end before it has an answer, for there is no such model, would be begun for ever. The
// first may be lost in the turn that is still ending.
const takeUpTries = 4

// minted reports whether a message's id is of our making: opencode's own end in letters
// of both cases.
func minted(id string) bool {
	rest, ok := strings.CutPrefix(id, "msg_")
	return ok && len(rest) == stampLen+hashLen && strings.Trim(rest, "0123456789abcdef") == ""
}

// unanswered is the newest of our messages if the session is at rest and no answer came
// to it or to a later one, and whether a turn may be begun for it.
func (s *server) unanswered() (msg string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.up || s.busy || s.given <= s.answered {
		return "", false
	}
	return s.given, s.given != s.tried || s.tries < takeUpTries
}

// takeUp begins a turn for a message of ours that lies in the session with nobody at work
// on it. opencode keeps what comes while a turn is being broken off, or fails, and does
// not look for it when that turn is over; it tells that it is at rest twice then, once
// before that. It is called whenever the session was told to be at rest, and costs
// nothing where nothing lies there.
//
// The same message with nothing in it begins a turn and adds no text to it (with its text
// it would have that twice). It must not be sent before the message has its text, or that
// turn is about an empty one.
func (s *server) takeUp(ctx context.Context) {
	s.restoreNow(ctx)
	if _, ok := s.unanswered(); !ok {
		return
	}
	s.mu.Lock()
	session := s.session
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	all, err := s.read(ctx, session)
	if err != nil {
		s.f.Log.Warn("look for what has no answer", "member", s.f.Name, "err", err)
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
	if err := s.prompt(ctx, session, msg, ""); err != nil {
		s.f.Log.Warn("begin a turn for a message", "member", s.f.Name, "message", msg, "err", err)
	}
}

func hasText(all []sessionMessage, id string) bool {
	return slices.ContainsFunc(all, func(m sessionMessage) bool { return m.Info.ID == id && m.text() != "" })
}

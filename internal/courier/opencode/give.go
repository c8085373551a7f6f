package opencode

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/team"
)

// hashLen is the length of the part of an id that identifies the mail; opencode's own ids end in a
// part of the same length.
const hashLen = 14

// messageHash returns the end of the message id for a mail.
func messageHash(mail string) string {
	h := sha256.Sum256([]byte(mail))
	return hex.EncodeToString(h[:])[:hashLen]
}

// messageStamp returns the beginning of a message id: milliseconds and a counter in 48 bits, as in
// opencode's own ids, and later than last.
func messageStamp(at time.Time, last string) string {
	stamp := fmt.Sprintf("%012x", uint64(at.UnixMilli())*0x1000&maxStamp)
	if stamp > last {
		return stamp
	}
	n, err := strconv.ParseUint(last, 16, 64)
	if err != nil {
		return stamp // not made by messageStamp
	}
	return fmt.Sprintf("%012x", (n+1)&maxStamp)
}

const (
	stampLen = 12
	maxStamp = 0xffffffffffff
)

// Deliver implements courier.Channel.
func (s *server) Deliver(ctx context.Context, mail []team.Mail) []team.Outcome {
	s.mu.Lock()
	up, id := s.up, s.session
	s.mu.Unlock()
	if !up {
		return courier.Held(mail, "the server of "+s.f.Name+" is not reached yet")
	}
	out := make([]team.Outcome, len(mail))
	fresh := true
	for i, m := range mail {
		if m.Again && fresh {
			if _, err := s.read(ctx, id, s.oldestOf(mail)); err != nil {
				return append(out[:i], courier.Held(mail[i:], fmt.Sprintf("the session cannot be read: %v", err))...)
			}
			fresh = false
		}
		out[i] = s.give(ctx, id, m.ID, m.Text, m.Again)
	}
	return out
}

// Settles returns true: reading the session shows which messages it has.
func (s *server) Settles() bool { return true }

// textSum identifies a text.
type textSum [sha256.Size]byte

func sumOf(text string) textSum { return sha256.Sum256([]byte(text)) }

// letter is a posted text.
type letter struct {
	id     string // of the mail
	sum    textSum
	unsure bool // its post got no answer
}

// partOf returns the id of the text part of one of our messages.
func partOf(msg string) string { return "prt_" + strings.TrimPrefix(msg, "msg_") }

// part records the text that the session has of one of our messages: once the text is whole, the
// message is accepted.
func (s *server) part(msg string, p messagePart, source string) {
	if p.Type != "text" || p.Text == "" || !minted(msg) || p.ID != partOf(msg) {
		return
	}
	sum := sumOf(p.Text)
	s.mu.Lock()
	s.stored[msg] = sum
	l, ours := s.mail[msg]
	ours = ours && l.sum == sum
	if ours {
		delete(s.mail, msg)
	}
	s.mu.Unlock()
	if ours && !strings.HasPrefix(l.id, promptPrefix) {
		s.see(team.Observation{Source: source, Receipts: []team.Receipt{{ID: l.id, State: team.Accepted, Evidence: standsAs(msg)}}})
	}
}

// standsAs returns the evidence that the session has a message.
func standsAs(msg string) string { return "it stands in the session as " + msg }

// promptPrefix begins the name of a generation's first message, which is not mail.
const promptPrefix = "prompt-"

// give posts one text unless the session has it. again marks a text that was posted before and is
// missing in the session: the post may have been lost.
func (s *server) give(ctx context.Context, session, mail, text string, again bool) team.Outcome {
	o := team.Outcome{ID: mail, State: team.Injected}
	hash, sum := messageHash(mail), sumOf(text)
	s.mu.Lock()
	msg, known := s.seen[hash]
	if known && s.stored[msg] == sum {
		o.State, o.Evidence = team.Accepted, standsAs(msg)
		s.mu.Unlock()
		return o
	}
	l, posted := s.mail[msg]
	if known && posted && !again && !l.unsure {
		s.mu.Unlock()
		return o // its receipt follows
	}
	if _, other := s.stored[msg]; other && msg <= s.answered {
		s.mu.Unlock()
		o.Reason = "the session has another text as " + msg
		return o
	}
	// The model sees a message placed before the last answered one, but no turn begins for it.
	if !known || msg <= s.answered {
		delete(s.mail, msg)
		s.stamp = messageStamp(time.Now(), s.stamp)
		msg = "msg_" + s.stamp + hash
		s.seen[hash] = msg
	}
	s.mail[msg] = letter{id: mail, sum: sum}
	s.mu.Unlock()
	err := s.prompt(ctx, session, msg, text)
	if err == nil {
		return o
	}
	o.State, o.Reason = team.Held, err.Error()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored[msg] == sum { // the event arrived first
		o.State, o.Reason, o.Evidence = team.Accepted, "", standsAs(msg)
		return o
	}
	if no := (*statusError)(nil); errors.As(err, &no) {
		delete(s.seen, hash)
		delete(s.mail, msg)
		return o
	}
	o.Reason = "not known whether the server has it: " + o.Reason
	s.mail[msg] = letter{id: mail, sum: sum, unsure: true}
	s.lookAgain()
	return o
}

// lookAgain has lookLate look at the session.
func (s *server) lookAgain() {
	select {
	case s.late <- struct{}{}:
	default: // a look is already pending
	}
}

// lookAfter is how long a post without an answer may still be processed.
const lookAfter = 5 * time.Second

// lookLate reads the session some time after a request without an answer, and reports that it has
// done so, so that missing messages are sent again. A turn is begun for what has no answer.
func (s *server) lookLate(ctx context.Context) {
	for {
		select {
		case <-s.late:
		case <-ctx.Done():
			return
		}
		if !courier.Pause(ctx, lookAfter) {
			return
		}
		s.mu.Lock()
		up, id := s.up, s.session
		s.mu.Unlock()
		if !up {
			continue // the next connection reads the session
		}
		if oldest := s.oldestOpen(); oldest != "" {
			if _, err := s.read(ctx, id, oldest); err != nil {
				s.f.Log.Warn("look for what was posted", "member", s.f.Name, "err", err)
			}
		}
		s.see(team.Observation{Source: "GET /session/message"})
		s.takeUp(ctx)
	}
}

// prompt posts a message; without a text it adds nothing to an existing message.
func (s *server) prompt(ctx context.Context, session, msg, text string) error {
	in := map[string]any{"messageID": msg, "parts": []any{}}
	if text != "" {
		in["parts"] = []any{map[string]string{"id": partOf(msg), "type": "text", "text": text}}
	}
	s.mu.Lock()
	agent := adapter.OpencodeAgent(s.f.Link, s.mode)
	s.mu.Unlock()
	if agent != "" {
		in["agent"] = agent
	}
	return s.request(ctx, http.MethodPost, "/session/"+session+"/prompt_async", in, nil)
}

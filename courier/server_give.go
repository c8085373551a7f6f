package courier

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

	"github.com/teamctl/teamctl/adapter"
	"github.com/teamctl/teamctl/team"
)

// hashLen is how much of an id tells which mail it is; opencode's own end is as long.
const hashLen = 14

// messageHash is the end of the id that a mail's message gets.
func messageHash(mail string) string {
	h := sha256.Sum256([]byte(mail))
	return hex.EncodeToString(h[:])[:hashLen]
}

// messageStamp is the beginning: milliseconds and a counter in 48 bits, as
// opencode makes its own, and later than last.
func messageStamp(at time.Time, last string) string {
	stamp := fmt.Sprintf("%012x", uint64(at.UnixMilli())*0x1000&maxStamp)
	if stamp > last {
		return stamp
	}
	n, err := strconv.ParseUint(last, 16, 64)
	if err != nil {
		return stamp // not of its making
	}
	return fmt.Sprintf("%012x", (n+1)&maxStamp)
}

const (
	stampLen = 12
	maxStamp = 0xffffffffffff
)

// Deliver is Channel's.
func (s *server) Deliver(ctx context.Context, mail []team.Mail) []team.Outcome {
	s.mu.Lock()
	up, id := s.up, s.session
	s.mu.Unlock()
	if !up {
		return held(mail, "the server of "+s.f.Name+" is not reached yet")
	}
	out := make([]team.Outcome, len(mail))
	fresh := true
	for i, m := range mail {
		if m.Again && fresh {
			if _, err := s.read(ctx, id); err != nil {
				return append(out[:i], held(mail[i:], fmt.Sprintf("the session cannot be read: %v", err))...)
			}
			fresh = false
		}
		out[i] = s.give(ctx, id, m.ID, m.Text)
	}
	return out
}

// Settles is true: the session tells what it has, if it is asked for it.
func (s *server) Settles() bool { return true }

// give sends one text, unless the session has it.
func (s *server) give(ctx context.Context, session, mail, text string) team.Outcome {
	o := team.Outcome{ID: mail, State: team.Injected}
	hash := messageHash(mail)
	s.mu.Lock()
	msg, known := s.seen[hash]
	if !known {
		s.stamp = messageStamp(time.Now(), s.stamp)
		msg = "msg_" + s.stamp + hash
		s.seen[hash] = msg
	}
	if !strings.HasPrefix(mail, "prompt-") {
		s.mail[msg] = mail
	}
	if known && msg <= s.answered && !s.gone[msg] {
		o.State, o.Evidence = team.Accepted, "answered after message "+msg
	}
	s.mu.Unlock()
	if known {
		return o
	}
	err := s.prompt(ctx, session, msg, text)
	if no := (*statusError)(nil); errors.As(err, &no) {
		s.mu.Lock()
		delete(s.seen, hash)
		s.mu.Unlock()
		o.State, o.Reason = team.Held, no.Error()
	} else if err != nil {
		o.Reason = err.Error() // it may have it: the session will tell
		s.mu.Lock()
		delete(s.seen, hash)
		s.mu.Unlock()
	}
	return o
}

// prompt posts a message; without a text it adds nothing to one that is there.
func (s *server) prompt(ctx context.Context, session, msg, text string) error {
	in := map[string]any{"messageID": msg, "parts": []any{}}
	if text != "" {
		in["parts"] = []any{map[string]string{"id": "prt_" + msg[len("msg_"):], "type": "text", "text": text}}
	}
	s.mu.Lock()
	agent := adapter.OpencodeAgent(s.f.Link, s.mode)
	s.mu.Unlock()
	if agent != "" {
		in["agent"] = agent
	}
	return s.request(ctx, http.MethodPost, "/session/"+session+"/prompt_async", in, nil)
}

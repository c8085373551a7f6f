package opencode

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/teamctl/teamctl/team"
)

const (
	pageLen    = 100              // messages that are asked for at once
	pageWithin = 30 * time.Second // bound of one request: a long session is megabytes, which a busy server takes minutes to tell
)

// cursorHeader of a page names the page before it. A version without pages ignores the parameters,
// and answers with all messages and no such header.
const cursorHeader = "X-Next-Cursor"

// read processes the newest messages of the session, back to one that is not newer than the message
// oldest, and returns them in order; "" reads all of them.
func (s *server) read(ctx context.Context, session, oldest string) (all []sessionMessage, err error) {
	q := url.Values{"limit": {strconv.Itoa(pageLen)}}
	for {
		var page []sessionMessage
		within, cancel := context.WithTimeout(ctx, pageWithin)
		h, err := s.fetch(within, http.MethodGet, "/session/"+session+"/message?"+q.Encode(), nil, &page)
		cancel()
		if err != nil {
			return nil, err
		}
		all = append(page, all...)
		next := h.Get(cursorHeader)
		if next == "" || len(page) == 0 || slices.ContainsFunc(page, func(m sessionMessage) bool { return m.Info.ID <= oldest }) {
			break
		}
		q.Set("before", next)
	}
	began := s.processBegan()
	for _, m := range all {
		if m.empty() && time.UnixMilli(m.Info.Time.Created).Before(began) {
			m.Info.ParentID = "" // it answers nothing
		}
		s.message(m.Info)
		for _, p := range m.Parts {
			s.part(m.Info.ID, p, "GET /session/message")
		}
	}
	return all, nil
}

// processBegan returns when the program's process began, the zero time if that is not known.
func (s *server) processBegan() time.Time {
	info, err := os.Stat(s.f.Bundle.Proc())
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// empty reports whether the message is an answer that has nothing: its turn was aborted, or its process
// ended, before the model said a word, and maybe before it was asked. What it was to answer has no
// answer then, unless a person has interrupted it, after which the same process goes on.
func (m sessionMessage) empty() bool {
	if m.Info.Role != "assistant" || m.Info.Mode == compaction {
		return false
	}
	if e := m.Info.Error; e != nil && e.Name != aborted || e == nil && m.Info.Time.Completed != 0 {
		return false
	}
	return !slices.ContainsFunc(m.Parts, func(p messagePart) bool {
		return p.Type != "step-start" && p.Type != "step-finish" && (p.Type != "text" || p.Text != "")
	})
}

// oldestOf returns the oldest of the messages under which the mail was posted, "" if one of them was
// posted by an earlier supervisor: its id is not known.
func (s *server) oldestOf(mail []team.Mail) (oldest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range mail {
		if !m.Again {
			continue
		}
		msg := s.seen[messageHash(m.ID)]
		if msg == "" {
			return ""
		}
		oldest = earlier(oldest, msg)
	}
	return oldest
}

// oldestOpen returns the oldest of our messages that have no receipt or no answer.
func (s *server) oldestOpen() (oldest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for msg := range s.mail {
		oldest = earlier(oldest, msg)
	}
	if s.given > s.answered {
		oldest = earlier(oldest, s.given)
	}
	return oldest
}

// earlier returns the lower of two ids; "" is none.
func earlier(a, b string) string {
	if a == "" {
		return b
	}
	return min(a, b)
}

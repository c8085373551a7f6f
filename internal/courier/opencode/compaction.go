package opencode

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// compaction is the mode of an answer that is a summary.
const compaction = "compaction"

// compacted reports whether the message is a finished summary.
func (m messageInfo) compacted() bool {
	return m.Role == "assistant" && m.Mode == compaction && m.Finish != "" && m.Error == nil
}

// text returns the text of the message.
func (m sessionMessage) text() string {
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Type == "text" {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// takenAway returns our messages, by their ids in the session, that a compaction has made part of
// a summary before they were answered. The model was asked to summarise them and continues from
// the summary, so they have no effect. opencode keeps the last turns of a long conversation
// unchanged, and none of a short one; a prompt that was too large for the model is posted again by
// opencode itself. over says that no compaction is running: what one leaves is known only at its
// end.
func takenAway(all []sessionMessage, over bool) map[string]string {
	waits, gone := map[string]string{}, map[string]string{}
	for i, m := range all {
		id := m.Info.ID
		switch {
		case m.Info.Role == "user":
			text := m.text()
			same := func(old, was string) bool { // sent again, by this channel or by opencode
				return old[len(old)-hashLen:] == id[len(id)-hashLen:] || was == text
			}
			if len(id) > hashLen {
				maps.DeleteFunc(gone, same)
			}
			if minted(id) && text != "" {
				waits[id] = text
			}
		case m.Info.compacted():
			if i == len(all)-1 && !over {
				continue
			}
			tail := tailOf(all, m.Info.ParentID)
			for old, text := range waits {
				if old < m.Info.ParentID && (tail == "" || old < tail) {
					gone[old] = text
					delete(waits, old)
				}
			}
		case m.Info.Mode != compaction:
			maps.DeleteFunc(waits, func(old, _ string) bool { return old <= m.Info.ParentID })
		}
	}
	return gone
}

func tailOf(all []sessionMessage, id string) string {
	for _, m := range all {
		for _, p := range m.Parts {
			if m.Info.ID == id && p.Type == compaction {
				return p.Tail
			}
		}
	}
	return ""
}

// restoreNow sends again what a compaction has taken away, if there was one.
func (s *server) restoreNow(ctx context.Context) {
	s.mu.Lock()
	session, doubt, over := s.session, s.doubt, !s.busy
	s.mu.Unlock()
	if !doubt {
		return
	}
	all, err := s.read(ctx, session, "")
	if err != nil {
		s.f.Log.Warn("look for what a compaction took", "member", s.f.Name, "err", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s.restore(ctx, all, over)
}

// restore does the work of restoreNow for the messages of the session. It takes the texts from the
// session, so that a supervisor that does not know the mail can do it as well. Each text becomes a
// message with an id that identifies the same mail.
func (s *server) restore(ctx context.Context, all []sessionMessage, over bool) {
	lost := takenAway(all, over)
	ended := over || len(all) == 0 || !all[len(all)-1].Info.compacted()
	s.mu.Lock()
	session := s.session
	s.doubt = !ended
	s.mu.Unlock()
	for _, old := range slices.Sorted(maps.Keys(lost)) {
		hash := old[len(old)-hashLen:]
		s.mu.Lock()
		msg, before := s.regiven[old] // the session may not show it yet
		if !before {
			s.stamp = messageStamp(time.Now(), s.stamp)
			msg = "msg_" + s.stamp + hash
			s.regiven[old] = msg
		}
		s.mu.Unlock()
		s.f.Log.Info("give again what a compaction took away", "member", s.f.Name, "message", old, "again", msg)
		if err := s.prompt(ctx, session, msg, lost[old]); err != nil {
			s.f.Log.Warn("give again what a compaction took away", "member", s.f.Name, "message", old, "err", err)
			s.mu.Lock()
			s.doubt = true // retried when the session is at rest again
			s.mu.Unlock()
			return
		}
		s.mu.Lock()
		s.seen[hash] = msg
		s.given = max(s.given, msg)
		s.mu.Unlock()
	}
}

package courier

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// RecordTail is how much of a transcript is read, from its end.
const RecordTail = 16 << 20

// Kernel returns the parts of a message that a transcript with this message contains: its id and
// its whole text. Other attributes may change with the team.
func Kernel(m team.Mail) []string {
	_, element, framed := strings.Cut(m.Text, "\n\n")
	if !framed {
		return []string{m.Text}
	}
	head, body, ok := strings.Cut(element, ">\n")
	if id := `message_id="` + m.ID + `"`; ok && strings.Contains(head, id) {
		return []string{id, ">\n" + body}
	}
	return []string{element}
}

// ReadTail returns the end of a file, at most most bytes and nothing before offset after; nil if
// the file cannot be read.
func ReadTail(path string, most, after int64) []byte {
	f, err := regular.Open(path)
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

// Settles returns true: the channel finds out what became of mail that a hook has given.
func (h *hooks) Settles() bool { return true }

// recorded returns the outcomes of mail that a hook has given and that lacks evidence since. The
// next hook would find it in the transcript, but a long turn may call none, and an interrupt may
// end a turn without one. lost is the mail that neither the transcript nor the program's own queue
// has. If the program does not write hook output to its transcript, all given mail is lost once
// the agent is at rest.
func (h *hooks) recorded(ctx context.Context, mail []team.Mail) (out []team.Outcome, lost []team.Mail) {
	records := adapter.Records(h.f.Link.Agent, h.f.version())
	var t adapter.Transcript
	c, err := ReadConversation(h.f.Bundle, h.f.Session)
	if (records || adapter.RecordsAnswered(h.f.Link.Agent)) && err == nil && c.Transcript != "" {
		t = adapter.ReadTranscript(h.f.Link.Agent, ReadTail(c.Transcript, RecordTail, 0))
	}
	why := ""
	if !records {
		why, _ = h.blocked(ctx)
	}
	for _, m := range mail {
		o := team.Outcome{ID: m.ID}
		switch parts := Kernel(m); {
		case t.Holds(parts...):
			o.State, o.Evidence = team.Accepted, "the transcript of "+c.ID+" holds it"
		case why != "":
			o.Pending = true
		case t.Queued(parts...):
			o.Pending = true
		default:
			lost = append(lost, m)
		}
		out = append(out, o)
	}
	return out, lost
}

// wakeForLost types a wake-up for lost mail if the agent is at rest and no hook waits: the hook of
// that prompt gives the mail again. It types no further one until a hook has run.
func (h *hooks) wakeForLost(ctx context.Context, lost []team.Mail) {
	alone := h.opened // mail given before that may still be in flight
	switch {
	case h.waiterLives(): // it gives the mail again itself
		h.alone = time.Time{}
		return
	case h.waits():
		if h.alone.IsZero() {
			h.alone = time.Now()
		}
		alone = h.alone
	}
	at, _ := h.heardAt()
	if time.Since(alone) < waiterBack || !h.deaf.IsZero() || h.wakes(lost) || !h.called.IsZero() && !at.After(h.called) {
		return
	}
	if why, seen := h.blocked(ctx); why == "" && seen.Input == "" {
		h.wake(ctx, lost)
	}
}

// wake types a wake-up for mail, and returns why it cannot be typed.
func (h *hooks) wake(ctx context.Context, mail []team.Mail) (why string) {
	began := time.Now()
	switch o := h.send(ctx, adapter.WakeText); o.State {
	case team.Held:
		return o.Reason
	case team.Accepted:
		h.called, h.woken, h.wokenFor = began, time.Now(), map[string]bool{}
		for _, m := range mail {
			h.wokenFor[m.ID] = true
		}
		h.later(wakeAgain) // it may have no effect
	default:
		h.later(lookAgain) // its Enter had no effect
	}
	return ""
}

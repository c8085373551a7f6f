package tui

import (
	"time"

	"github.com/teamctl/teamctl/internal/view"
)

// An answer applies to what the person saw. A key answers a request only if that request has been
// painted under the cursor long enough to be read; and only if the key comes alone, as typed by
// hand: a burst of keys was typed ahead, pasted or sent.
const (
	unread = 400 * time.Millisecond // after it was painted under the cursor
	burst  = 40 * time.Millisecond  // between two keys
)

// guard tracks what is under the cursor, and since when.
type guard struct {
	under   string // a row and what was visible of it
	frame   int    // first frame that has shown it in this form
	since   time.Time
	lastKey time.Time
	waiting *answer
}

// answer is an answer that waits to be confirmed as a single key.
type answer struct {
	deed view.Deed
	at   time.Time
}

// underHand identifies the target of keys, and what is visible of it.
func (m *model) underHand(f frame) string {
	id := m.cursor
	if m.over.kind != noOverlay {
		id = "over " + m.over.deed.Action + " " + f.preview + " " + id
	}
	seen := ""
	if approval := m.approval(); approval != 0 {
		seen = f.seen[approval]
		if r, ok := m.request[approval]; seen == "" && ok {
			seen = "part of " + r.Seen()
		}
	}
	return string(m.at) + " " + id + " " + seen
}

// approval returns the request that keys apply to, 0 for none.
func (m *model) approval() int64 {
	if m.over.approval != 0 {
		return m.over.approval
	}
	if it, ok := m.row(); ok && !it.gone && it.on.Thing == view.OnApproval {
		return it.on.Need.Approval
	}
	return 0
}

func (g *guard) shown(under string, frame int) {
	if g.under != under {
		g.under, g.frame, g.since = under, frame, time.Time{}
	}
}

func (g *guard) painted(p paint) {
	if g.since.IsZero() && p.frame >= g.frame {
		g.since = p.at
	}
}

// key records a key and returns why it must not answer, "" if it may.
func (g *guard) key(at time.Time) (why string) {
	last := g.lastKey
	g.lastKey = at
	switch {
	case g.waiting != nil, at.Sub(last) < burst:
		g.waiting = nil
		return "nothing was answered: these keys came faster than a hand types"
	case g.since.IsZero(), at.Sub(g.since) < unread:
		return "nothing was answered: it had not been on the screen for long enough"
	}
	return ""
}

// give keeps an answer until it is confirmed as a single key.
func (g *guard) give(d view.Deed, at time.Time) { g.waiting = &answer{d, at} }

func (g *guard) wait(now time.Time) time.Duration {
	if g.waiting == nil {
		return 0
	}
	return max(time.Millisecond, burst-now.Sub(g.waiting.at))
}

// due carries out an answer that was confirmed.
func (g *guard) due(r *run, now time.Time) {
	if g.waiting != nil && now.Sub(g.waiting.at) >= burst {
		d := g.waiting.deed
		g.waiting = nil
		r.do(d)
	}
}

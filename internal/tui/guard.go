package tui

import (
	"time"

	"github.com/teamctl/teamctl/internal/view"
)

// An answer is what a person saw. A key answers a request only if that request has stood
// under the cursor, painted, for long enough to have been read; and only if it comes alone,
// as a hand types: keys that come in a burst were typed before, pasted or sent.
const (
	unread = 400 * time.Millisecond // after it was painted under the cursor
	burst  = 40 * time.Millisecond  // between two keys
)

// guard knows what stands under the cursor, and since when.
type guard struct {
	under   string // a row and what of it was seen
	frame   int    // the first that has shown it so
	since   time.Time
	lastKey time.Time
	waiting *answer
}

// answer is one that was given and still waits to be seen to have come alone.
type answer struct {
	deed view.Deed
	at   time.Time
}

// underHand names what the keys are about, and what of it is seen.
func (m *model) underHand(f frame) string {
	id := m.cursor
	if m.over.kind != noOverlay {
		id = "over " + m.over.deed.Action + " " + id
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

// approval is the request that the keys are about, 0 for none.
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

// key takes note of a key and says whether it may answer.
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

// give keeps an answer until it is seen to have come alone.
func (g *guard) give(d view.Deed, at time.Time) { g.waiting = &answer{d, at} }

func (g *guard) wait(now time.Time) time.Duration {
	if g.waiting == nil {
		return 0
	}
	return max(time.Millisecond, burst-now.Sub(g.waiting.at))
}

// due carries out the answer that has come alone.
func (g *guard) due(r *run, now time.Time) {
	if g.waiting != nil && now.Sub(g.waiting.at) >= burst {
		d := g.waiting.deed
		g.waiting = nil
		r.do(d)
	}
}

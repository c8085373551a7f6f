// Package state decides what a foreign agent does from everything that was seen of
// it. It is data and pure functions: the supervisor hands it observations and asks
// for the verdict.
//
// Sources are trusted in tiers: the process, the CLI's own status channel, hooks,
// the terminal's title, rules over the screen. The most trusted source that has
// said something counts, with one exception. Some things happen without a word of
// the better source: no hook fires when a person interrupts a turn, dismisses a
// dialog, or is shown one before the session has begun. There a worse source that is
// newer by Settle overrules it (overrules), but not a channel that says the agent waits:
// it tells the end of each dialog, and a screen may not show one. A screen that shows a
// dialog, or what no rule knows, keeps a hook's word from making the agent idle (doubts).
// Where a program shows dialogs after that word, it counts once the screen was read since (shown).
// What nobody has said is unknown, which is never idle.
package state

import (
	"slices"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Settle is by how much a less trusted observation has to be newer: a screen read
// right after a hook may still show what was before it.
const Settle = 2 * time.Second

// keep is how many observations are kept for a person who asks.
const keep = 20

// Engine holds what was seen of one generation of one agent. The zero value knows
// nothing.
type Engine struct {
	// Ended is when a person, or the team, went on after a limit: one that was seen
	// before is over, whatever the screen still says.
	Ended time.Time

	noHooks bool
	last    map[team.Tier]team.Observation
	recent  []team.Observation
	ready   bool
	failed  team.Observation // the last turn that an error has ended
	began   time.Time        // the latest that a turn was seen under way
}

// Take adds an observation. One that is older than what its tier has said is kept for
// the report only.
func (e *Engine) Take(o team.Observation) {
	if e.recent = append(e.recent, o); len(e.recent) > keep {
		e.recent = slices.Delete(e.recent, 0, len(e.recent)-keep)
	}
	if o.Ready || o.Activity == team.Idle || o.Activity == team.Working {
		e.ready = true
	}
	if o.NoHooks != nil {
		e.noHooks = *o.NoHooks
	}
	if o.Failed != "" && !o.At.Before(e.failed.At) {
		e.failed = o
	}
	if o.Activity == "" || e.last[o.Tier].At.After(o.At) {
		return
	}
	if e.last == nil {
		e.last = map[team.Tier]team.Observation{}
	}
	e.last[o.Tier] = o
	// A screen that is behind still shows the turn whose end a better source has told.
	if at := seenAt(o); o.Activity == team.Working && at.After(e.began) && (o.Tier < team.TierTitle || e.Verdict(o.At).Activity == team.Working) {
		e.began = at
	}
}

// seenAt is the latest moment that an observation may be of: what a terminal shows may
// lag behind what the CLI says.
func seenAt(o team.Observation) time.Time {
	if o.Tier >= team.TierTitle {
		return o.At.Add(-Settle)
	}
	return o.At
}

// Verdict is what counts at the time.
func (e *Engine) Verdict(now time.Time) team.Verdict {
	var best team.Observation
	for _, o := range e.tiers() {
		if o.Confirm && !e.shown(o) {
			o.Activity, o.Evidence = team.Working, []string{"its screen has not shown the end of the turn yet"}
		}
		switch {
		case o.Activity == team.ActivityUnknown && !doubts(o, best): // a word, but none that says anything
		case o.Activity == team.Limited && (!o.Until.IsZero() && !now.Before(o.Until) || !o.Began().After(e.Ended)): // over
		case best.Activity == "" || doubts(o, best) || overrules(o, best):
			best = o
		}
	}
	v := team.Verdict{Activity: team.ActivityUnknown, Ready: e.ready, NoHooks: e.noHooks}
	if best.Activity == "" {
		return v
	}
	v.Activity, v.For, v.Until, v.Tier = best.Activity, best.For, best.Until, best.Tier.String()
	v.Source, v.At, v.Evidence = best.Source, best.At, best.Evidence
	if v.Activity == team.Limited {
		v.Since = best.Began()
	}
	if v.Activity == team.Idle && !e.failed.At.Before(e.began) {
		v.Failed = e.failed.Failed
	}
	return v
}

// Report is the verdict with what it rests on.
func (e *Engine) Report(now time.Time) team.Report {
	return team.Report{Verdict: e.Verdict(now), Tiers: e.tiers(), Recent: append([]team.Observation{}, e.recent...)}
}

// InEndedLimit reports whether the CLI itself says last that it sits in a limit which
// was ended.
func (e *Engine) InEndedLimit() bool {
	o := e.last[team.TierChannel]
	return o.Activity == team.Limited && !o.Began().After(e.Ended)
}

func (e *Engine) tiers() []team.Observation {
	out := []team.Observation{}
	for t := team.TierProcess; t <= team.TierScreen; t++ {
		if o, ok := e.last[t]; ok {
			out = append(out, o)
		}
	}
	return out
}

// shown reports whether the screen has been read since an observation: what it shows now
// counts. A screen that was read right after it may still show the turn.
func (e *Engine) shown(o team.Observation) bool {
	s, ok := e.last[team.TierScreen]
	switch {
	case !ok:
		return false
	case s.Activity == team.Working:
		return s.At.Sub(o.At) >= Settle
	case s.Activity == team.Idle:
		return s.At.After(o.At)
	}
	return true // it is against it
}

// doubts reports whether a screen stands against a hook's word that the turn is over: it
// shows a dialog, or nothing that a rule knows. Some dialogs come with the end of a turn,
// before or after that word, and no hook tells of them. Whatever comes to rest on the screen
// is read, so what it showed before the word is over as soon as anything else is drawn.
func doubts(o, best team.Observation) bool {
	return o.Tier == team.TierScreen && best.Tier == team.TierHook && best.Activity == team.Idle &&
		(o.Activity == team.ActivityUnknown || o.Activity == team.Waiting)
}

// overrules reports whether a less trusted observation counts against a better one.
func overrules(worse, better team.Observation) bool {
	switch {
	case better.Tier == team.TierProcess:
		return false
	case worse.Activity == team.Limited && better.Activity == team.Idle: // at rest because of it: both come with the end of one turn
		return better.At.Sub(worse.At) < Settle
	case worse.At.Sub(better.At) < Settle:
		return false
	}
	switch worse.Activity {
	case team.Waiting, team.Limited: // a dialog that the better source does not know of
		return true
	case team.Idle, team.Working: // the end of something that ends without a word
		return better.Activity == team.Waiting && better.Tier != team.TierChannel ||
			better.Activity == team.Limited && worse.Activity == team.Working ||
			better.Activity == team.Working && worse.Activity == team.Idle
	case team.ActivityUnknown:
	}
	return false
}

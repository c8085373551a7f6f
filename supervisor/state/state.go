// Package state determines what a foreign agent is doing from all observations. It is data and
// pure functions: the supervisor passes observations and asks for the verdict.
//
// Sources are trusted in tiers: the process, the CLI's own status channel, hooks, the terminal's
// title, patterns on the screen. The most trusted source with an observation counts, with one
// exception. Better sources miss some events: no hook fires when a person interrupts a turn,
// dismisses a dialog, or gets one before the session has begun. In these cases a less trusted
// source that is newer by Settle overrules the better one (overrules), except a channel that
// reports that the agent waits: it reports the end of each dialog, and a screen may not show one. A
// channel that is a connection reports the end of each turn as well.
// A screen that shows a dialog, or that no pattern matches, prevents a hook's report from making
// the agent idle (doubts). If a program shows dialogs after that report, the report counts once
// the screen was read since (shown). A dialog whose answer was given stays on the screen for a
// moment, and does not count there (closed). Without any observation the state is unknown, which is never
// idle.
package state

import (
	"slices"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Settle is how much newer a less trusted observation must be: a screen read right after a hook
// may still show the state before it.
const Settle = 2 * time.Second

// answerShows is how long a dialog may stay on the screen after the answer to it. One that stays
// longer was not closed by the answer.
const answerShows = 10 * time.Second

// keep is the number of observations kept for reports to people.
const keep = 20

// Engine holds the observations of one generation of one agent. The zero value has none.
type Engine struct {
	// Ended is when a person or the team continued after a limit: a limit seen before that is over,
	// whatever the screen still shows.
	Ended time.Time

	noHooks bool
	last    map[team.Tier]team.Observation
	recent  []team.Observation
	ready   bool
	failed  team.Observation // the last turn that an error ended
	began   time.Time        // the latest time at which a turn was seen running

	answered time.Time        // when a request of the agent was last answered
	dialog   team.Observation // the screen at that time
	changed  bool             // the screen was seen without that dialog since
}

// Answered adds that a request of the agent was answered, and returns until when a dialog that was
// seen before counts as closed although it may still be on the screen.
func (e *Engine) Answered(at time.Time) (until time.Time) {
	if at.After(e.answered) {
		e.answered, e.dialog, e.changed = at, e.last[team.TierScreen], false
	}
	return e.answered.Add(answerShows)
}

// closed reports whether an observation is of a dialog that was answered since: every earlier one,
// and the same screen read again. Of a screen that was not read before the answer, or showed no dialog, the
// first moment does not count: it is read again.
func (e *Engine) closed(o team.Observation, now time.Time) bool {
	switch {
	case o.Activity != team.Waiting || e.answered.IsZero() || !now.Before(e.answered.Add(answerShows)):
		return false
	case !o.At.After(e.answered):
		return true
	case o.Tier < team.TierTitle || e.changed:
		return false
	case o.Tier == team.TierScreen && e.dialog.Activity == team.Waiting:
		return sameDialog(o, e.dialog)
	}
	return o.At.Sub(e.answered) < Settle
}

func sameDialog(a, b team.Observation) bool {
	return a.Activity == b.Activity && a.For == b.For && slices.Equal(a.Evidence, b.Evidence)
}

// Take adds an observation. One that is older than the latest of its tier is kept only for the
// report.
func (e *Engine) Take(o team.Observation) {
	if e.recent = append(e.recent, o); len(e.recent) > keep {
		e.recent = slices.Delete(e.recent, 0, len(e.recent)-keep)
	}
	if o.Ready || o.Activity == team.Idle && !e.blind(o) || o.Activity == team.Working {
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
	if o.Tier == team.TierScreen && e.dialog.Activity == team.Waiting && o.At.After(e.answered) && !sameDialog(o, e.dialog) {
		e.changed = true
	}
	if e.last == nil {
		e.last = map[team.Tier]team.Observation{}
	}
	e.last[o.Tier] = o
	// A screen that lags still shows the turn whose end a better source has reported.
	if at := seenAt(o); o.Activity == team.Working && at.After(e.began) && (o.Tier < team.TierTitle || e.Verdict(o.At).Activity == team.Working) {
		e.began = at
	}
}

// seenAt returns the latest time that an observation may describe: a terminal may lag behind the
// CLI's other reports.
func seenAt(o team.Observation) time.Time {
	if o.Tier >= team.TierTitle {
		return o.At.Add(-Settle)
	}
	return o.At
}

// Verdict returns the state that counts at a time.
func (e *Engine) Verdict(now time.Time) team.Verdict {
	var best team.Observation
	for _, o := range e.tiers() {
		if e.blind(o) {
			continue
		}
		if o.Confirm && !e.shown(o) {
			o.Activity, o.Evidence = team.Working, []string{"its screen has not shown the end of the turn yet"}
		}
		if e.closed(o, now) {
			o.Activity, o.For, o.Evidence = team.Working, "", []string{"its request was answered"}
		}
		switch {
		case o.Activity == team.ActivityUnknown && !doubts(o, best): // a report without a state
		case o.Activity == team.Limited && (!o.Until.IsZero() && !now.Before(o.Until) || !o.Began().After(e.Ended)): // over
		case best.Activity == "" || doubts(o, best) || e.overrules(o, best):
			best = o
		}
	}
	v := team.Verdict{Activity: team.ActivityUnknown, Ready: e.ready, NoHooks: e.noHooks}
	if best.Activity == "" {
		if o, ok := e.silent(); ok {
			v.Tier, v.Source, v.At, v.Evidence = o.Tier.String(), o.Source, o.At, o.Evidence
		}
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

// Report returns the verdict with its observations.
func (e *Engine) Report(now time.Time) team.Report {
	return team.Report{Verdict: e.Verdict(now), Tiers: e.tiers(), Recent: append([]team.Observation{}, e.recent...)}
}

// Silent returns why the state of a verdict is unknown although the program has a channel or hooks
// that report it; "" if it is known, or if no such source has ended.
func Silent(v team.Verdict) string {
	if v.Activity != team.ActivityUnknown || v.Tier != team.TierChannel.String() && v.Tier != team.TierHook.String() {
		return ""
	}
	return team.WhySilent + v.Source
}

// silent returns the last report of a channel, or else of hooks, if it says that they report no
// state: a connection is lost or not made yet, or the session has ended. Hooks that are known not
// to run are no such source, since a screen is the best one then.
func (e *Engine) silent() (o team.Observation, ok bool) {
	for _, t := range []team.Tier{team.TierChannel, team.TierHook} {
		if o, ok = e.last[t]; ok && o.Activity == team.ActivityUnknown && (t != team.TierHook || !e.noHooks) {
			return o, true
		}
	}
	return team.Observation{}, false
}

// blind reports whether an observation is a terminal that shows an agent at rest while the source
// that would report that is silent.
func (e *Engine) blind(o team.Observation) bool {
	if o.Tier < team.TierTitle || o.Activity != team.Idle {
		return false
	}
	_, silent := e.silent()
	return silent
}

// InEndedLimit reports whether the CLI's own latest report is a limit that was ended.
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

// shown reports whether the screen was read late enough after an observation to count. A screen
// read right after it may still show the turn.
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
	return true // the screen contradicts it
}

// doubts reports whether a screen contradicts a hook's report that the turn is over: it shows a
// dialog, or nothing that a pattern matches. Some dialogs appear at the end of a turn, before or
// after that report, and no hook reports them. The screen is read whenever it comes to rest, so
// its earlier content is replaced as soon as anything else is drawn.
func doubts(o, best team.Observation) bool {
	return o.Tier == team.TierScreen && best.Tier == team.TierHook && best.Activity == team.Idle &&
		(o.Activity == team.ActivityUnknown || o.Activity == team.Waiting)
}

// endsByChannel reports whether the program's channel reports the end of every turn at once: it is a
// connection. Claude Code has a file beside its hooks, and the end of an interrupted turn may be
// taken from it some seconds later than from the screen.
func (e *Engine) endsByChannel() bool {
	_, hooks := e.last[team.TierHook]
	return !hooks
}

// overrules reports whether a less trusted observation counts instead of a better one.
func (e *Engine) overrules(worse, better team.Observation) bool {
	switch {
	case better.Tier == team.TierProcess:
		return false
	case worse.Activity == team.Limited && better.Activity == team.Idle: // at rest because of the limit: both come at the end of one turn
		return better.At.Sub(worse.At) < Settle
	case worse.At.Sub(better.At) < Settle:
		return false
	}
	switch worse.Activity {
	case team.Waiting, team.Limited: // a dialog unknown to the better source
		return true
	case team.Idle, team.Working: // the end of a state that no source reports
		return better.Activity == team.Waiting && better.Tier != team.TierChannel ||
			better.Activity == team.Limited && worse.Activity == team.Working ||
			better.Activity == team.Working && worse.Activity == team.Idle && (better.Tier != team.TierChannel || !e.endsByChannel())
	case team.ActivityUnknown:
	}
	return false
}

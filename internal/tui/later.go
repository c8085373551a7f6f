package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// putOff is a time for which a need can be put off; 0: until it changes.
type putOff struct {
	word, title string // "15m" on the plain screen
	time        time.Duration
}

var putOffs = []putOff{{"15m", "for 15 minutes", 15 * time.Minute}, {"1h", "for 1 hour", time.Hour}, {"change", "until it changes", 0}}

// putOffPrefix begins the commands of the choices of putOffs.
const putOffPrefix = "put-off:"

// needs returns the needs with those that are put off last, and how many are not.
func (m *model) needs() (all []view.Need, now int) {
	all = slices.Clone(m.snap.Needs)
	slices.SortStableFunc(all, func(a, b view.Need) int { return b2i(a.PutOff(m.now)) - b2i(b.PutOff(m.now)) })
	for _, n := range all {
		if !n.PutOff(m.now) {
			now++
		}
	}
	return all, now
}

// needInHand returns the selected need; without one it says so.
func (m *model) needInHand() (view.Need, bool) {
	it, ok := m.row()
	switch {
	case !ok || it.gone || it.on.Need == nil:
		m.say("nothing here can be put off", true)
	case m.readOnly:
		m.say("nothing was done: the screen is read only", true)
	default:
		return *it.on.Need, true
	}
	return view.Need{}, false
}

// putOffNeed asks for how long to put off the selected need, or takes it up again.
func (r *run) putOffNeed() {
	m := r.m
	n, ok := m.needInHand()
	if !ok {
		return
	}
	if n.PutOff(m.now) {
		r.later(n, func(ctx context.Context, t view.Team) error { return t.TakeUp(ctx, n) }, needName(n)+" is not put off any more")
		return
	}
	var list []choice
	for _, p := range putOffs {
		list = append(list, choice{title: p.title, command: putOffPrefix + p.word})
	}
	m.over, m.offered = overlay{kind: choiceOverlay, title: "put off " + needName(n), choices: list}, n
}

// putOffFor puts off the need that was asked about, and goes to the next one.
func (r *run) putOffFor(word string) {
	m, n := r.m, r.m.offered
	i := slices.IndexFunc(putOffs, func(p putOff) bool { return p.word == word })
	if i < 0 {
		return
	}
	p := putOffs[i]
	if m.cursor == needID(n) {
		m.nextNeed(1)
	}
	r.later(n, func(ctx context.Context, t view.Team) error { return t.PutOff(ctx, n, p.time) }, saidOff(n, p, m.now))
}

// saidOff says until when a need was put off.
func saidOff(n view.Need, p putOff, now time.Time) string {
	if p.time == 0 {
		return needName(n) + " is put off until it changes"
	}
	return fmt.Sprintf("%s is put off until %s, or until it changes", needName(n), now.Add(p.time).Local().Format("15:04"))
}

// later records beside the screen that a need is put off, or is not.
func (r *run) later(n view.Need, do func(context.Context, view.Team) error, said string) {
	t := r.team
	if t == nil {
		r.m.say("the team cannot be reached now", true)
		return
	}
	name := r.m.name
	r.async(r.ctx, func(ctx context.Context) func(*model) {
		err := do(context.WithoutCancel(ctx), t)
		return func(m *model) {
			if m.name == name {
				r.wrote(err)
			}
			if err != nil {
				m.fail(needName(n)+":", err, team.HintOf(err))
				return
			}
			m.say(said, false)
		}
	})
}

// laterEnds returns the time until a need is shown as ever, 0 for never.
func (m *model) laterEnds() (d time.Duration) {
	for _, n := range m.snap.Needs {
		if left := n.Until.Sub(m.now); n.Later && left > 0 && (d == 0 || left < d) {
			d = left
		}
	}
	return d
}

// needTitle heads the list of needs.
func needTitle(now, all int) string {
	title := fmt.Sprintf("! %d NEED YOU", now)
	if now == 0 {
		title = "NOTHING NEEDS YOU"
	}
	if n := all - now; n > 0 {
		title += fmt.Sprintf(", %d put off", n)
	}
	return title
}

// putOff puts off the need of a number on the plain screen, or takes it up again.
func (t *talk) putOff(name, rest string) {
	words := strings.Fields(rest)
	if len(words) == 0 {
		t.say("which need: %s NUMBER.", name)
		return
	}
	on, ok := t.thing("need " + words[0])
	i := 0
	if len(words) > 1 {
		i = slices.IndexFunc(putOffs, func(p putOff) bool { return p.word == words[1] })
	}
	switch {
	case t.p.ReadOnly:
		t.say("nothing was done: the screen is read only.")
		return
	case !ok || on.Need == nil:
		t.say("there is no need %s: needs lists them.", words[0])
		return
	case i < 0 || len(words) > 2 || name == "take-up" && len(words) > 1:
		t.say("nothing was done: put-off NUMBER 15m, 1h or change; take-up NUMBER.")
		return
	}
	n, now := *on.Need, time.Now()
	p := putOffs[i]
	ctx := context.WithoutCancel(t.ctx)
	err, said := error(nil), saidOff(n, p, now)
	if name == "put-off" {
		err = t.team.PutOff(ctx, n, p.time)
	} else {
		err, said = t.team.TakeUp(ctx, n), needName(n)+" is not put off any more"
	}
	if err != nil {
		t.fail(err)
		return
	}
	n.Later = name == "put-off"
	t.told[needID(n)] = n // the change is told here
	t.say("%s.", said)
}

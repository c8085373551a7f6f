package tui

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// beginning is what is shown where there is no team.
type beginning struct {
	known bool // the list of teams has arrived
	read  bool
	view.Start
	runs bool // commands are running
}

// glances takes the list of teams. The first team of a machine is opened: the person, or a command
// elsewhere, has just made it.
func (r *run) glances(list []view.Glance) {
	m := r.m
	if len(m.teams) == 0 && m.at == inTeams && m.name != "" {
		m.cursor = "team:" + m.name // the one that was left
	}
	m.takeTeams(list, time.Now())
	switch {
	case m.at != inTeams || r.ui.Start == nil:
	case len(list) == 0:
		r.readStart()
	case m.begins.read && len(list) == 1:
		m.begins.read = false
		r.enterTeam(list[0].Team)
	}
}

// lastRead is what was last known of a team that cannot be read now.
type lastRead struct {
	view.Glance
	at time.Time // until when it was known to be right; zero while it is
}

// takeTeams takes the list of teams. What is known of a team that cannot be read stays.
func (m *model) takeTeams(list []view.Glance, now time.Time) {
	m.teams, m.begins.known, m.teamsLost = list, true, ""
	known := map[string]lastRead{}
	for _, g := range list {
		last, ok := m.lastRead[g.Team]
		switch {
		case g.Unread == "":
			known[g.Team] = lastRead{Glance: g}
		case ok && last.at.IsZero():
			known[g.Team] = lastRead{last.Glance, now}
		case ok:
			known[g.Team] = last
		}
	}
	m.lastRead = known
}

// loseTeams notes that the list of teams cannot be read; what is known of them stays.
func (m *model) loseTeams(err error, now time.Time) {
	if m.teamsLost == "" {
		m.teamsAt = now
	}
	m.teamsLost = err.Error()
}

func (r *run) readStart() {
	r.async(r.ctx, func(ctx context.Context) func(*model) {
		s, err := r.ui.Start.Start(ctx)
		return func(m *model) {
			if err != nil {
				m.fail("", err, team.HintOf(err))
				return
			}
			m.begins.Start, m.begins.read = s, true
		}
	})
}

const (
	commandRow = "first:"
	findingRow = "found:"
)

// startRows returns the first commands and what is not in order on the machine.
func (m *model) startRows() []group {
	if !m.begins.read {
		return nil
	}
	commands := group{id: "first", title: "THERE IS NO TEAM YET: THE FIRST COMMANDS"}
	wide := 0
	for _, c := range m.begins.Commands {
		wide = max(wide, view.Width(view.Clean(c.Line)))
	}
	for i, c := range m.begins.Commands {
		commands.items = append(commands.items, item{id: fmt.Sprint(commandRow, i), text: c.Line, line: func(w int) string {
			return columns(w, "  ", []string{m.style.Bold(view.Clean(c.Line)), m.style.Dim(view.Clean(c.About))}, []int{min(wide, w*2/3), 0})
		}})
	}
	found := group{id: "found", title: fmt.Sprintf("DOCTOR FINDS %d", len(m.begins.Found))}
	if len(m.begins.Found) == 0 {
		found.title = "DOCTOR FINDS EVERYTHING IN ORDER"
	}
	for i, x := range m.begins.Found {
		sign := m.style.Yellow("!")
		if x.Fails {
			sign = m.style.Red("✗")
		}
		found.items = append(found.items, item{id: fmt.Sprint(findingRow, i), text: x.Name, line: func(int) string {
			return sign + " " + m.style.Bold(view.Clean(x.Name)) + "  " + view.Clean(x.Detail)
		}, more: func(w int) []string { return wrapped(m.style.Dim(view.Clean(x.Hint)), w) }})
	}
	return []group{commands, found}
}

// openStart opens a row of startRows; false for another row.
func (r *run) openStart(id string) bool {
	m := r.m
	var i int
	switch {
	case strings.HasPrefix(id, findingRow):
		if _, err := fmt.Sscan(strings.TrimPrefix(id, findingRow), &i); err == nil && i < len(m.begins.Found) {
			m.say(m.begins.Found[i].Hint, false)
		}
		return true
	case strings.HasPrefix(id, commandRow):
		if _, err := fmt.Sscan(strings.TrimPrefix(id, commandRow), &i); err != nil || i >= len(m.begins.Commands) {
			return true
		}
	default:
		return false
	}
	switch {
	case m.readOnly:
		m.say("this screen shows only: type the command in a shell", true)
	case m.begins.runs:
		m.say("a command is running", true)
	default:
		m.over = overlay{kind: startOverlay, at: i}
	}
	return true
}

// startLines is the question before commands run.
func (m *model) startLines() []string {
	commands := m.begins.Commands[:min(m.over.at+1, len(m.begins.Commands))]
	out := []string{m.style.Bold("Run this command?")}
	if len(commands) > 1 {
		out[0] = m.style.Bold(fmt.Sprintf("Run these %d commands, one after the other?", len(commands)))
	}
	for _, c := range commands {
		out = append(out, "  "+view.Clean(c.Line))
	}
	return out
}

// startKey answers the question: enter runs the commands, if a hand that has seen all of them typed
// it; any other key leaves it.
func (r *run) startKey(key, why string) {
	m := r.m
	at := m.over.at
	switch {
	case key != "enter" || at >= len(m.begins.Commands):
		m.over = overlay{}
		m.say("nothing was done", false)
		return
	case why != "":
		m.say(strings.Replace(why, "answered", "done", 1), true)
		return
	case r.frame.preview == "":
		m.say("nothing was done: the screen is too small to show all of it", true)
		return
	}
	m.over = overlay{}
	m.begins.runs = true
	m.say("…", false)
	commands := m.begins.Commands[:at+1]
	r.async(r.ctx, func(ctx context.Context) func(*model) {
		// A command that has begun completes even if the screen is left meanwhile.
		said, err := r.ui.Start.Begin(context.WithoutCancel(ctx), commands)
		return func(m *model) {
			m.begins.runs = false
			if err != nil {
				m.fail("", err, team.HintOf(err))
				return
			}
			m.say(said, false)
		}
	})
}

// start tells what is not in order on the machine, and lists the first commands.
func (t *talk) start() {
	t.all.Go(func() {
		s, err := t.p.Start.Start(t.ctx)
		t.later(func() {
			if err != nil {
				t.fail(err)
				return
			}
			t.say("there is no team yet.")
			for i, x := range s.Found {
				t.say("doctor finds %d of %d: %s, %s. hint: %s", i+1, len(s.Found), view.Clean(x.Name), view.Clean(x.Detail), view.Clean(x.Hint))
			}
			if len(s.Found) == 0 {
				t.say("doctor finds everything in order.")
			}
			for i, c := range s.Commands {
				t.say("%d: %s, %s", i+1, view.Clean(c.Line), view.Clean(c.About))
			}
			if t.p.ReadOnly {
				t.say("this screen shows only: type a command in a shell.")
				return
			}
			t.first = s.Commands
			t.say("a number runs the command, and those before it, after a question.")
		})
	})
}

// askFirst asks whether to run the first n commands.
func (t *talk) askFirst(n int) {
	commands := t.first[:n]
	for _, c := range commands {
		t.say("%s", view.Clean(c.Line))
	}
	t.say("run it? yes runs it, an empty line does nothing.")
	t.asks = func(text string) {
		if text != "yes" {
			t.say("nothing was done.")
			return
		}
		t.first = nil
		t.all.Go(func() {
			said, err := t.p.Start.Begin(context.WithoutCancel(t.ctx), commands)
			t.later(func() {
				if err != nil {
					t.fail(err)
				} else {
					t.say("%s", said)
				}
				t.openFirst()
			})
		})
	}
}

// openFirst opens the team of the machine that has one, or lists them.
func (t *talk) openFirst() {
	ctx, cancel := context.WithCancel(t.ctx)
	t.all.Go(func() {
		defer cancel()
		_ = t.p.Home.Teams(ctx, nil, func(list []view.Glance) {
			cancel()
			t.later(func() {
				if len(list) == 1 {
					t.open(list[0].Team)
					return
				}
				t.teams()
			})
		})
	})
}

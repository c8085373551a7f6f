package tui

import (
	"cmp"
	"context"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// do carries out a deed beside the screen.
func (r *run) do(d view.Deed) { r.doThen(d, nil) }

func (r *run) doThen(d view.Deed, then func(*model)) {
	t := r.team
	if t == nil {
		r.m.say("the team cannot be reached now", true)
		return
	}
	if d.Approval != 0 && r.m.over.approval == d.Approval {
		r.m.over = overlay{}
	}
	r.m.say("…", false)
	name := r.m.name
	r.async(r.ctx, func(ctx context.Context) func(*model) {
		// A deed that has begun completes even if the screen is left meanwhile.
		done, err := t.Do(context.WithoutCancel(ctx), d)
		return func(m *model) {
			elsewhere := m.at == inTeams || m.name != name // the result names the team
			if m.name == name && (err != nil || !d.Preview) {
				r.wrote(err)
			}
			if err != nil {
				if elsewhere {
					m.fail("team "+view.Clean(name)+":", err, team.HintOf(err))
				} else {
					m.fail("", err, team.HintOf(err))
				}
				return
			}
			m.noteSent(name, d)
			if then != nil {
				then(m)
			}
			if elsewhere {
				m.say("team "+view.Clean(name)+": "+done.Said, false)
				return
			}
			m.say(done.Said, false)
			if done.Message != "" {
				m.sent, m.sentTo, m.receipt, m.toast = done.Message, cmp.Or(d.Group, d.Member), nil, ""
				r.readReceipt()
			}
		}
	})
}

// away lends the terminal to an action and takes it back afterwards.
func (r *run) away(d view.Deed) {
	t := r.team
	if t == nil {
		return
	}
	var done view.Done
	var err error
	if paused := r.term.Pause(func() { done, err = t.Do(r.ctx, d) }); paused != nil {
		r.m.fail("", paused, "")
	}
	if err != nil {
		r.m.fail("", err, team.HintOf(err))
	}
	r.m.cols, r.m.rows = r.term.Size()
	r.left = done.Left && r.quit()
}

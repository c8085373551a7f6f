package supervisor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// recent is the number of the loop's last messages that are kept for inspection.
const recent = 256

// traces is a ring of the loop's last messages.
type traces struct {
	list []team.Trace
	at   int
}

// trace adds a message to the ring.
func (s *Supervisor) trace(what string, began time.Time) {
	t := team.Trace{At: began, What: what, Took: time.Since(began)}
	if len(s.traces.list) < recent {
		s.traces.list = append(s.traces.list, t)
	} else {
		s.traces.list[s.traces.at%recent] = t
	}
	s.traces.at++
}

// describe returns the type of a message and its member.
func describe(m message) string {
	switch m := m.(type) {
	case call:
		return "request"
	case job:
		return m.what
	case fired:
		return m.name
	case exited:
		return "exited " + m.session
	case startDone:
		return "startDone " + m.session
	case stopDone:
		return "stopDone " + m.session
	case stopDeadline:
		return "stopDeadline " + m.session
	case retry:
		return "retry " + m.session
	default:
		return strings.TrimPrefix(fmt.Sprintf("%T", m), "supervisor.")
	}
}

// Debug returns the loop's state.
func (s *Supervisor) Debug(ctx context.Context) (team.Debug, error) {
	return ask(ctx, s, func(reply func(team.Debug, error)) {
		d := team.Debug{LastSeq: s.lastSeq}
		ms, _ := s.byName(nil)
		for _, m := range ms {
			x := team.DebugMember{
				Name: m.row.Name, Generation: m.row.Generation, Desired: string(m.row.Desired),
				Observed: string(m.row.Observed), Step: string(m.step), Attached: m.at != nil, Waiters: len(m.up),
			}
			if m.stop != nil {
				x.Stopping = fmt.Sprintf("%s %s, begun %s ago, %d wait", m.stop.state, m.stop.outcome, time.Since(m.stop.began).Round(time.Millisecond), len(m.stop.gone))
			}
			d.Members = append(d.Members, x)
		}
		for name := range s.timers {
			d.Timers = append(d.Timers, name)
		}
		slices.Sort(d.Timers)
		at := 0
		if len(s.traces.list) == recent {
			at = s.traces.at % recent
		}
		d.Traces = append(append(d.Traces, s.traces.list[at:]...), s.traces.list[:at]...)
		reply(d, nil)
	})
}

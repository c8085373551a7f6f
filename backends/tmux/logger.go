package tmux

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/backends/holder"
	"github.com/teamctl/teamctl/internal/proc"
)

const (
	// Intervals between attempts to restart a log writer that keeps dying.
	loggerPause    = 100 * time.Millisecond
	loggerPauseMax = time.Minute
)

// keepLogged restarts the process that writes the log if it was killed while
// the agent continues. Output of the pane in between is missing from the log.
func (a *attached) keepLogged(ctx context.Context) {
	l := a.Launch()
	for pause := loggerPause; holder.AwaitLog(ctx, l.Bundle, l.Generation); pause = min(2*pause, loggerPauseMax) {
		if !proc.Alive(a.Proc().Agent) {
			return // the log writer exits at the end of the output
		}
		if !a.relog(ctx) {
			return
		}
		t := time.NewTimer(pause) // for the new one to record itself
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// relog connects the pane to a log again. It returns false if the user has
// connected it to something else, or the pane has ended: then there is nothing
// to restore.
func (a *attached) relog(ctx context.Context) bool {
	l := a.Launch()
	ctx, cancel := context.WithTimeout(ctx, holder.ConcludeWithin)
	defer cancel()
	q, ok, err := a.server.find(ctx, a.Pane().PaneID)
	// tmux notices the death of a pipe's reader when it next writes to it.
	if err == nil && (!ok || q.dead || q.piped && !holder.LoggerKilled(l.Bundle, l.Generation)) {
		return false
	}
	if err == nil {
		a.b.log.Warn("the log writer died: starting another", "agent", l.Agent)
		err = a.server.batch(ctx, a.b.pipe(q.id, l))
	}
	if err != nil && ctx.Err() == nil {
		a.b.log.Warn("start the log writer", "agent", l.Agent, "err", err)
	}
	return true
}

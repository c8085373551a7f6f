package look

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// gateAgain is how long after a read a log whose directory does not exist yet is read again.
const gateAgain = time.Second

// GateLog calls each with a merge and the last lines of what its gates have printed, now and after every
// change, until the merge has ended or ctx ends, which is not an error.
func GateLog(ctx context.Context, t *tool.Team, id int64, each func(view.Merge, view.LogPart)) error {
	changes, stop, err := t.Ledger.Changes(ctx)
	if err != nil {
		return err
	}
	defer stop()
	hub := t.Env.Watch
	if hub == nil {
		hub = new(dirwatch.Hub)
	}
	comes := make(chan struct{}, 1)
	watched, forget := "", func() {}
	defer func() { forget() }()
	for ctx.Err() == nil {
		list, err := t.MergeQueue(ctx, true, 0)
		if err != nil {
			return untilEnd(ctx, err)
		}
		at := slices.IndexFunc(list, func(m ledger.Merge) bool { return m.ID == id })
		if at < 0 {
			return team.Errorf(team.CodeNotFound, "no merge %d", id).WithReason(team.ReasonMergeNotFound)
		}
		m := list[at]
		due := time.Duration(0)
		if m.State.Open() && m.Log != "" && m.Log != watched { // each step of a lane may have a log of its own
			forget()
			watched, forget = m.Log, func() {}
			if end, err := hub.Watch(filepath.Dir(m.Log), func(e team.FileEvent) {
				if !e.Lost && !e.Poll && filepath.Base(e.Name) != filepath.Base(m.Log) {
					return
				}
				select {
				case comes <- struct{}{}:
				default:
				}
			}); err == nil {
				forget = end
			} else {
				watched, due = "", gateAgain
			}
		}
		each(mergeOf(m), gatePart(m.Log))
		if !m.State.Open() {
			return nil
		}
		wait(ctx, due, changes, comes, nil, nil)
	}
	return nil
}

// untilEnd returns an error, unless it is that of an ended context.
func untilEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// gatePart reads the last lines of a gate's log.
func gatePart(name string) view.LogPart {
	p := view.LogPart{Title: "GATE", Lines: []string{}}
	if name == "" {
		p.Missing = "no gate has run yet"
		return p
	}
	text, err := readEnd(name, 2*logMost)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.Missing = "no output yet, or its file was removed"
	case err != nil:
		p.Missing = err.Error()
	default:
		p.Lines, p.Cut = lastPart(plain.Text(text))
	}
	return p
}

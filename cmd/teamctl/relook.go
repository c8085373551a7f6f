package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// relookPause is the minimum time between two refreshes: people do not read faster.
const relookPause = 200 * time.Millisecond

// addWatch adds --watch to every command whose shape supports it.
func (a *app) addWatch(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		a.addWatch(c)
	}
	if cmd.RunE == nil || !shapes[keyOf(cmd)].watch {
		return
	}
	var watch bool
	once := cmd.RunE
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show the result again after every change, until interrupted")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !watch {
			return once(cmd, args)
		}
		return a.relook(cmd, func() error { return once(cmd, args) })
	}
}

// relook runs look now and after every change of the team, and shows its output if it differs from
// what is shown. It ends with the team.
func (a *app) relook(cmd *cobra.Command, look func() error) (err error) {
	ctx, changes, stop, err := a.changes(cmd.Context(), keyOf(cmd) == "ls")
	if err != nil {
		return err
	}
	defer stop(&err)
	r := reviser{out: a.out}
	for {
		again, forget := after(a.due)
		open := true
		select {
		case <-ctx.Done():
		case _, open = <-changes:
		case <-again:
		}
		forget()
		if ctx.Err() != nil || !open {
			return ctx.Err()
		}
		text, notes, err := a.captured(look)
		if r.shown && team.ReasonOf(err) == team.ReasonTeamNotFound {
			a.out.note("the team is gone")
			return nil
		}
		if err != nil {
			return err
		}
		r.show(text, notes)
		if a.out.failure() != nil {
			return a.out.failure()
		}
		pause := time.NewTimer(relookPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}

// captured runs look and returns its output instead of writing it.
func (a *app) captured(look func() error) (text, notes string, err error) {
	var stdout, stderr bytes.Buffer
	out, errOut := a.out.stdout, a.out.stderr
	a.out.stdout, a.out.stderr = &stdout, &stderr
	err = look()
	a.out.stdout, a.out.stderr = out, errOut
	return stdout.String(), stderr.String(), err
}

// reviser replaces one text by the next.
type reviser struct {
	out   *output
	shown bool
	last  string          // text and notes
	lines map[string]bool // of -o jsonl and -o name
}

// show shows a text if it differs from the previous one. On a terminal the text replaces the
// previous one; of lines for programs, only new ones are written; otherwise the text follows after
// an empty line.
func (r *reviser) show(text, notes string) {
	if r.shown && text+notes == r.last {
		return
	}
	switch o := r.out; {
	case o.format == formatJSONL || o.format == formatName:
		lines := map[string]bool{}
		for l := range strings.Lines(text) {
			if lines[l] = true; !r.lines[l] {
				o.text(l)
			}
		}
		r.lines = lines
	case o.json:
		o.text(text)
	case o.screen != nil:
		start := "\x1b[H"
		if !r.shown {
			start = "\x1b[2J\x1b[H"
		}
		o.text(start + strings.ReplaceAll(fitted(notes+text, o.size), "\n", "\x1b[K\n") + "\x1b[J")
		notes = ""
	default:
		if r.shown {
			o.text("\n")
		}
		o.text(text)
	}
	if notes != "" {
		_, _ = r.out.stderr.Write([]byte(notes)) // there is no way to report that stderr does not work
	}
	r.shown, r.last = true, text+notes
}

// fitted cuts a text to the size of a terminal: a line that wraps, or one too many, would scroll
// the header off the screen.
func fitted(text string, size func() (cols, rows int)) string {
	cols, rows := size()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if most := rows - 1; rows > 2 && len(lines) > most {
		lines = append(lines[:most-1], fmt.Sprintf("… and %d more lines", len(lines)-most+1))
	}
	for i, l := range lines {
		lines[i] = view.Cut(l, cols)
	}
	return strings.Join(lines, "\n") + "\n"
}

// changes receives a value at once and after every change of the team, or of any team if all is
// set. ctx is cancelled, with the reason in stop, when the team's supervisor stops answering.
func (a *app) changes(ctx context.Context, all bool) (_ context.Context, changes <-chan struct{}, stop func(*error), err error) {
	if all {
		teams, err := a.followTeams(ctx, nil)
		if err != nil {
			return nil, nil, nil, err
		}
		return ctx, teams.Changes(), func(*error) { teams.Stop() }, nil
	}
	t, _, err := a.open(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, leave := t.Attended(ctx)
	changes, forget, err := t.Ledger.Changes(ctx) // which end after ctx
	if err != nil {
		leave(&err)
		return nil, nil, nil, errors.Join(err, t.Close())
	}
	return ctx, changes, func(err *error) {
		leave(err)
		forget()
		_ = t.Close() // opened for reading only
	}, nil
}

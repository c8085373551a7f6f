package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// pauseMember freezes members as a person would, does something to them meanwhile, and thaws some;
// the others stay paused until the next settling.
func pauseMember(ctx context.Context, w *world) error {
	var names []string
	for range 1 + w.rand.IntN(3) {
		if a, ok := w.pick(func(a *agentPlan) bool { return a.steady && a.process() }); ok && !w.paused[a.name] {
			names = append(names, a.name)
			w.paused[a.name] = true
		}
	}
	if len(names) == 0 {
		return errSkip
	}
	w.note("pause %s", strings.Join(names, ", "))
	_, err := w.team.Pause(ctx, tool.Person(), names, true)
	if team.ReasonOf(err) == "no_freezer" {
		w.skipped["pause-member"] = err.Error()
		return errSkip
	}
	if err != nil {
		w.note("pause: %v", err) // a member that is just down cannot be paused
	}
	switch w.rand.IntN(4) {
	case 0:
		err = killSupervisor(ctx, w)
	case 1:
		err = w.orders(ctx, names[0], []string{"stop", "start"}) // what ends a paused one thaws it
	default:
		w.pause(ctx, 300*time.Millisecond)
		return w.thaw(ctx)
	}
	return unskip(err)
}

// thaw resumes the paused members.
func (w *world) thaw(ctx context.Context) error {
	for name := range w.paused {
		_, err := w.team.Pause(ctx, tool.Person(), []string{name}, false)
		switch {
		case team.IsCode(err, team.CodeConflict), team.IsCode(err, team.CodeNotFound): // it does not run: nothing is frozen
		case err != nil:
			return fmt.Errorf("resume %s: %w", name, err)
		}
		delete(w.paused, name)
	}
	return nil
}

// moveClock sets the wall clock of the supervisor, the living one and those to
// come, a day ahead, a day back, or right again.
func moveClock(ctx context.Context, w *world) error {
	by := []string{"24h", "-24h", "0"}[w.rand.IntN(3)]
	w.note("move the supervisor's clock by %s", by)
	path := w.clockFile()
	if err := errors.Join(os.WriteFile(path+".new", []byte(by), 0o600), os.Rename(path+".new", path)); err != nil {
		return err
	}
	if w.rand.IntN(2) == 0 {
		return unskip(errors.Join(unskip(killAgent(ctx, w)), unskip(killSupervisor(ctx, w)))) // a back-off that spans the jump
	}
	return nil
}

func (w *world) clockFile() string { return filepath.Join(w.dir, "clock") }

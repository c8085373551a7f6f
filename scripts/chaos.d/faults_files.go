package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/tool"
)

func run(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// deleteWorktree deletes the directory of a running worker. Its branch has every commit; the
// current task may fail.
func deleteWorktree(ctx context.Context, w *world) error {
	a, ok := w.pick((*agentPlan).worker)
	if !ok {
		return errSkip
	}
	m, err := w.team.Ledger.Member(ctx, a.name)
	if err != nil {
		return err
	}
	if m.Worktree == "" || !strings.HasPrefix(m.Worktree, w.vol+"/") {
		return errSkip
	}
	w.note("delete the worktree of %s", a.name)
	w.excused = true
	// In one step, as a person's mv would; what the worker still writes goes away with it.
	trash := filepath.Join(w.vol, fmt.Sprintf("trash-%d", w.round))
	if err := os.Rename(m.Worktree, trash); err != nil {
		return skipMissing(err)
	}
	_, err = w.team.Restart(ctx, tool.Person(), []string{a.name})
	_ = os.RemoveAll(trash)
	if err != nil {
		w.note("restart of %s: %v", a.name, err)
	}
	return nil
}

func (w *world) mailbox(name string) string {
	return filepath.Join(w.team.Layout.Inboxes(), name+".json")
}

func deleteMailbox(_ context.Context, w *world) error {
	a, _ := w.pick(nil)
	w.note("delete the mailbox of %s", a.name)
	if err := os.Remove(w.mailbox(a.name)); err != nil {
		return skipMissing(err)
	}
	w.hurt[a.name] = true
	return nil
}

// damageMailbox does to a mailbox what a killed writer or a bad editor would.
func damageMailbox(_ context.Context, w *world) error {
	a, _ := w.pick(nil)
	path := w.mailbox(a.name)
	fi, err := os.Stat(path)
	if err != nil || fi.Size() < 4 {
		return errSkip
	}
	w.hurt[a.name] = true
	switch w.rand.IntN(4) {
	case 0:
		n := w.rand.Int64N(fi.Size())
		w.note("cut the mailbox of %s at %d of %d", a.name, n, fi.Size())
		return os.Truncate(path, n)
	case 1:
		w.note("empty the mailbox of %s", a.name)
		return os.Truncate(path, 0)
	case 2:
		w.note("append rubbish to the mailbox of %s", a.name)
		return scribble(path, fi.Size(), "\x00garbage")
	default:
		at := w.rand.Int64N(fi.Size())
		w.note("write zeros into the mailbox of %s at %d", a.name, at)
		return scribble(path, at, "\x00\x00\x00\x00")
	}
}

func scribble(path string, at int64, what string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(what), at)
	return errors.Join(err, f.Close())
}

// fillDisk leaves no space while messages are sent and an agent dies.
func fillDisk(ctx context.Context, w *world) error {
	if w.disk == nil {
		return errSkip
	}
	w.note("fill the disk")
	w.excused = true
	w.traffic.leniently(true)
	free, err := w.disk.fill()
	if err != nil {
		return err
	}
	for range 3 {
		w.traffic.message(ctx)
	}
	if w.rand.IntN(2) == 0 {
		err = unskip(killAgent(ctx, w))
	}
	w.pause(ctx, 500*time.Millisecond)
	err = errors.Join(err, free())
	w.note("space again")
	// What a member or the supervisor began while it was full may still fail what begins now.
	t := time.NewTimer(100 * time.Millisecond)
	defer t.Stop()
	<-t.C
	w.traffic.leniently(false)
	return err
}

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

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/pty"
	"github.com/teamctl/teamctl/backends/tmux"
)

// exits: from kill -9 of an agent to the event that says so, with its status on
// disk; and whether every one of a thousand is told, once and rightly.
var exits = benchmark{name: "exit", title: "Exit noticed", run: runExits, note: exitNote}

const exitNote = `What bounds it: an exit is told when its status is on disk, written and synced by the shim, and the shim has ended with everything that the agent left. ` +
	`The floor of that is the synced record, measured beside it. That an agent has died could be told by its pidfd at once, but not how: it would be a guess, and a power loss would undo what others had acted on.`

const (
	goalExitP50 = 1.0  // milliseconds
	goalExitP99 = 10.0 // milliseconds
	exitWave    = 50   // agents that live at the same time
)

func runExits(ctx context.Context, e env) (string, error) {
	waves := 20
	if e.quick {
		waves = 2
	}
	var figures []figure
	for _, kind := range []string{tmux.Name, pty.Name} {
		more, err := exitsOf(ctx, e, kind, waves)
		if err != nil {
			return "", fmt.Errorf("%s: %w", kind, err)
		}
		figures = append(figures, more...)
	}
	return table(e.rounds, fmt.Sprintf("%d kills with SIGKILL per backend, %d agents at a time, one after the other.", waves*exitWave, exitWave), figures), nil
}

func exitsOf(ctx context.Context, e env, kind string, waves int) (_ []figure, err error) {
	f, err := openFleet(e, kind)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	var ours, waits, pidfds, records []time.Duration
	lost := 0
	for range waves {
		handles, _, err := f.up(ctx, exitWave, idleAgent)
		for _, h := range handles {
			if err != nil {
				break
			}
			var took [3]time.Duration
			if took[0], took[1], err = bareExit(ctx); err != nil {
				break
			}
			record, rerr := syncedRecord(e.dir)
			if err = rerr; err != nil {
				break
			}
			records = append(records, record)
			var told bool
			if took[2], told, err = killed(ctx, h); err != nil {
				break
			}
			if !told {
				lost++
			}
			waits, pidfds, ours = append(waits, took[0]), append(pidfds, took[1]), append(ours, took[2])
		}
		if err = errors.Join(err, f.down(ctx, handles)); err != nil {
			return nil, err
		}
	}
	at := func(q float64, of []time.Duration) float64 { return millis(quantile(of, q)) }
	return []figure{
		{kind + ", p50", "Wait of a child", at(0.5, waits), at(0.5, ours), "ms", atMost(goalExitP50)},
		{kind + ", p50", "a pidfd", at(0.5, pidfds), at(0.5, ours), "ms", goal{}},
		{kind + ", p50", "a record written and synced", at(0.5, records), at(0.5, ours), "ms", goal{}},
		{kind + ", p99", "Wait of a child", at(0.99, waits), at(0.99, ours), "ms", atMost(goalExitP99)},
		{fmt.Sprintf("%s, lost of %d", kind, len(ours)), "", 0, float64(lost), "", atMost(0)},
	}, nil
}

// syncedRecord is how long a file takes that survives a power loss: written beside its
// place, synced, renamed, and the directory synced.
func syncedRecord(dir string) (took time.Duration, err error) {
	path := filepath.Join(dir, "record")
	began := time.Now()
	f, err := os.Create(path + ".tmp")
	if err != nil {
		return 0, err
	}
	_, err = f.WriteString(strings.Repeat("x", 300) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return 0, err
	}
	d, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	err = errors.Join(d.Sync(), d.Close())
	return time.Since(began), err
}

// exitPatience is after how long an exit counts as lost.
const exitPatience = 10 * time.Second

// killed kills an agent and waits until it is told; it was when the status is right.
func killed(ctx context.Context, h backends.Handle) (time.Duration, bool, error) {
	late := time.NewTimer(exitPatience)
	defer late.Stop()
	began := time.Now()
	if err := unix.Kill(h.Proc().Agent.PID, unix.SIGKILL); err != nil {
		return 0, false, fmt.Errorf("kill the agent: %w", err)
	}
	select {
	case <-h.Exited():
		took := time.Since(began)
		x := h.Exit()
		return took, x.Known && x.Signal == "SIGKILL", nil
	case <-late.C:
		return exitPatience, false, nil
	case <-ctx.Done():
		return 0, false, ctx.Err()
	}
}

// bareExit kills two processes of our own: one that we wait for, one whose pidfd
// we watch.
func bareExit(ctx context.Context) (wait, pidfd time.Duration, err error) {
	for i, took := range []*time.Duration{&wait, &pidfd} {
		cmd := exec.CommandContext(ctx, idleAgent[0], idleAgent[1:]...)
		if err := cmd.Start(); err != nil {
			return 0, 0, err
		}
		began := time.Now()
		if i == 0 {
			_ = cmd.Process.Signal(os.Kill)
			_ = cmd.Wait() // killed: an error by intention
			*took = time.Since(began)
			continue
		}
		fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
		if err == nil {
			began = time.Now()
			err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			if err == nil {
				_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(exitPatience.Milliseconds()))
			}
			*took = time.Since(began)
			err = errors.Join(err, unix.Close(fd))
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if err != nil {
			return 0, 0, fmt.Errorf("watch a pidfd: %w", err)
		}
	}
	return wait, pidfd, nil
}

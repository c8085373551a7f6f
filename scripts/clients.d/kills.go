package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// victims are what stands between a message and its agent: each is killed amid a delivery.
var victims = []string{"supervisor", "agent", "shim", "tmux"}

// mailAmidKills: supervisor, agent, shim and tmux server are killed by turns as soon as a message
// was sent, every other time in mid-turn. Each message reaches the model, and no receipt
// is false.
func mailAmidKills(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	letters := agentlab.Nasty(w.token("amid"), max(w.rounds, len(victims)))
	for i := range letters {
		if err := w.idle(ctx, "mate"); err != nil {
			return "", err
		}
		if i/len(victims)%2 == 1 {
			if err := w.long(ctx, 3, w.token("then")); err != nil {
				return "", err
			}
		}
		if err := w.post(ctx, "mate", letters[i:i+1]); err != nil {
			return "", err
		}
		if err := w.killAny(ctx, victims[i%len(victims)]); err != nil {
			return "", err
		}
	}
	return w.compared(ctx, c, letters)
}

// killAny kills a victim and has the member run again where it ends by that.
func (w *world) killAny(ctx context.Context, victim string) error {
	pid, err := w.pidOf(ctx, victim)
	if err != nil {
		return err
	}
	id, err := proc.Identify(pid)
	if err == nil {
		err = proc.Signal(id, syscall.SIGKILL)
	}
	if err != nil && !errors.Is(err, proc.ErrGone) {
		return fmt.Errorf("kill the %s %d: %w", victim, pid, err)
	}
	if victim == "supervisor" {
		return nil
	}
	_, err = w.teamctl(ctx, "restart", "mate")
	return err
}

// pidOf is the process of a victim, once there is one.
func (w *world) pidOf(ctx context.Context, victim string) (pid int, err error) {
	layout := team.Home{Dir: w.Teams}.Team("demo")
	err = w.until(ctx, victim+" up", func() (bool, error) {
		switch victim {
		case "supervisor":
			pid, err = w.supervisor()
		case "tmux":
			pid, err = w.tmux(ctx)
		default:
			var p backends.Proc
			p, err = bundle.ReadProc(layout.Bundle("mate"), "")
			if pid = p.Agent.PID; victim == "shim" {
				pid = p.Shim.PID
			}
		}
		return err == nil && pid > 0, err
	})
	return pid, err
}

// tmux is the server in which the members run.
func (w *world) tmux(ctx context.Context) (int, error) {
	sockets, err := filepath.Glob(filepath.Join(w.Sockets, "*", "t"))
	if err != nil {
		return 0, err
	}
	for _, s := range sockets {
		out, err := exec.CommandContext(ctx, "tmux", "-S", s, "display-message", "-p", "#{pid}").Output()
		if err == nil {
			return strconv.Atoi(strings.TrimSpace(string(out)))
		}
	}
	return 0, fmt.Errorf("no tmux server answers at %q", sockets)
}

// perRun is how many messages one run of the team gets here: there is a cap, and what the
// members say counts, too.
const perRun = 200

// mailThousand: a thousand messages, of which every twentieth is followed by a kill of
// the agent, the supervisor, the shim or the tmux server, or by an interrupt.
func mailThousand(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	const every = 20
	letters := agentlab.Nasty(w.token("thousand"), w.many)
	for i := range letters { // short: each request has the whole conversation
		if len(letters[i].Text) > 1000 {
			letters[i].Text = letters[i].Text[:1000]
		}
	}
	harm := append([]string{"interrupt"}, victims...)
	for i := range letters {
		if i%perRun == perRun-1 {
			if _, err := w.teamctl(ctx, "run", "start"); err != nil {
				return "", err
			}
		}
		if err := w.post(ctx, "mate", letters[i:i+1]); err != nil {
			return "", err
		}
		if i%every != every-1 {
			continue
		}
		var err error
		switch h := harm[i/every%len(harm)]; h {
		case "interrupt":
			// After a kill the program may not be reached yet.
			if err = w.until(ctx, "interrupted", func() (bool, error) { _, err := w.teamctl(ctx, "interrupt", "mate"); return err == nil, err }); err == nil {
				err = w.goOn(ctx)
			}
		default:
			err = w.killAny(ctx, h)
		}
		if err != nil {
			return "", err
		}
	}
	return w.compared(ctx, c, letters)
}

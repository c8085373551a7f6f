package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
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

// victims are the processes between a message and its agent; each is killed during a delivery.
func victims(c agentlab.Client) []string {
	all := []string{"supervisor", "agent", "shim", "tmux"}
	if c.Name == "codex" {
		all = append(all, "server")
	}
	return all
}

// mailAmidKills kills supervisor, agent, shim, tmux server and the program's own server in turn as
// soon as a message was sent, every other time in mid-turn. Each message reaches the model, and no receipt is false.
func mailAmidKills(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	victims := victims(c)
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

// killAny kills a victim, and starts the member again if it has ended with it.
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
	if victim == "supervisor" || victim == "server" { // what ends with a server is started again
		return nil
	}
	_, err = w.teamctl(ctx, "restart", "mate")
	return err
}

// pidOf waits for the process of a victim.
func (w *world) pidOf(ctx context.Context, victim string) (pid int, err error) {
	layout := team.Home{Dir: w.Teams}.Team("demo")
	err = w.until(ctx, victim+" up", func() (bool, error) {
		switch victim {
		case "supervisor":
			pid, err = w.supervisor()
		case "tmux":
			pid, err = w.tmux(ctx)
		case "server":
			pid, err = w.server()
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

// server is the server of Codex.
func (w *world) server() (int, error) {
	all := w.processes()
	for pid, argv := range all {
		if strings.Contains(argv, " app-server ") && !strings.Contains(argv, " beside ") {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("no server among %v", all)
}

// processes are the command lines of all processes in the home, by process.
func (w *world) processes() map[int]string {
	out := map[int]string{}
	for _, pid := range w.Processes() {
		argv, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err == nil && len(argv) > 0 { // else it has ended
			out[pid] = string(bytes.ReplaceAll(argv, []byte{0}, []byte{' '}))
		}
	}
	return out
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

// perRun is the number of messages sent in one run of the team: runs have a cap, and messages of
// the members count, too.
const perRun = 200

// mailThousand sends a thousand messages. After every twentieth it kills the agent, the supervisor,
// the shim or the tmux server, or interrupts the turn.
func mailThousand(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	const every = 20
	letters := agentlab.Nasty(w.token("thousand"), w.many)
	for i := range letters { // short, because each request has the whole conversation
		if len(letters[i].Text) > 1000 {
			letters[i].Text = letters[i].Text[:1000]
		}
	}
	harm := append([]string{"interrupt"}, victims(c)...)
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
			// After a kill the program may not be reachable yet.
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

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/agent"
	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/inproc"
	"github.com/teamctl/teamctl/backends/pty"
	"github.com/teamctl/teamctl/internal/fakemodel"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// builtin: many built-in agents at work in one supervisor, the memory of one, and its way back
// after a kill.
var builtin = benchmark{name: "builtin", title: "Built-in agents at work", run: runBuiltin, note: builtinNote}

const builtinNote = "A turn with three calls is nine commits: the line with its turn, the claim, two for each call, and the answer with its end; the board that a call lists is read and encoded, and at the end the member is idle, and tells the lead. " +
	"The floor is as many commits of one event, by as many goroutines of a process that writes itself, which the ledger groups alike. " +
	"A process of its own is ready when it says so, and a resumed turn has begun when its request is at the test server."

const (
	goalAtWork = 0.5 // of the rate of the commits
	goalOwn    = 1.2 // x a worker's process
	goalPrompt = 3.0 // x the prompt, beyond
	freeTurnMB = 4.0
	goalResume = 1.5 // x a worker's start

	linesEach    = 10
	callsOfLine  = 3
	commitsOf    = 9 // a line
	longPromptMB = 1.0
)

func runBuiltin(ctx context.Context, e env) (string, error) {
	many, thick, killed := 200, 20, 12
	if e.quick {
		many, thick, killed = 20, 4, 3
	}
	var figures []figure
	for _, part := range []func() ([]figure, error){
		func() ([]figure, error) { return atWork(ctx, e, many) },
		func() ([]figure, error) { return inTurn(ctx, e, thick) },
		func() ([]figure, error) { return ownProcess(ctx, e, killed) },
	} {
		more, err := part()
		if err != nil {
			return "", err
		}
		figures = append(figures, more...)
	}
	return table(1, "", figures), nil
}

// employ brings up agents of a kind, and returns their session keys.
func (s *supervised) employ(ctx context.Context, n int, kind, backend string) (sessions []string, err error) {
	first := len(s.names)
	for i := range n {
		s.names = append(s.names, fmt.Sprintf("%s%d", kind, first+i))
	}
	sessions = make([]string, n)
	err = atOnce(n, 8, func(i int) error {
		got, err := s.client.Spawn(ctx, team.SpawnRequest{Name: s.names[first+i], Exact: true, Spec: team.MemberSpec{
			Agent: kind, Backend: backend, Restart: team.RestartOnFailure, WorktreeMode: "none", Cwd: s.layout.Dir}})
		sessions[i] = got.Member.SessionKey
		return err
	})
	return sessions, err
}

// allReady waits until every member but the lead is ready: then each agent has a session.
func allReady(ctx context.Context, led *ledger.Ledger) error {
	for {
		members, err := led.Members(ctx, false)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(members, func(m ledger.Member) bool { return m.Name != team.LeadName && !m.Ready }) {
			return nil
		}
		if err := pause.For(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// atWork is agents in one supervisor, each with ten turns of three calls, beside as many commits.
func atWork(ctx context.Context, e env, n int) (_ []figure, err error) {
	s, err := newSupervised(ctx, e, "w", inproc.Name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	if err := quiet(ctx, s.env, s.bin, "settings", "lane.teammate", fmt.Sprint(n)); err != nil {
		return nil, err
	}
	sessions, err := s.employ(ctx, n, team.AgentLLM, inproc.Name)
	if err != nil {
		return nil, err
	}
	led, closeDB, err := s.open(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	if err := allReady(ctx, led); err != nil {
		return nil, err
	}
	changes, stop, err := led.Changes(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	text := "@@call TaskList {\"status\":\"pending\"}\n@@call TaskList {\"status\":\"completed\"}\n@@call TaskList {\"status\":\"failed\"}\n@@say done" // three calls: an agent is told when it repeats one
	began := time.Now()
	if err := drive(ctx, led, changes, sessions, text); err != nil {
		return nil, err
	}
	took := time.Since(began)
	if err := complete(ctx, led, sessions); err != nil {
		return nil, err
	}
	commits := n * linesEach * commitsOf
	floor, err := commitsBy(ctx, e, n, commits/n)
	if err != nil {
		return nil, err
	}
	rate := func(d time.Duration) float64 { return float64(commits) / d.Seconds() }
	return []figure{{what: fmt.Sprintf("%d agents, %d turns of %d calls each", n, linesEach, callsOfLine), floor: fmt.Sprintf("%d commits", commits),
		bare: rate(floor), ours: rate(took), unit: "commits/s", goal: ratioAtLeast(goalAtWork)}}, nil
}

// drive says the line to each session as often as it is to hear it, once its last turn is over, and
// returns when all turns are.
func drive(ctx context.Context, led *ledger.Ledger, changes <-chan struct{}, sessions []string, text string) error {
	said := map[string]int{}
	for {
		jobs, err := led.TurnJobs(ctx, ledger.JobFilter{Open: true})
		if err != nil {
			return err
		}
		busy := map[string]bool{}
		for _, j := range jobs {
			busy[j.Session] = true
		}
		var next []string
		for _, one := range sessions {
			if !busy[one] && said[one] < linesEach {
				said[one]++
				next = append(next, one)
			}
		}
		if len(next)+len(jobs) == 0 {
			return nil
		}
		err = atOnce(len(next), max(len(next), 1), func(i int) error {
			_, err := led.TakeIn(ctx, ledger.TakeIn{Session: next[i], Inputs: []ledger.Input{agent.PersonLine(text, nil)}})
			return err
		})
		if err != nil {
			return err
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// complete checks that each transcript has everything once.
func complete(ctx context.Context, led *ledger.Ledger, sessions []string) error {
	want := map[ledger.EntryKind]int{ledger.EntryUser: linesEach, ledger.EntryAssistant: linesEach * (callsOfLine + 1), ledger.EntryToolResult: linesEach * callsOfLine}
	for _, one := range sessions {
		list, err := led.Entries(ctx, one, 0, 0)
		if err != nil {
			return err
		}
		got := map[ledger.EntryKind]int{}
		for _, entry := range list {
			got[entry.Kind]++
		}
		for kind, n := range want {
			if got[kind] != n {
				return fmt.Errorf("%s has %d entries of kind %s, not %d", one, got[kind], kind, n)
			}
		}
	}
	return nil
}

// commitsBy is how long n goroutines take for so many commits each.
func commitsBy(ctx context.Context, e env, n, each int) (took time.Duration, err error) {
	w, err := newWorld(ctx, e, "c", 0)
	if err != nil {
		return 0, err
	}
	led, closeDB, err := w.open(ctx, true)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	data, err := json.Marshal(map[string]string{"text": strings.Repeat("x", 400)})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	err = atOnce(n, n, func(int) error {
		for range each {
			if _, err := led.Event(ctx, ledger.Event{Who: "bench", What: team.EventRoleBypassed, ID: "x", Data: data}); err != nil {
				return err
			}
		}
		return nil
	})
	return time.Since(began), err
}

// inTurn is what agents have in memory whose model is asked with a long prompt.
func inTurn(ctx context.Context, e env, n int) (_ []figure, err error) {
	s, err := newSupervised(ctx, e, "t", inproc.Name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	sessions, err := s.employ(ctx, n, team.AgentLLM, inproc.Name)
	if err != nil {
		return nil, err
	}
	led, closeDB, err := s.open(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	if err := errors.Join(allReady(ctx, led), pause.For(ctx, 5*time.Second)); err != nil {
		return nil, err
	}
	idle, err := memoryOf(s.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	const piece = 32 << 10
	var inputs []ledger.Input
	for range int(longPromptMB * (1 << 20) / piece) {
		inputs = append(inputs, agent.PersonLine(strings.Repeat("something that was said. ", piece/25), nil))
	}
	inputs = append(inputs, agent.PersonLine("@@sleep 10m\n@@say late", nil))
	for _, one := range sessions {
		if _, err := led.TakeIn(ctx, ledger.TakeIn{Session: one, Inputs: inputs}); err != nil {
			return nil, err
		}
	}
	for running := 0; running < n; {
		if err := pause.For(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
		jobs, err := led.TurnJobs(ctx, ledger.JobFilter{Open: true})
		if err != nil {
			return nil, err
		}
		running = 0
		for _, j := range jobs {
			if j.State == team.TurnRunning {
				running++
			}
		}
	}
	if err := pause.For(ctx, 5*time.Second); err != nil {
		return nil, err
	}
	busy, err := memoryOf(s.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	each := (busy.private - idle.private) / float64(n)
	return []figure{{what: "each of these in a turn, private", floor: "its prompt", bare: longPromptMB, ours: each, unit: "MB", goal: atMost(freeTurnMB + goalPrompt*longPromptMB)}}, nil
}

// ownProcess is an agent in a process of its own beside a worker there: at rest, and from the start of
// its process to its first request after a kill in mid-turn.
func ownProcess(ctx context.Context, e env, n int) (_ []figure, err error) {
	v, err := fakemodel.Start("", nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	s, err := newSupervised(ctx, e, "o", pty.Name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	config := "model: fake/m\nproviders:\n  fake: {api: messages, baseURL: \"" + v.URL + "\"}\n"
	if err := os.WriteFile(filepath.Join(s.layout.Home.Dir, "config.yaml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	led, closeDB, err := s.open(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	if _, err := s.employ(ctx, n, "worker", pty.Name); err != nil {
		return nil, err
	}
	workers := s.names
	sessions, err := s.employ(ctx, n, team.AgentLLM, pty.Name)
	if err != nil {
		return nil, err
	}
	thinks := s.names[n:]
	if err := errors.Join(allReady(ctx, led), pause.For(ctx, 5*time.Second)); err != nil {
		return nil, err
	}
	workerMB, thinkMB, err := s.privateOf(workers, thinks)
	if err != nil {
		return nil, err
	}
	starts, err := s.untilReady(ctx, led, workers)
	if err != nil {
		return nil, err
	}
	var back []time.Duration
	for i, one := range sessions {
		mark := "resumed-" + thinks[i]
		if _, err := led.TakeIn(ctx, ledger.TakeIn{Session: one, Inputs: []ledger.Input{agent.PersonLine(mark+"\n@@sleep 10m\n@@say late", nil)}}); err != nil {
			return nil, err
		}
		first, err := v.Wait(ctx, func(r fakemodel.Request) bool { return strings.Contains(r.Body, mark) })
		if err != nil {
			return nil, err
		}
		before, err := bundle.ReadProc(s.layout.Bundle(thinks[i]), "")
		if err != nil {
			return nil, err
		}
		if err := unix.Kill(before.Agent.PID, unix.SIGKILL); err != nil {
			return nil, err
		}
		again, err := v.Wait(ctx, func(r fakemodel.Request) bool { return r.Seq > first.Seq && strings.Contains(r.Body, mark) })
		if err != nil {
			return nil, err
		}
		p, err := bundle.ReadProc(s.layout.Bundle(thinks[i]), "")
		if err != nil {
			return nil, err
		}
		if p.Generation == before.Generation {
			return nil, fmt.Errorf("%s asked again without a new start", thinks[i])
		}
		back = append(back, again.At.Sub(p.StartedAt))
	}
	return []figure{
		{what: "each at rest in a process of its own, private", floor: "a worker's", bare: workerMB, ours: thinkMB, unit: "MB", goal: ratioAtMost(goalOwn)},
		{what: "start after a kill to the request", floor: "a worker's, to ready", bare: inMillis(starts), ours: inMillis(back), unit: "ms", goal: ratioAtMost(goalResume)},
	}, nil
}

// privateOf is the middle private memory of two kinds of agents.
func (s *supervised) privateOf(a, b []string) (one, other float64, err error) {
	var of [2]float64
	for i, names := range [][]string{a, b} {
		var private []float64
		for _, n := range names {
			p, err := bundle.ReadProc(s.layout.Bundle(n), "")
			if err != nil {
				return 0, 0, err
			}
			m, err := memoryOf(p.Agent.PID)
			if err != nil {
				return 0, 0, err
			}
			private = append(private, m.private)
		}
		of[i] = middle(private)
	}
	return of[0], of[1], nil
}

// untilReady starts agents anew, one after the other, and is how long each took until it was ready.
func (s *supervised) untilReady(ctx context.Context, led *ledger.Ledger, names []string) (out []time.Duration, err error) {
	for _, name := range names {
		before, err := bundle.ReadProc(s.layout.Bundle(name), "")
		if err != nil {
			return nil, err
		}
		if err := unix.Kill(before.Agent.PID, unix.SIGKILL); err != nil {
			return nil, err
		}
		var p backends.Proc
		for p.Generation == "" || p.Generation == before.Generation {
			if err := pause.For(ctx, 20*time.Millisecond); err != nil {
				return nil, err
			}
			if p, err = bundle.ReadProc(s.layout.Bundle(name), ""); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
		}
		for ready := false; !ready; {
			if err := pause.For(ctx, 20*time.Millisecond); err != nil {
				return nil, err
			}
			events, err := led.Events(ctx, 0, 0, ledger.EventFilter{What: team.EventMemberReady, ID: name})
			if err != nil {
				return nil, err
			}
			for _, e := range events {
				at := time.UnixMilli(e.At)
				if e.After == "ready" && !at.Before(p.StartedAt.Truncate(time.Millisecond)) {
					out, ready = append(out, at.Sub(p.StartedAt)), true
					break
				}
			}
		}
	}
	return out, nil
}

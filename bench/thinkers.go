package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/teamctl/teamctl/backends/inproc"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/team"
)

// thinkers: what idle agents with a model cost, in the process of their supervisor, beside idle
// workers there.
var thinkers = benchmark{name: "thinkers", title: "Idle agents with a model, in-process", run: runThinkers}

const (
	idleThinkers  = 50
	goalIdleCPU   = 1.1 // x that of workers
	goalIdleShare = 1.5 // x the memory of a worker
)

// rested is what agents cost that have nothing to do.
type rested struct {
	private float64 // MB, of each
	percent float64 // of one core, all of them
	wakes   float64 // a second
}

func runThinkers(ctx context.Context, e env) (string, error) {
	span := time.Minute
	if e.quick {
		span = 10 * time.Second
	}
	workers, err := restOf(ctx, e, "worker", span)
	if err != nil {
		return "", err
	}
	thinks, err := restOf(ctx, e, team.AgentLLM, span)
	if err != nil {
		return "", err
	}
	return table(1, fmt.Sprintf("%d of each in the supervisor, over %s. Memory is what is private with them less without, by one.", idleThinkers, span), []figure{
		{what: "each, private", floor: "a worker", bare: workers.private * 1e3, ours: thinks.private * 1e3, unit: "kB", goal: ratioAtMost(goalIdleShare)},
		{what: "all, of a core", floor: "workers", bare: workers.percent, ours: thinks.percent, unit: "%", goal: ratioAtMost(goalIdleCPU)},
		{what: "wake-ups a second", floor: "workers", bare: workers.wakes, ours: thinks.wakes, unit: ""},
	}), nil
}

func restOf(ctx context.Context, e env, kind string, span time.Duration) (out rested, err error) {
	s, err := newSupervised(ctx, e, "i"+kind, inproc.Name)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	pid := s.cmd.Process.Pid
	if err := pause.For(ctx, 2*time.Second); err != nil {
		return out, err
	}
	without, err := memoryOf(pid)
	if err != nil {
		return out, err
	}
	for i := range idleThinkers {
		name := fmt.Sprintf("a%d", i)
		_, err := s.client.Spawn(ctx, team.SpawnRequest{Name: name, Exact: true, Spec: team.MemberSpec{
			Agent: kind, Backend: inproc.Name, Restart: team.RestartNever, WorktreeMode: "none", Cwd: s.layout.Dir}})
		if err != nil {
			return out, err
		}
		s.names = append(s.names, name)
	}
	if err := pause.For(ctx, 5*time.Second); err != nil { // ready, settled, told
		return out, err
	}
	with, err := memoryOf(pid)
	if err != nil {
		return out, err
	}
	before, err := activityOf([]int{pid})
	if err != nil {
		return out, err
	}
	if err := pause.For(ctx, span); err != nil {
		return out, err
	}
	after, err := activityOf([]int{pid})
	if err != nil {
		return out, err
	}
	d := after.since(before)
	return rested{
		private: (with.private - without.private) / idleThinkers,
		percent: 100 * d.busy.Seconds() / span.Seconds(),
		wakes:   float64(d.wakes) / span.Seconds(),
	}, nil
}

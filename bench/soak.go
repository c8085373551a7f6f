package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/team"
)

// soak: a task and a message every 150 ms for twenty minutes, and nobody reads.
var soak = benchmark{name: "soak", title: "Small tasks for twenty minutes", run: runSoak, note: soakNote}

const soakNote = "One worker runs the tasks, each of which is told to the lead; `board` is on a terminal. The messages are notices, which count " +
	"against no cap: a new run every two minutes would have the ledger copied, which has a section of its own. The first 75 seconds are " +
	"left out: in them everything starts, and the first copy of the ledger is made."

const (
	goalSoak    = 1.2
	soakEvery   = 150 * time.Millisecond
	soakWarm    = 75 * time.Second
	soakSpan    = 20 * time.Minute
	soakQuick   = 3 * time.Minute
	soakWindow  = time.Minute
	goalFlatMem = 1.2
)

// soakMinute is what one window has cost.
type soakMinute struct {
	done int
	cpu  []time.Duration // by process
	mem  []float64       // private MB at its end
}

func runSoak(ctx context.Context, e env) (_ string, err error) {
	span := soakSpan
	if e.quick {
		span = soakQuick
	}
	c, err := newCrew(ctx, e, "s", func(*world) error { return nil })
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.close(ctx)) }()
	b, err := c.watch(ctx, "board")
	if err != nil {
		return "", err
	}
	names := []string{"the supervisor", "the worker", "board"}
	pids := [][]int{c.pids[:1], c.pids[1:], {b.cmd.Process.Pid}}
	mail := mail.Mailer{Layout: c.layout, Ledger: c.led}
	begin := time.Now()
	tick := time.NewTicker(soakEvery)
	defer tick.Stop()
	var minutes []soakMinute
	var from soakMinute
	sent, next := 0, begin.Add(soakWarm)
	for time.Since(begin) < soakWarm+span+time.Second {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if _, err := c.led.CreateTasks(ctx, []ledger.NewTask{smallTask}, team.LeadName); err != nil {
			return "", err
		}
		sent++
		if _, _, err := mail.Post(ctx, ledger.NewMessage{Kind: team.KindTaskCompleted, From: memberName(0), To: team.LeadName, Summary: "a notice",
			Text: fmt.Sprintf(`{"type":"task_completed","from":"m0","taskId":"%d","taskSubject":"elsewhere"}`, sent)}); err != nil {
			return "", err
		}
		if time.Now().Before(next) {
			continue
		}
		now, err := c.minute(ctx, pids)
		if err != nil {
			return "", err
		}
		if from.cpu != nil {
			m := soakMinute{done: now.done - from.done, cpu: make([]time.Duration, len(pids)), mem: now.mem}
			for i := range pids {
				m.cpu[i] = now.cpu[i] - from.cpu[i]
			}
			minutes = append(minutes, m)
			fmt.Fprintf(e.log, "minute %d: %d tasks, %v, %.1f MB\n", len(minutes), m.done, m.cpu, m.mem)
		}
		from, next = now, time.Now().Add(soakWindow)
	}
	if len(minutes) < 2 {
		return "", errors.New("too short")
	}
	counts, err := c.led.Counts(ctx)
	if err != nil {
		return "", err
	}
	first, last := minutes[0], minutes[len(minutes)-1]
	var figures []figure
	for i, name := range names {
		cost := func(m soakMinute) float64 { return millis(m.cpu[i]) / float64(max(m.done, 1)) }
		figures = append(figures,
			figure{name + ", processor for a task and a message", "the first minute", cost(first), cost(last), "ms", ratioAtMost(goalSoak)},
			figure{name + ", private memory", "the first minute", first.mem[i], last.mem[i], "MB", ratioAtMost(goalFlatMem)})
	}
	return table(len(minutes), fmt.Sprintf("%d minutes; %d tasks, %d of them open at the end, and %d messages.", len(minutes), sent, counts.Total()-counts.Completed, sent), figures), nil
}

// minute reads what was done and used so far.
func (c *crew) minute(ctx context.Context, pids [][]int) (m soakMinute, err error) {
	n, err := c.led.Counts(ctx)
	if err != nil {
		return m, err
	}
	m.done = n.Completed
	if m.cpu, err = each(pids); err != nil {
		return m, err
	}
	for _, p := range pids {
		use, err := memoryOf(p[0])
		if err != nil {
			return m, err
		}
		m.mem = append(m.mem, use.private)
	}
	return m, nil
}

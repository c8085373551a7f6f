package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/agentlab"
)

// latency: from the post of a message to the request to the model that has it in its
// body, for each CLI, while it is idle and in the middle of a turn, against the same
// text typed into the same agent at the same moment.
var latency = benchmark{name: "latency", title: "Post to the model's request", run: runLatency, note: latencyNote}

const latencyNote = `Idle: from before the post, or before the paste, to the moment at which the model has read the request with the text. Mid-turn: the message is posted, or typed, while a tool runs; the time is what passes between that tool's end and the request, whichever that was: what the way costs at the boundary that the capabilities promise. ` +
	`Who types is tmux, told in one go to paste and to press Enter, with no look at the screen before, between or after: what teamctl may never do. The real programs take an Enter for a part of the paste when it follows at once, so it follows there after the pause of their rules (internal/adapter/rules). ` +
	`Both go into the same agent, whose hooks run for a typed line too. An idle Gemini CLI can only be woken by typing: its row holds the looks at the screen that make typing safe.`

// latencyKind says how the CLIs are run: stand-ins, or the real programs.
type latencyKind struct {
	what    string
	version bool          // their versions are worth a word
	cache   string        // of their programs
	base    string        // where the home is made
	busy    time.Duration // how long the tool of a turn runs on after the post: mail is there long before
	settled time.Duration // idle for so long is at rest
	paused  bool          // Enter waits as the rules say
	limit   time.Duration // of every wait
}

func runLatency(ctx context.Context, e env) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	fakes := latencyKind{
		what: "stand-ins", cache: filepath.Join(e.dir, "cache"), base: e.dir,
		busy: time.Second, settled: 300 * time.Millisecond, limit: 2 * time.Minute,
	}
	standIns, err := agentlab.StandIns(self, fakes.cache)
	if err != nil {
		return "", err
	}
	text, err := latencyTable(ctx, e, fakes, standIns)
	if err != nil || e.clients == "" {
		return text, err
	}
	real := latencyKind{
		what: "real programs", version: true, cache: e.clients, base: filepath.Dir(e.clients),
		busy: 3 * time.Second, settled: 1500 * time.Millisecond, paused: true, limit: 5 * time.Minute,
	}
	more, err := latencyTable(ctx, e, real, agentlab.Clients())
	return text + "\n" + more, err
}

func latencyTable(ctx context.Context, e env, k latencyKind, clients []agentlab.Client) (string, error) {
	idle, mid := e.rounds, e.rounds/2
	if e.quick {
		idle, mid = e.rounds/4, e.rounds/8
	}
	var figures []figure
	for _, c := range clients {
		s, err := measureLatency(ctx, e, k, c, idle, mid)
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.Name, err)
		}
		name := c.Name
		if k.version {
			name += " " + c.Version
		}
		figures = append(figures, s.figures(name)...)
	}
	return table(idle, fmt.Sprintf("The %s; %d rounds in mid-turn.", k.what, mid), figures), nil
}

// latencies are what one CLI took.
type latencies struct {
	way   string // by which mail gets in
	pause time.Duration
	idle  struct{ ours, typed []time.Duration }
	mid   struct{ ours, typed, none boundary }
}

// boundary is what passed between the end of a tool and the next request, or the one
// with the text, and how many of those came only after the turn.
type boundary struct {
	late []time.Duration
	ends int
}

func (b boundary) where() string {
	switch b.ends {
	case 0:
		return "at the tool boundary"
	case len(b.late):
		return "after the turn"
	}
	return fmt.Sprintf("after the turn in %d of %d", b.ends, len(b.late))
}

// figures are the rows of one CLI.
func (l latencies) figures(name string) []figure {
	typed := "paste, Enter"
	if l.pause > 0 {
		typed = fmt.Sprintf("paste, %d ms, Enter", l.pause.Milliseconds())
	}
	of := func(t []time.Duration, q float64) float64 { return float64(quantile(t, q)) / float64(time.Millisecond) }
	var out []figure
	for q, at := range map[string]float64{"p50": 0.5, "p90": 0.9} {
		out = append(out,
			figure{what: fmt.Sprintf("%s, %s, idle, %s", name, l.way, q), floor: typed, bare: of(l.idle.typed, at), ours: of(l.idle.ours, at), unit: "ms"},
			figure{
				what: fmt.Sprintf("%s, %s, mid-turn, %s, %s", name, l.way, l.mid.ours.where(), q), floor: "typed, " + l.mid.typed.where(),
				bare: of(l.mid.typed.late, at), ours: of(l.mid.ours.late, at), unit: "ms",
			},
			figure{what: fmt.Sprintf("%s, tool boundary without mail, %s", name, q), ours: of(l.mid.none.late, at), unit: "ms"})
	}
	slices.SortFunc(out, func(a, b figure) int { return cmp.Compare(a.what, b.what) })
	return out
}

// measureLatency runs one CLI in a home of its own. What is compared is measured in
// turns, in another order each round.
func measureLatency(ctx context.Context, e env, k latencyKind, c agentlab.Client, idle, mid int) (s latencies, err error) {
	fmt.Fprintf(e.log, "%s: %s\n", k.what, c.Name)
	r, err := newLatencyRig(ctx, e, k, c)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	s.way, s.pause = r.way, r.pause
	for i := range idle {
		if err := r.fresh(ctx, i); err != nil {
			return s, err
		}
		for j := range 2 {
			post, to := r.mail, &s.idle.ours
			if (i+j)%2 == 1 {
				post, to = r.typed, &s.idle.typed
			}
			took, err := r.whileIdle(ctx, post)
			if err != nil {
				return s, err
			}
			*to = append(*to, took)
		}
	}
	for i := range mid {
		if err := r.fresh(ctx, i); err != nil {
			return s, err
		}
		ways := []struct {
			post poster
			to   *boundary
		}{{r.mail, &s.mid.ours}, {r.typed, &s.mid.typed}, {nil, &s.mid.none}}
		for j := range ways {
			w := ways[(i+j)%len(ways)]
			late, end, err := r.inTurn(ctx, w.post)
			if err != nil {
				return s, err
			}
			w.to.late = append(w.to.late, late)
			if end {
				w.to.ends++
			}
		}
	}
	return s, nil
}

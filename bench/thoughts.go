package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/agent"
	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/messages"
	"github.com/teamctl/teamctl/agent/model/wire"
	"github.com/teamctl/teamctl/internal/fakemodel"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// thoughts: what the built-in agent adds to its model, to its tools, and between its turns.
var thoughts = benchmark{name: "thoughts", title: "Between an agent, its model and its tools", run: runThoughts, note: thoughtsNote}

const thoughtsNote = "A round of a tool is two commits: the answer with the begin of its call, and the result. Between the end of a call and the request that a message has steered to is one, of the result, the steer and the claim; " +
	"between the answer of a child and its parent's request one, of the end, the announce and the claim. The mailbox and the backlog are read before the steer, and the member, its spec and the transcript before a request. " +
	"What the first delta takes beyond the bare client is before the request arrives: the conversation is made into a request anew each time, and has 90 kB in the last of 40 rounds; from its arrival on both take the same."

const (
	goalStreamed = 1.15 // x the bare request and three commits
	goalRound    = 1.25 // x the bare command and two commits
	goalDelta    = 2.0  // ms more than the bare client
	goalDeltaP99 = 10.0
	goalNext     = 3.0  // x a commit
	goalWithin   = 0.95 // of a request begins the next one of its turn
	goalAcross   = 0.9  // and of the next turn

	deltas = 200
)

// screen notes when something was first written to it.
type screen struct {
	mu sync.Mutex
	at time.Time
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() && strings.Contains(string(p), "yyy") && !strings.Contains(string(p), "@@") { // of the answer
		s.at = time.Now()
	}
	return len(p), nil
}

func (s *screen) first() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.at
	s.at = time.Time{}
	return at
}

func runThoughts(ctx context.Context, e env) (_ string, err error) {
	w, err := newWorld(ctx, e, "thoughts", 3)
	if err != nil {
		return "", err
	}
	v, err := fakemodel.Start("", nil)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	v.Strict() // it streams in pieces then
	var figures []figure
	for _, part := range []func(context.Context, env, *world, *fakemodel.Server) ([]figure, error){streamed, toolRounds, nextRequests, prefixes} {
		more, err := part(ctx, e, w, v)
		if err != nil {
			return "", err
		}
		figures = append(figures, more...)
	}
	return table(e.rounds, fmt.Sprintf("The test server runs in the same process, and streams %d deltas.", deltas), figures), nil
}

func inMillis(d []time.Duration) float64 { return float64(median(d)) / 1e6 }

// streamed is a turn on the test server, beside its bare request.
func streamed(ctx context.Context, e env, w *world, v *fakemodel.Server) (_ []figure, err error) {
	out := &screen{}
	s, err := w.speak(ctx, 0, func(s *speaker) {
		s.model.Provider = messages.New(wire.Endpoint{Name: "bench", BaseURL: v.URL})
		s.out, s.tools = out, []llm.Tool{shellTool(nil)} // without a tool it is answered in a word
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	text := "@@say " + strings.Repeat("y", 5*deltas)
	var whole, floor, first, bareFirst []time.Duration
	for range e.rounds {
		if err := pause.For(ctx, rest); err != nil {
			return nil, err
		}
		out.first()
		done, _, err := s.turn(ctx, text)
		if err != nil {
			return nil, err
		}
		shown := out.first()
		if shown.IsZero() {
			return nil, errors.New("the answer is not on the screen")
		}
		whole, first = append(whole, done), append(first, shown.Sub(s.model.when()))
		asked := v.Requests()
		if err := pause.For(ctx, rest); err != nil {
			return nil, err
		}
		all, delta, err := barePost(ctx, v.URL, asked[len(asked)-1].Body)
		if err != nil {
			return nil, err
		}
		c, err := s.commits(ctx, 3)
		if err != nil {
			return nil, err
		}
		floor, bareFirst = append(floor, all+c), append(bareFirst, delta)
	}
	more := inMillis(first) - inMillis(bareFirst)
	return []figure{
		{what: fmt.Sprintf("a turn of %d deltas, said to durable", deltas), floor: "bare request and three commits", bare: inMillis(floor), ours: inMillis(whole), unit: "ms", goal: ratioAtMost(goalStreamed)},
		{what: "first delta on the screen", floor: "at a bare client", bare: inMillis(bareFirst), ours: inMillis(first), unit: "ms"},
		{what: "of it more than the bare client", ours: more, unit: "ms", goal: atMost(goalDelta)},
		{what: "first delta on the screen, p99", floor: "at a bare client", bare: millis(quantile(bareFirst, 0.99)), ours: millis(quantile(first, 0.99)), unit: "ms"},
		{what: "of it more than the bare client, p99", ours: millis(quantile(first, 0.99)) - millis(quantile(bareFirst, 0.99)), unit: "ms", goal: atMost(goalDeltaP99)},
	}, nil
}

// barePost asks with a body; it returns how long the whole answer took, and its first delta.
func barePost(ctx context.Context, url, body string) (whole, delta time.Duration, err error) {
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages", strings.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if res.StatusCode != http.StatusOK {
		return 0, 0, fmt.Errorf("the bare request: %s", res.Status)
	}
	r := bufio.NewReader(res.Body)
	for {
		line, err := r.ReadString('\n')
		if delta == 0 && strings.Contains(line, "text_delta") {
			delta = time.Since(began)
		}
		if errors.Is(err, io.EOF) {
			return time.Since(began), delta, nil
		}
		if err != nil {
			return 0, 0, err
		}
	}
}

// shellTool runs true.
func shellTool(do func(context.Context) error) llm.Tool {
	return llm.Tool{Tool: model.Tool{Name: "work", Description: "work", Schema: []byte(`{"type":"object"}`)},
		Run: func(ctx context.Context, _ llm.Call) (llm.Result, error) { return llm.Result{Text: "done"}, do(ctx) }}
}

// toolRounds is one more round of a tool that runs true.
func toolRounds(ctx context.Context, e env, w *world, _ *fakemodel.Server) (_ []figure, err error) {
	command := func(ctx context.Context) error { return exec.CommandContext(ctx, "bash", "-c", "true").Run() }
	s, err := w.speak(ctx, 1, func(s *speaker) { s.tools = []llm.Tool{shellTool(command)} })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	var without, with, floor []time.Duration
	for range e.rounds {
		if err := pause.For(ctx, rest); err != nil {
			return nil, err
		}
		d, _, err := s.turn(ctx, oneLine)
		if err != nil {
			return nil, err
		}
		without = append(without, d)
		if err := pause.For(ctx, rest); err != nil {
			return nil, err
		}
		if d, _, err = s.turn(ctx, "@@call work {}\n"+oneLine); err != nil {
			return nil, err
		}
		with = append(with, d)
		began := time.Now()
		if err := command(ctx); err != nil {
			return nil, err
		}
		bare := time.Since(began)
		c, err := s.commits(ctx, 2)
		if err != nil {
			return nil, err
		}
		floor = append(floor, bare+c)
	}
	return []figure{{what: "one more round of a tool that runs true", floor: "bash and two commits", bare: inMillis(floor), ours: inMillis(with) - inMillis(without), unit: "ms", goal: ratioAtMost(goalRound)}}, nil
}

// nextRequests are how long it takes from what ends a turn, or a child, to the next request.
func nextRequests(ctx context.Context, e env, w *world, _ *fakemodel.Server) (_ []figure, err error) {
	var s *speaker
	var mu sync.Mutex
	var ended time.Time
	s, err = w.speak(ctx, 2, func(s *speaker) {
		s.tools = []llm.Tool{shellTool(func(ctx context.Context) error {
			err := s.say(ctx, "@@say steered")
			mu.Lock()
			ended = time.Now()
			mu.Unlock()
			return err
		})}
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	var steer, announce, floor []time.Duration
	for i := range e.rounds {
		if err := pause.For(ctx, rest); err != nil {
			return nil, err
		}
		if _, _, err := s.turn(ctx, "@@call work {}\n@@say away"); err != nil {
			return nil, err
		}
		s.model.mu.Lock()
		mu.Lock()
		steer = append(steer, s.model.before.Sub(ended)) // the last one resumes
		mu.Unlock()
		s.model.mu.Unlock()
		if err := pause.For(ctx, rest); err != nil {
			return nil, err
		}
		kid, err := s.led.OpenSession(ctx, ledger.NewSession{Key: fmt.Sprintf("agent:default:subagent:%d", i), Owner: s.session})
		if err == nil {
			_, err = s.led.TakeIn(ctx, ledger.TakeIn{Session: kid.Key, Hop: 1, Inputs: []ledger.Input{agent.PersonLine("@@say found", nil)}})
		}
		if err == nil {
			err = s.rests(ctx)
		}
		if err == nil {
			err = s.led.CloseSession(ctx, kid.Key, "done")
		}
		if err != nil {
			return nil, err
		}
		s.child.mu.Lock()
		announce = append(announce, s.model.when().Sub(s.child.answered))
		s.child.mu.Unlock()
		c, err := s.commits(ctx, 1)
		if err != nil {
			return nil, err
		}
		floor = append(floor, c)
	}
	return []figure{
		{what: "from the end of a call to the request of what steers", floor: "a commit", bare: inMillis(floor), ours: inMillis(steer), unit: "ms", goal: ratioAtMost(goalNext)},
		{what: "from the answer of a child to its parent's request", floor: "a commit", bare: inMillis(floor), ours: inMillis(announce), unit: "ms", goal: ratioAtMost(goalNext)},
	}, nil
}

// prefixes are how much of a request is the beginning of the next one, byte for byte, in a conversation
// with calls and lines that steer.
func prefixes(ctx context.Context, _ env, w *world, v *fakemodel.Server) (_ []figure, err error) {
	const turns, text = 14, 5000 // 50,000 tokens of four bytes
	calls := 0
	s, err := w.speak(ctx, 0, func(s *speaker) {
		s.model.Provider = messages.New(wire.Endpoint{Name: "bench", BaseURL: v.URL})
		s.tools = []llm.Tool{shellTool(nil)}
		s.tools[0].Run = func(ctx context.Context, _ llm.Call) (llm.Result, error) {
			var err error
			if calls++; calls%5 == 0 {
				err = s.say(ctx, "this first\n@@say at once")
			}
			return llm.Result{Text: fmt.Sprintf("%d: %s", calls, strings.Repeat("what was read ", text/14))}, err
		}
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	from := len(v.Requests())
	for range turns {
		if _, _, err := s.turn(ctx, "@@call work {}\n@@call work {}\n@@call work {}\n@@say read"); err != nil {
			return nil, err
		}
	}
	asked := v.Requests()[from:]
	var within, across []float64
	for i := 1; i < min(len(asked), len(s.model.turns)); i++ {
		before, now := asked[i-1].Body, asked[i].Body
		n := 0
		for n < min(len(before), len(now)) && before[n] == now[n] {
			n++
		}
		share := float64(n) / float64(len(before))
		if s.model.turns[i] == s.model.turns[i-1] {
			within = append(within, share)
		} else {
			across = append(across, share)
		}
	}
	if len(within) == 0 || len(across) == 0 {
		return nil, team.Errorf(team.CodeInternal, "%d requests of %d turns", len(asked), turns)
	}
	last := float64(len(asked[len(asked)-1].Body)) / 1e3
	return []figure{
		{what: fmt.Sprintf("beginning of the next request of a turn, of %.0f kB at the end", last), floor: "the whole request", bare: 1, ours: middle(within), unit: "", goal: ratioAtLeast(goalWithin)},
		{what: "beginning of the next turn's request", floor: "the whole request", bare: 1, ours: middle(across), unit: "", goal: ratioAtLeast(goalAcross)},
	}, nil
}

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/agent"
	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/script"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// turns: the built-in agent with the script model, whose answers take no time, against as many durable
// commits of the same bytes.
var turns = benchmark{name: "turns", title: "Turns of the built-in agent", run: runTurns, note: turnsNote}

const turnsNote = "A turn without tools is three commits: the line with its turn, the claim, and the answer with its end. The claim writes the member's activity, too. Before and between them the watch on the ledger wakes the agent."

const (
	goalTurn    = 1.5 // x three commits
	goalLong    = 1.3 // x ten entries
	longHistory = 100_000
)

// asked is a model, which notes when it is asked, and when it has answered.
type asked struct {
	model.Provider
	mu         sync.Mutex
	at, before time.Time // when it was asked the last time, and the time before
	answered   time.Time
	turn       int   // of the agent
	turns      []int // of each request
}

// Stream implements model.Provider.
func (a *asked) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Answer, error) {
	a.mu.Lock()
	a.before, a.at, a.turns = a.at, time.Now(), append(a.turns, a.turn)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.answered = time.Now()
		a.mu.Unlock()
	}()
	return a.Provider.Stream(ctx, r, on)
}

func (a *asked) when() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}

// speaker is a member with its agent in this process. Its own session has model, a child of it has
// child.
type speaker struct {
	led          *ledger.Ledger
	session      string
	model, child *asked
	tools        []llm.Tool
	out          io.Writer
	changes      <-chan struct{}
	stop         func() error
}

// speak starts the agent of a member of the world, whose model is the script; change is made to it
// before.
func (w *world) speak(ctx context.Context, number int, change func(*speaker)) (*speaker, error) {
	led, closeDB, err := w.open(ctx, true)
	if err != nil {
		return nil, err
	}
	box, err := inbox.Open(w.layout.Inboxes(), w.layout.Locks(), memberName(number))
	if err != nil {
		return nil, errors.Join(err, closeDB())
	}
	changes, stopWatch, err := led.Changes(ctx)
	if err != nil {
		return nil, errors.Join(err, closeDB())
	}
	s := &speaker{led: led, session: memberSession(number), model: &asked{Provider: script.Provider{}}, child: &asked{Provider: script.Provider{}}, out: io.Discard, changes: changes}
	if change != nil {
		change(s)
	}
	c, cancel := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- agent.Serve(c, agent.Identity{
			AgentID: team.AgentID(memberName(number), "b"), Name: memberName(number), Team: "b", Session: s.session, Generation: team.NewUUID(), Role: team.RoleExecutor,
		}, agent.Env{
			Ledger: led, Box: box, Out: s.out, Ready: sync.OnceFunc(func() { close(ready) }),
			Post: func(ctx context.Context, m ledger.NewMessage) (ledger.Message, error) {
				m.From = memberName(number)
				posted, _, err := led.Post(ctx, m)
				return posted, err
			},
		}, agent.ServeIn{Sessions: led, Turns: &llm.Runner{Sessions: led, Resolve: s.resolve}})
	}()
	s.stop = func() error {
		cancel()
		err := <-ended
		stopWatch()
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return errors.Join(err, closeDB())
	}
	select {
	case <-ready:
		return s, nil
	case err := <-ended:
		ended <- err
		return nil, errors.Join(err, s.stop())
	}
}

func (s *speaker) resolve(_ context.Context, session ledger.Session, _ ledger.ClaimedTurn) (llm.Setup, error) {
	with := s.model
	if session.Key != s.session {
		with = s.child
	}
	with.mu.Lock()
	with.turn++
	with.mu.Unlock()
	return llm.Setup{Model: model.Ref{Provider: "bench", Model: script.Demo}, Provider: with, System: "be brief", Tools: s.tools}, nil
}

// turn says a line, and returns how long it took until its turn was durable, and until the model was
// asked.
func (s *speaker) turn(ctx context.Context, text string) (done, start time.Duration, err error) {
	began := time.Now()
	if err := s.say(ctx, text); err != nil {
		return 0, 0, err
	}
	err = s.rests(ctx)
	return time.Since(began), s.model.when().Sub(began), err
}

func (s *speaker) say(ctx context.Context, text string) error {
	_, err := s.led.TakeIn(ctx, ledger.TakeIn{Session: s.session, Inputs: []ledger.Input{agent.PersonLine(text, nil)}})
	return err
}

// rests waits until no turn of the agent is left.
func (s *speaker) rests(ctx context.Context) error {
	for {
		jobs, err := s.led.TurnJobs(ctx, ledger.JobFilter{Member: s.session, Open: true})
		if err != nil || len(jobs) == 0 {
			return err
		}
		select {
		case <-s.changes:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// oneLine is what a turn without tools is told.
var oneLine = "@@say " + strings.Repeat("x", 200)

// commits are durable writes of as many bytes as an answer has.
func (s *speaker) commits(ctx context.Context, n int) (time.Duration, error) {
	data, err := json.Marshal(map[string]string{"text": strings.Repeat("x", 400)})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for range n {
		if _, err := s.led.Event(ctx, ledger.Event{Who: "bench", What: team.EventRoleBypassed, ID: "x", Data: data}); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// rest lets an agent come to rest: looks at a ledger that keeps changing are spread out.
const rest = 60 * time.Millisecond

func runTurns(ctx context.Context, e env) (_ string, err error) {
	w, err := newWorld(ctx, e, "turns", 2)
	if err != nil {
		return "", err
	}
	long := longHistory
	if e.quick {
		long = 5_000
	}
	if err := w.history(ctx, memberSession(1), long); err != nil {
		return "", err
	}
	var with []*speaker
	defer func() {
		for _, s := range with {
			err = errors.Join(err, s.stop())
		}
	}()
	for i := range 2 {
		s, err := w.speak(ctx, i, nil)
		if err != nil {
			return "", err
		}
		with = append(with, s)
	}
	var whole, floor, few, many []time.Duration
	for r := range e.rounds + 3 {
		for i := range with {
			s := with[(i+r)%2]
			if err := pause.For(ctx, rest); err != nil {
				return "", err
			}
			done, start, err := s.turn(ctx, oneLine)
			if err != nil {
				return "", err
			}
			switch {
			case r < 3: // it warms up
			case s == with[0]:
				whole, few = append(whole, done), append(few, start)
			default:
				many = append(many, start)
			}
		}
		if err := pause.For(ctx, rest); err != nil {
			return "", err
		}
		d, err := with[0].commits(ctx, 3)
		if err != nil {
			return "", err
		}
		if r >= 3 {
			floor = append(floor, d)
		}
	}

	return table(e.rounds, fmt.Sprintf("The transcript of the third row has %d entries, most of them before a compaction.", long), []figure{
		{what: "a turn without tools, said to durable", floor: "three commits", bare: inMillis(floor), ours: inMillis(whole), unit: "ms", goal: ratioAtMost(goalTurn)},
		{what: "of it until the model is asked", ours: inMillis(few), unit: "ms"},
		{what: "start of a turn with a long history", floor: "a short one", bare: inMillis(few), ours: inMillis(many), unit: "ms", goal: ratioAtMost(goalLong)},
	}), nil
}

// history fills the transcript of a session, with a compaction before its newest ten entries.
func (w *world) history(ctx context.Context, session string, n int) (err error) {
	led, closeDB, err := w.open(ctx, true)
	if err != nil {
		return err
	}
	_, err = led.OpenSession(ctx, ledger.NewSession{Key: session, Member: session})
	if err = errors.Join(err, closeDB()); err != nil {
		return err
	}
	db, err := sql.Open("sqlite3", "file:"+w.layout.Ledger()+"?mode=rw&_synchronous=OFF&_txlock=immediate")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, q := range []struct {
		text string
		args []any
	}{
		{`INSERT INTO session_entries(session, seq, kind, content, channel, at)
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
			SELECT ?1, i, CASE i % 2 WHEN 1 THEN 'user' ELSE 'assistant' END, 'something that was said, of an ordinary length', 'internal', 1 FROM n`, []any{session, n}},
		{`INSERT INTO session_entries(session, seq, kind, content, meta_json, channel, at) VALUES (?, ?, 'compaction', 'what was said', json_object('kept', ?), 'internal', 1)`,
			[]any{session, n + 1, n - 9}},
		{`UPDATE sessions SET last_seq = ? WHERE session_key = ?`, []any{n + 1, session}},
	} {
		if _, err := db.ExecContext(ctx, q.text, q.args...); err != nil {
			return err
		}
	}
	return nil
}

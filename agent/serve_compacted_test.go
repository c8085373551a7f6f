package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// wordy is a model whose calls have long inputs, so that only a summary shortens its conversation.
type wordy struct {
	bytes   int    // of a conversation that it takes
	most    int    // of one that it summarises; 0: any
	last    int    // number of the first answer that calls nothing
	summary func() // called for each summary; may be nil

	mu      sync.Mutex
	asked   []model.Request // without those for summaries
	answers int
	sums    int
	toSum   []model.Request // those for summaries
}

// price is what each request of wordy uses.
var price = team.Usage{InputTokens: 10, OutputTokens: 1, CostUSD: 0.25, CostKnown: true}

func (w *wordy) Stream(_ context.Context, r model.Request, _ func(model.Delta)) (model.Answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			n += len(p.Text)
			if p.Call != nil {
				n += len(p.Call.Input)
			}
		}
	}
	says := func(p model.Part) (model.Answer, error) {
		return model.Answer{Stop: model.StopEnd, Message: model.Message{Role: model.RoleAssistant, Parts: []model.Part{p}}, Usage: price}, nil
	}
	switch {
	case len(r.Tools) == 0:
		w.toSum = append(w.toSum, r)
		if w.most > 0 && n > w.most {
			return model.Answer{}, &model.Error{Kind: model.TooLong, Provider: "p", Text: "prompt is too long"}
		}
		w.sums++
		if w.summary != nil {
			w.summary()
		}
		return says(model.Part{Text: "# Goal\nthe work"})
	case n > w.bytes:
		return model.Answer{}, &model.Error{Kind: model.TooLong, Provider: "p", Text: "prompt is too long"}
	}
	w.asked = append(w.asked, r)
	if w.answers++; w.last > 0 && w.answers >= w.last {
		return says(model.Part{Text: "the work is done"})
	}
	input := json.RawMessage(fmt.Sprintf(`{"n":%d,"text":%q}`, w.answers, strings.Repeat("a long input ", 3000)))
	a, err := says(model.Part{Call: &model.Call{ID: fmt.Sprint("c", w.answers), Name: "work", Input: input}})
	a.Stop = model.StopCalls
	return a, err
}

func (w *wordy) Models(context.Context) ([]model.Info, error) { return nil, nil }

// TestCompactedTurn checks that a turn knows its task, what it has used and the number of its
// answers after several summaries, in its next process as well.
func TestCompactedTurn(t *testing.T) {
	t.Parallel()
	w := &wordy{bytes: 250_000, last: 20}
	var stop func(error) error
	var once sync.Once
	s := newServed(t, echo("work", false, func(ctx context.Context, input string) string {
		if strings.HasPrefix(input, `{"n":14,`) {
			once.Do(func() {
				go func() { _ = stop(errors.New("the first process ends")) }()
				<-ctx.Done()
			})
		}
		return "worked"
	}))
	s.model = w
	stop = s.start(ServeIn{First: "you are dev"})
	s.tell("keep the name kumquat")
	s.until("the first process to end", func() bool {
		jobs := s.turns()
		return len(jobs) == 1 && jobs[0].State == team.TurnQueued && jobs[0].Attempt == 1
	})
	_ = stop(nil)
	s.start(ServeIn{First: "you are dev"})
	s.said("the work is done")
	s.rested()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sums < 3 {
		t.Errorf("%d summaries, want at least 3", w.sums)
	}
	for i, r := range w.asked {
		if !strings.Contains(flat(t, r), "kumquat") {
			t.Errorf("request %d has lost the task", i+1)
		}
	}
	requests := int64(w.answers + w.sums)
	want := team.Usage{InputTokens: 10 * requests, OutputTokens: requests, CostUSD: 0.25 * float64(requests), CostKnown: true}
	var used team.Usage
	if err := json.Unmarshal(s.turns()[0].Usage, &used); err != nil || used != want {
		t.Errorf("the turn has used %+v, %v, want %+v of %d requests", used, err, want, requests)
	}
}

// TestCompactedTurnIsBounded checks that the maximum of answers counts summaries, and those answers
// that a summary has replaced, in the next process of the turn as well.
func TestCompactedTurnIsBounded(t *testing.T) {
	t.Parallel()
	for name, stops := range map[string]int{"one process": 0, "two processes": 14} { // number of the call in which the first one ends
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most = 20
			w := &wordy{bytes: 250_000, last: 40}
			var stop func(error) error
			var once sync.Once
			s := newServed(t, echo("work", false, func(ctx context.Context, input string) string {
				if strings.HasPrefix(input, fmt.Sprintf(`{"n":%d,`, stops)) {
					once.Do(func() {
						go func() { _ = stop(errors.New("the first process ends")) }()
						<-ctx.Done()
					})
				}
				return "worked"
			}))
			s.model, s.rounds = w, most
			stop = s.start(ServeIn{First: "you are dev"})
			s.tell("go")
			if stops > 0 {
				s.until("the first process to end", func() bool {
					jobs := s.turns()
					return len(jobs) == 1 && jobs[0].State == team.TurnQueued && jobs[0].Attempt == 1
				})
				_ = stop(nil)
				s.start(ServeIn{First: "you are dev"})
			}
			s.until("the turn to end", func() bool { jobs := s.turns(); return len(jobs) > 0 && jobs[0].State.Ended() })
			j := s.turns()[0]
			w.mu.Lock()
			defer w.mu.Unlock()
			if j.State != team.TurnFailed || !strings.Contains(j.Reason, fmt.Sprintf("iterations (%d)", most)) || w.answers+w.sums != most || w.sums < 2 {
				t.Errorf("%s (%s) after %d answers and %d summaries", j.State, j.Reason, w.answers, w.sums)
			}
		})
	}
}

// TestSummaryIsTooLong checks that what a model does not take to be summarised is made shorter from
// its beginning, and that the turn fails if that is not enough.
func TestSummaryIsTooLong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		most  int
		state team.TurnState
	}{{100_000, team.TurnDone}, {1000, team.TurnFailed}} {
		t.Run(fmt.Sprint(c.most), func(t *testing.T) {
			t.Parallel()
			w := &wordy{bytes: 250_000, most: c.most, last: 14}
			s := newServed(t, echo("work", false, func(context.Context, string) string { return "worked" }))
			s.model = w
			s.start(ServeIn{First: "you are dev"})
			s.tell("keep the name kumquat")
			s.until("the turn to end", func() bool { jobs := s.turns(); return len(jobs) > 0 && jobs[0].State.Ended() })
			j := s.turns()[0]
			w.mu.Lock()
			defer w.mu.Unlock()
			if j.State != c.state || c.state == team.TurnFailed && !strings.Contains(j.Reason, "cannot be compacted: p: prompt is too long") {
				t.Errorf("%s (%s)", j.State, j.Reason)
			}
			if c.state == team.TurnDone && (w.sums < 2 || len(w.toSum) < 2*w.sums || len(w.toSum) > 4*w.sums) {
				t.Errorf("%d summaries of %d requests for them", w.sums, len(w.toSum))
			}
			for i, r := range w.toSum {
				text := flat(t, r)
				if !strings.Contains(text, "you are dev") || !strings.Contains(text, "Use these headings") {
					t.Errorf("request %d for a summary lacks the first entry, or the question", i+1)
				}
			}
			for i, r := range w.asked {
				if !strings.Contains(flat(t, r), "kumquat") {
					t.Errorf("request %d has lost the task", i+1)
				}
			}
		})
	}
}

// TestSteerWhileCompacting checks that a message which arrives while a conversation is summarised
// waits in the backlog, that its sender is notified, and that it steers the turn at the next
// boundary.
func TestSteerWhileCompacting(t *testing.T) {
	t.Parallel()
	var s *served
	var once sync.Once
	w := &wordy{bytes: 250_000, last: 12, summary: func() { once.Do(func() { s.tell("the other thing") }) }}
	s = newServed(t, echo("work", false, func(context.Context, string) string { return "worked" }))
	s.model = w
	s.start(ServeIn{First: "you are dev"})
	s.tell("keep the name kumquat")
	s.said("the work is done")
	s.rested()
	if jobs := s.turns(); jobs[0].State != team.TurnSteered {
		t.Errorf("the turn is %s, want %s", jobs[0].State, team.TurnSteered)
	}
	busy := 0
	for _, m := range s.messages("dev", team.KindInfo) {
		if m.Text == busyNotice {
			busy++
		}
	}
	if busy != 1 {
		t.Errorf("%d notices that the session is busy, want 1", busy)
	}
	if n := strings.Count(s.dump(), "the other thing"); n != 1 {
		t.Errorf("the message is in the transcript %d times:\n%.2000s", n, s.dump())
	}
	for _, e := range s.transcript() {
		if e.Kind == ledger.EntryUser && strings.Contains(e.Content, "resume:") && !strings.Contains(e.Content, "kumquat") {
			t.Errorf("the token does not quote the task: %s", e.Content)
		}
	}
}

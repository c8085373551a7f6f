package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/script"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// moments is the script model, with a function to call when its nth answer is requested.
type moments struct {
	recorded
	at map[int]func()
}

func (m *moments) Stream(ctx context.Context, q model.Request, on func(model.Delta)) (model.Answer, error) {
	m.mu.Lock()
	n := len(m.asked) + 1
	m.mu.Unlock()
	if f := m.at[n]; f != nil {
		f()
	}
	return m.recorded.Stream(ctx, q, on)
}

const bigTask = "the big task\n@@call work {}\n@@call work {}\n@@say the big task is done"

// order checks that the transcript contains each text once, in order.
func (s *served) order(texts ...string) {
	s.t.Helper()
	dump, at := s.dump(), 0
	for _, text := range texts {
		if n := strings.Count(dump, text); n != 1 {
			s.t.Errorf("%q is in the transcript %d times:\n%s", text, n, dump)
			return
		}
		i := strings.Index(dump, text)
		if i < at {
			s.t.Errorf("%q comes too early:\n%s", text, dump)
		}
		at = i
	}
}

// TestSteerAtEveryMoment checks that a message of the lead or a typed line that arrives during a
// turn is answered next, whatever the turn is doing, and that the task continues afterwards.
// Input that arrives with the last answer waits for the end of the turn, and the sender of a
// message is notified.
func TestSteerAtEveryMoment(t *testing.T) {
	t.Parallel()
	t.Run("mail", func(t *testing.T) {
		t.Parallel()
		steerAtEveryMoment(t, false)
	})
	t.Run("typed", func(t *testing.T) {
		t.Parallel()
		steerAtEveryMoment(t, true)
	})
}

func steerAtEveryMoment(t *testing.T, typed bool) {
	const answered = "assistant: steered away"
	steer := "@@say steered away"
	for name, c := range map[string]struct {
		answer int // arrives while this answer streams
		call   int // or during this call
		want   []string
		late   bool
		skips  int // calls that were not begun
	}{
		"while the first answer streams": {answer: 1, skips: 1, want: []string{ledger.ResultSkipped, answered, "resume: the big task", "assistant: the big task is done"}},
		"during the first call":          {call: 1, want: []string{answered, "resume: the big task", "assistant: the big task is done"}},
		"after the first call":           {answer: 2, skips: 1, want: []string{answered, "resume: the big task", "assistant: the big task is done"}},
		"during the last call":           {call: 2, want: []string{answered, "resume: the big task", "assistant: the big task is done"}},
		"while the last answer streams":  {answer: 3, want: []string{"assistant: the big task is done", answered}, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s *served
			var once sync.Once
			var sent ledger.Message
			now := func() {
				once.Do(func() {
					if !typed {
						sent = s.tell(steer)
						return
					}
					out, err := s.led.TakeIn(s.t.Context(), ledger.TakeIn{Session: s.m.SessionKey, Inputs: []ledger.Input{PersonLine(steer, nil)}})
					if err != nil || !out.Backlogged {
						s.t.Errorf("%+v, %v", out, err)
					}
				})
			}
			calls := 0
			s = newServed(t, echo("work", false, func(context.Context, string) string {
				if calls++; calls == c.call {
					now()
				}
				return "worked"
			}))
			s.model = &moments{at: map[int]func(){c.answer: now}}
			s.start(ServeIn{First: "you are dev"})
			s.tell(bigTask)
			s.said("steered away")
			s.said("the big task is done")
			s.until("all turns to end", func() bool {
				for _, j := range s.turns() {
					if !j.State.Ended() {
						return false
					}
				}
				return len(s.messages("dev", team.KindIdle)) > 0
			})
			s.order(c.want...)
			if calls != 2-c.skips { // the script continues after the calls it has already requested
				t.Errorf("%d calls, want %d", calls, 2-c.skips)
			}
			busy := 0
			for _, m := range s.messages("dev", team.KindInfo) {
				if m.Text == busyNotice {
					busy++
				}
			}
			if (busy == 1) != (c.late && !typed) { // a person sees it on the screen
				t.Errorf("%d notices that the session is busy", busy)
			}
			if typed {
				return
			}
			if ds, err := s.led.Deliveries(t.Context(), sent.ID); err != nil || len(ds) != 1 || ds[0].State != team.Accepted {
				t.Errorf("the message is %+v, %v: a notice is not an answer", ds, err)
			}
		})
	}
}

// TestTwoSteers checks that two steering messages are handled in the order of their arrival.
func TestTwoSteers(t *testing.T) {
	t.Parallel()
	var s *served
	var once sync.Once
	s = newServed(t, echo("work", false, func(context.Context, string) string {
		once.Do(func() { s.tell("the first word"); s.tell("the second word\n@@say both heard") })
		return "worked"
	}))
	s.start(ServeIn{})
	s.tell(bigTask)
	s.said("both heard")
	s.said("the big task is done")
	s.order("the first word", "the second word", "assistant: both heard", "assistant: the big task is done")
}

// TestTokensQuoteTasks checks that a steered turn that began with a backlog leaves a token that
// quotes its task, not the backlog with the previous token.
func TestTokensQuoteTasks(t *testing.T) {
	t.Parallel()
	var s *served
	calls := 0
	s = newServed(t, echo("work", false, func(context.Context, string) string {
		switch calls++; calls {
		case 1:
			s.tell("@@say heard one")
		case 2:
			s.tell("@@say heard two")
		}
		return "worked"
	}))
	s.start(ServeIn{})
	s.tell(bigTask)
	s.said("heard one")
	s.said("heard two")
	s.said("the big task is done")
	var tokens []string
	for _, e := range s.transcript() {
		if strings.HasPrefix(e.Content, "[Backlog]") {
			tokens = append(tokens, e.Content)
		}
	}
	if len(tokens) != 2 {
		t.Fatalf("%d backlogs:\n%s", len(tokens), s.dump())
	}
	for i, text := range tokens {
		want := fmt.Sprintf("[Backlog]\nresume: %s (turn ", strings.ReplaceAll(bigTask, "\n", " "))
		if !strings.HasPrefix(text, want) || strings.Count(text, "resume:") != 1 || strings.Count(text, "[Backlog]") != 1 {
			t.Errorf("token %d: %q, want %q", i+1, text, want)
		}
	}
}

// TestLongMailInTheBacklog checks that a long message in the backlog is stored in a file and sent
// to the model in full.
func TestLongMailInTheBacklog(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("y", 40<<10)
	s := newServed(t)
	var once sync.Once
	asked := &moments{at: map[int]func(){1: func() { once.Do(func() { s.tell(long + "\n@@say read it all") }) }}}
	s.model, s.texts = asked, files{t.TempDir()}
	s.start(ServeIn{})
	s.tell("@@say the first is done")
	s.said("the first is done")
	s.said("read it all")
	found := false
	for _, e := range s.transcript() {
		if len(e.Content) > 4<<10 {
			t.Errorf("entry %d has %d bytes", e.Seq, len(e.Content))
		}
		found = found || strings.HasPrefix(e.Content, "[Backlog]\n")
	}
	asked.mu.Lock()
	defer asked.mu.Unlock()
	if last := flat(t, asked.asked[len(asked.asked)-1]); !found || !strings.Contains(last, long) {
		t.Errorf("a backlog: %v; the last request has %d bytes\n%s", found, len(last), s.dump())
	}
}

// TestSteerThenInterrupt checks that an interrupt ends the turn without a token, and that the
// steering message is answered next.
func TestSteerThenInterrupt(t *testing.T) {
	t.Parallel()
	interrupt := make(chan struct{})
	var s *served
	var once sync.Once
	s = newServed(t, echo("work", false, func(ctx context.Context, _ string) string {
		once.Do(func() {
			s.tell("@@say heard it")
			interrupt <- struct{}{}
			<-ctx.Done()
		})
		return "worked"
	}))
	s.start(ServeIn{Interrupt: interrupt})
	s.tell(bigTask)
	s.said("heard it")
	if strings.Contains(s.dump(), "resume: ") {
		t.Errorf("the interrupted turn has a token:\n%s", s.dump())
	}
	if j := s.turns()[0]; j.State != team.TurnCancelled {
		t.Errorf("the turn is %s", j.State)
	}
}

// TestKilledBetweenSteerAndResume checks that the next process continues a task that a message
// displaced.
func TestKilledBetweenSteerAndResume(t *testing.T) {
	t.Parallel()
	var s *served
	var once sync.Once
	at := make(chan struct{})
	var waiting sync.Once
	s = newServed(t,
		echo("work", false, func(context.Context, string) string {
			once.Do(func() { s.tell("@@call hold {}\n@@say held on") })
			return "worked"
		}),
		echo("hold", true, func(ctx context.Context, _ string) string {
			waiting.Do(func() { close(at); <-ctx.Done() })
			return "held"
		}))
	stop := s.start(ServeIn{})
	s.tell(bigTask)
	<-at
	if err := stop(errors.New("killed")); err == nil {
		t.Error("Serve ended without an error")
	}
	s.start(ServeIn{})
	s.said("held on")
	s.said("the big task is done")
	s.order("assistant: held on", "resume: the big task", "assistant: the big task is done")
}

// writes is a model that makes one call with a long input and then repeats its result.
type writes struct{ script.Provider }

func (writes) Stream(_ context.Context, q model.Request, _ func(model.Delta)) (model.Answer, error) {
	last := q.Messages[len(q.Messages)-1]
	part := model.Part{Call: &model.Call{ID: "c1", Name: "work", Input: json.RawMessage(`{"x":"` + strings.Repeat("z", 40<<10) + `"}`)}}
	for _, p := range last.Parts {
		if p.Result != nil {
			part = model.Part{Text: "it says: " + p.Result.Text}
		}
	}
	return model.Answer{Message: model.Message{Role: model.RoleAssistant, Parts: []model.Part{part}}}, nil
}

// unread stores files that cannot be read.
type unread struct{ files }

func (unread) Read(string) (string, error) { return "", os.ErrNotExist }

// TestInputIsGone checks that a call does not run if the file with its input is missing.
func TestInputIsGone(t *testing.T) {
	t.Parallel()
	ran := false
	s := newServed(t, echo("work", false, func(context.Context, string) string { ran = true; return "worked" }))
	s.model, s.ref, s.texts = writes{}, model.Ref{Provider: "p", Model: "m"}, unread{files{t.TempDir()}}
	s.start(ServeIn{})
	s.tell("write it")
	s.said("it says: Nothing was done: the input of this call was in a file that is gone. Make the call again.")
	if ran {
		t.Error("the tool ran")
	}
}

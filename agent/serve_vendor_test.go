package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/messages"
	"github.com/teamctl/teamctl/agent/model/openai"
	"github.com/teamctl/teamctl/agent/model/wire"
	"github.com/teamctl/teamctl/internal/fakemodel"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// vendors lists the protocols.
var vendors = []string{"messages", "chat", "responses"}

// at makes the agent use a server in a protocol.
func (s *served) at(url, protocol string) { s.reach(protocol, wire.Endpoint{BaseURL: url}) }

// reach makes the agent use an endpoint in a protocol.
func (s *served) reach(protocol string, e wire.Endpoint) {
	e.Name = protocol
	switch protocol {
	case "messages":
		s.model = messages.New(e)
	case "chat":
		e.BaseURL += "/v1"
		s.model = &openai.Chat{Endpoint: e, OpenAI: true}
	case "responses":
		e.BaseURL += "/v1"
		s.model = &openai.Responses{Endpoint: e}
	}
	s.ref = model.Ref{Provider: protocol, Model: "m"}
}

// strictServer starts a server that refuses what vendors refuse; a refusal fails the test.
func strictServer(t *testing.T) *fakemodel.Server {
	t.Helper()
	v, err := fakemodel.Start("", nil)
	if err != nil {
		t.Fatal(err)
	}
	v.Strict()
	t.Cleanup(func() {
		if why := v.Refused(); len(why) > 0 {
			t.Errorf("refused %d times: %s", len(why), why[0])
		}
		_ = v.Close()
	})
	return v
}

// TestFaultsLeaveNoTrace checks that a fault at any event of any answer of a turn does not change
// its transcript, that each call runs once, and that no request is one that a vendor refuses.
func TestFaultsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	every := 1
	if testing.Short() {
		every = 15
	}
	for i, protocol := range vendors {
		for k, how := range []fakemodel.How{fakemodel.Reset, fakemodel.End, fakemodel.Stall, fakemodel.Failing, fakemodel.Malformed} {
			first := (3*i + 2*k) % every % 8 // not all at the same events
			t.Run(protocol+"/"+string(how), func(t *testing.T) {
				t.Parallel()
				v := strictServer(t)
				var ran atomic.Int64
				s := newServed(t, echo("work", false, func(context.Context, string) string { ran.Add(1); return "worked < & >" }), echo("look", true, func(context.Context, string) string { return "seen" }))
				var silence silence
				s.reach(protocol, wire.Endpoint{BaseURL: v.URL, AfterFunc: silence.after})
				var request, at, seen atomic.Int64
				var events [4]atomic.Int64 // of each answer without a fault
				v.Break(func(fakemodel.Request) *fakemodel.Fault {
					n := seen.Add(1)
					switch request.Load() {
					case 0:
						return &fakemodel.Fault{How: how, After: 1 << 30, Sends: func(all int) { events[n].Store(int64(all)) }}
					case n:
					default:
						return nil
					}
					return &fakemodel.Fault{How: how, After: int(at.Load()), Bytes: 9 * int(at.Load()%6), Stalled: silence.passes}
				})
				s.start(ServeIn{First: "you are dev"})
				turn := func(n int) (shape string) {
					t.Helper()
					before := len(s.transcript())
					end := fmt.Sprintf("done %d", n)
					s.tell("@@call look {}\n@@call work {\"n\":1}\n@@say " + end)
					s.said(end)
					for _, e := range s.transcript()[before:] {
						shape += string(e.Kind) + " " + strings.ReplaceAll(e.Content, end, "done") + "\n"
					}
					_, shape, _ = strings.Cut(shape, "</teammate-message>")
					return shape
				}
				n := 1
				want := turn(n)
				for answer := int64(1); answer <= 3; answer++ {
					all := events[answer].Load()
					if all < 3 {
						t.Fatalf("answer %d has %d events", answer, all)
					}
					for event := int64(first) % all; event < all; event += int64(every) {
						seen.Store(0)
						at.Store(event)
						request.Store(answer)
						n++
						if got := turn(n); got != want {
							t.Fatalf("answer %d, event %d: another transcript\n%s\nwant\n%s", answer, event, got, want)
						}
						if event == 0 && seen.Load() != 4 {
							t.Errorf("answer %d broke at its first event, and there were %d requests", answer, seen.Load())
						}
					}
				}
				if ran.Load() != int64(n) {
					t.Errorf("%d calls in %d turns", ran.Load(), n)
				}
			})
		}
	}
}

// silence is the silence timer of a model whose requests follow each other. Its time passes only when a test
// says so: on a busy machine any limit can pass without a fault.
type silence struct {
	mu   sync.Mutex
	over func()
}

func (s *silence) after(_ time.Duration, over func()) *time.Timer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = over
	return time.AfterFunc(time.Hour, over)
}

// passes ends the current request, after a moment in which the client may read what was sent.
func (s *silence) passes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	time.AfterFunc(50*time.Millisecond, s.over)
}

// fits is a model with a context of so many bytes. It refuses longer requests, as vendors do.
type fits struct {
	recorded
	bytes   int
	summary func(r model.Request) string
	sums    atomic.Int64
	refuses atomic.Bool // refuses every request
}

func (f *fits) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Answer, error) {
	n := 0
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			n += len(p.Text)
			if p.Result != nil {
				n += len(p.Result.Text)
			}
		}
	}
	if len(r.Tools) == 0 {
		f.sums.Add(1)
		return model.Answer{Stop: model.StopEnd, Message: model.Message{Role: model.RoleAssistant, Parts: []model.Part{{Text: f.summary(r)}}}}, nil
	}
	if n > f.bytes || f.refuses.Load() {
		return model.Answer{}, &model.Error{Kind: model.TooLong, Provider: "p", Text: "prompt is too long"}
	}
	return f.recorded.Stream(ctx, r, on)
}

// chain returns a tool with long results, each of which requests the next call, up to n calls.
func chain(n, bytes int) llm.Tool {
	return echo("work", false, func(_ context.Context, input string) string {
		var in struct{ N int }
		_ = json.Unmarshal([]byte(input), &in)
		next := fmt.Sprintf(`@@call work {"n":%d}`, in.N+1)
		if in.N == n {
			next = "@@say the chain is done"
		}
		return next + "\n" + strings.Repeat(fmt.Sprintf("result %d ", in.N), bytes/10)
	})
}

// TestCompactionGoesOn checks that a turn whose conversation is too long is compacted and
// continues. No call is separated from its result, the task and the newest result are kept word
// for word, and the ledger keeps everything.
func TestCompactionGoesOn(t *testing.T) {
	t.Parallel()
	f := &fits{bytes: 150_000, summary: func(model.Request) string { return "# Goal\nthe chain" }}
	s := newServed(t, chain(12, 30_000))
	s.model = f
	s.start(ServeIn{First: "you are dev"})
	s.tell("keep the name kumquat\n@@call work {\"n\":1}")
	s.said("the chain is done")
	results := 0
	for _, e := range s.transcript() {
		if e.Kind != ledger.EntryToolResult {
			continue
		}
		if results++; len(e.Content) < 20_000 {
			t.Errorf("entry %d has only %d bytes in the ledger", e.Seq, len(e.Content))
		}
	}
	if n := s.compactions(); n == 0 || results != 12 {
		t.Errorf("%d compactions, %d results", n, results)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, r := range f.asked {
		paired(t, r)
		if text := flat(t, r); !strings.Contains(text, "kumquat") || !strings.Contains(text, "you are dev") {
			t.Errorf("request %d has lost the task:\n%.500s", i, text)
		}
		last := r.Messages[len(r.Messages)-1]
		if p := last.Parts[len(last.Parts)-1]; p.Result != nil && len(p.Result.Text) < 20_000 {
			t.Errorf("request %d: the newest result is cut to %d bytes", i, len(p.Result.Text))
		}
	}
}

// paired checks that each call has its result right after its answer.
func paired(t *testing.T, r model.Request) {
	t.Helper()
	var open []string
	for i, m := range r.Messages {
		for _, p := range m.Parts {
			switch {
			case p.Call != nil:
				open = append(open, p.Call.ID)
			case p.Result != nil:
				if len(open) == 0 || open[0] != p.Result.CallID {
					t.Errorf("message %d: a result of %s, open are %v", i, p.Result.CallID, open)
					return
				}
				open = open[1:]
			}
		}
		if m.Role == model.RoleUser && len(open) > 0 {
			t.Errorf("message %d: calls %v have no result", i, open)
			return
		}
	}
}

// TestCompactionByVendors checks compaction in each protocol, with a server that refuses what
// vendors refuse.
func TestCompactionByVendors(t *testing.T) {
	t.Parallel()
	for _, protocol := range vendors {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			v := strictServer(t)
			v.Break(func(r fakemodel.Request) *fakemodel.Fault {
				if !r.Side && len(r.Body) > 150_000 {
					return &fakemodel.Fault{Status: 400, Text: "prompt is too long: 210000 tokens > 200000 maximum"}
				}
				return nil
			})
			s := newServed(t, chain(10, 30_000))
			s.at(v.URL, protocol)
			s.start(ServeIn{First: "you are dev"})
			s.tell("keep the name kumquat\n@@call work {\"n\":1}")
			s.said("the chain is done")
			if !strings.Contains(s.dump(), string(ledger.EntryCompaction)) {
				t.Error("nothing was compacted")
			}
		})
	}
}

// TestCompactionLoopEnds checks that a turn fails after one compaction if its conversation
// remains too long, and after a second attempt if its summary is not shorter, and that the lead
// is notified of the reason.
func TestCompactionLoopEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		summary, task string
		refuses       bool
		sums          int64 // upper bound
		compactions   int   // while it is refused
		why           string
	}{
		"refused for ever": {"# Goal\nshort", "@@call work {\"n\":1}", true, 2, 1, "without a successful tool result in between: p: prompt is too long"},
		"no shorter":       {strings.Repeat("as long as before ", 20_000), strings.Repeat("a very long task ", 5_000) + "\n@@call work {\"n\":1}", false, 2, 0, "cannot be compacted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fits{bytes: 100_000, summary: func(model.Request) string { return c.summary }}
			if c.refuses {
				f.bytes = 1 << 20
			}
			next := chain(7, 30_000)
			s := newServed(t, echo("work", false, func(ctx context.Context, input string) string {
				if strings.Contains(input, "6") {
					f.refuses.Store(c.refuses)
				}
				r, _ := next.Run(ctx, llm.Call{Call: model.Call{Input: json.RawMessage(input)}})
				return r.Text
			}))
			s.model = f
			s.start(ServeIn{First: "you are dev"})
			s.tell(c.task)
			failed := func() (why string) {
				for _, j := range s.turns() {
					if j.State == team.TurnFailed {
						why = j.Reason
					}
				}
				return why
			}
			s.until("the turn to fail", func() bool { return failed() != "" })
			if !strings.Contains(failed(), c.why) {
				t.Errorf("it failed for %q, want %q", failed(), c.why)
			}
			if n := f.sums.Load(); n > c.sums {
				t.Errorf("%d summaries were paid for", n)
			}
			if n := s.compactions(); n != c.compactions {
				t.Errorf("%d compactions, want %d", n, c.compactions)
			}
			s.until("the lead to be told", func() bool {
				for _, m := range s.messages("dev", team.KindError) {
					if strings.Contains(m.Text, c.why) {
						return true
					}
				}
				return false
			})
			if c.refuses { // the next turn is not refused, and is answered
				f.refuses.Store(false)
				s.tell("go on")
				s.said("the chain is done")
			}
		})
	}
}

// compactions returns the number of compactions in the transcript.
func (s *served) compactions() (n int) {
	s.t.Helper()
	for _, e := range s.transcript() {
		if e.Kind == ledger.EntryCompaction {
			n++
		}
	}
	return n
}

// TestCompactionsOfTwoLives checks that a compaction counts in the next process of its turn, too.
func TestCompactionsOfTwoLives(t *testing.T) {
	t.Parallel()
	f := &fits{bytes: 100_000, summary: func(model.Request) string { return "# Goal\nshort" }}
	next := chain(9, 30_000)
	var s *served
	var stop func(error) error
	var once sync.Once
	s = newServed(t, echo("work", false, func(ctx context.Context, input string) string {
		if s.compactions() > 0 {
			once.Do(func() {
				f.refuses.Store(true)
				go func() { _ = stop(errors.New("the first process ends")) }()
				<-ctx.Done()
			})
		}
		r, _ := next.Run(ctx, llm.Call{Call: model.Call{Input: json.RawMessage(input)}})
		return r.Text
	}))
	s.model = f
	stop = s.start(ServeIn{First: "you are dev"})
	s.tell("@@call work {\"n\":1}")
	s.until("the first process to end", func() bool {
		jobs := s.turns()
		return len(jobs) == 1 && jobs[0].State == team.TurnQueued && jobs[0].Attempt == 1
	})
	_ = stop(nil)
	s.start(ServeIn{First: "you are dev"})
	s.until("the turn to fail", func() bool { return s.turns()[0].State == team.TurnFailed })
	if why, n := s.turns()[0].Reason, s.compactions(); n != 1 || !strings.Contains(why, "without a successful tool result in between") {
		t.Errorf("it failed after %d compactions: %s", n, why)
	}
}

// TestCompactAsked checks that a request to compact an idle conversation is carried out, and that
// its text is part of the prompt for the summary.
func TestCompactAsked(t *testing.T) {
	t.Parallel()
	var asked sync.Map
	f := &fits{bytes: 1 << 20, summary: func(r model.Request) string {
		m := r.Messages[len(r.Messages)-1]
		asked.Store("text", m.Parts[len(m.Parts)-1].Text)
		return "# Goal\nnothing"
	}}
	s := newServed(t, chain(4, 30_000))
	s.model = f
	s.start(ServeIn{First: "you are dev"})
	s.tell("@@call work {\"n\":1}")
	s.said("the chain is done")
	if _, err := s.led.TakeIn(t.Context(), ledger.TakeIn{Session: s.m.SessionKey, Inputs: []ledger.Input{{NewEntry: ledger.NewEntry{
		Kind: ledger.EntryEvent, Content: "the name kumquat", Meta: json.RawMessage(`{"compact":true}`),
	}}}}); err != nil {
		t.Fatal(err)
	}
	s.tell("@@say after it")
	s.said("after it")
	text, _ := asked.Load("text")
	if !strings.HasSuffix(fmt.Sprint(text), "Keep in any case: the name kumquat") {
		t.Errorf("the summary was asked for with %v", text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if last := flat(t, f.asked[len(f.asked)-1]); !strings.Contains(last, "# Goal") || len(last) > 100_000 {
		t.Errorf("%.600s", last)
	}
}

// locked is a model that needs a login.
type locked struct {
	recorded
	asks atomic.Int64
}

func (l *locked) Stream(context.Context, model.Request, func(model.Delta)) (model.Answer, error) {
	l.asks.Add(1)
	return model.Answer{}, &model.Error{Kind: model.Login, Provider: "p", Status: 401}
}

// TestLoginWaits checks that a turn that waits for a login asks its model no more often because
// something else happens in the team.
func TestLoginWaits(t *testing.T) {
	t.Parallel()
	l := &locked{}
	s := newServed(t)
	s.model = l
	stop := s.start(ServeIn{First: "you are dev"})
	s.tell("go")
	s.until("the turn to wait", func() bool {
		m, err := s.led.Member(t.Context(), "dev")
		return err == nil && m.Activity == team.Waiting && m.WaitsFor == team.WaitLogin
	})
	began, n := time.Now(), 0
	s.until("many messages", func() bool {
		s.send(ledger.NewMessage{Kind: team.KindInfo, From: team.LeadName, To: "dev", Text: "news", Summary: "x"})
		n++
		return n == 30
	})
	_ = stop(errors.New("test over"))
	// It is asked again each minute, and a slow machine may take longer than that.
	if got, most := l.asks.Load(), 2+int64(time.Since(began)/time.Minute); got > most {
		t.Errorf("the model was asked %d times, want %d at most", got, most)
	}
}

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/script"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// served is an agent with a model, a real ledger and a mailbox.
type served struct {
	*rig
	tools []llm.Tool
	m     ledger.Member
	model model.Provider // nil means the script model
	ref   model.Ref      // of model
	info  model.Info
	quota Quota
	texts llm.Texts // store of long texts; nil keeps them in the ledger
	space Workspace

	rounds int // maximum of answers in a turn; 0 for the default

	reads     llm.Sessions // of the turns; nil for the ledger
	resolves  func() error // called to resolve a turn; may be nil
	ephemeral func(ctx context.Context) (string, error)
}

// files stores long texts in a directory.
type files struct{ dir string }

func (f files) Keep(text string) (string, error) {
	name := team.NewUUID()
	return name, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600)
}

func (f files) Read(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	return string(b), err
}

func newServed(t *testing.T, tools ...llm.Tool) *served {
	r := newRig(t)
	key := team.TeammateSessionKey("")
	m := r.join("dev", key, team.RoleExecutor)
	return &served{rig: r, tools: tools, m: m}
}

func (s *served) provider() model.Provider {
	if s.model == nil {
		return script.Provider{}
	}
	return s.model
}

// start runs the agent. stop cancels it with a cause, which is nil for a regular stop of the
// process.
func (s *served) start(in ServeIn) (stop func(cause error) error) {
	s.t.Helper()
	return s.startIn(s.t.Context(), in)
}

func (s *served) startIn(ctx context.Context, in ServeIn) (stop func(cause error) error) {
	s.t.Helper()
	ctx, cancel := context.WithCancelCause(ctx)
	if in.Sessions == nil {
		in.Sessions = s.led
	}
	var sessions llm.Sessions = s.led
	if s.reads != nil {
		sessions = s.reads
	}
	in.Turns = &llm.Runner{Sessions: sessions, Resolve: func(context.Context, ledger.Session, ledger.ClaimedTurn) (llm.Setup, error) {
		if s.resolves != nil {
			if err := s.resolves(); err != nil {
				return llm.Setup{}, err
			}
		}
		ref := s.ref
		if ref.IsZero() {
			ref = model.Ref{Provider: script.Name, Model: script.Demo}
		}
		return llm.Setup{Model: ref, Provider: s.provider(), Info: s.info, System: "be good", Tools: s.tools, Rounds: s.rounds, Ephemeral: s.ephemeral}, nil
	}, Jitter: func() float64 { return 0 }, Texts: s.texts}
	if s.texts != nil {
		in.Keep = func(text string) (short, name string) {
			short, name, err := llm.Keep(s.texts, text, 100)
			if err != nil {
				s.t.Error(err)
			}
			return short, name
		}
	}
	in.Quota = s.quota
	id := Identity{AgentID: "dev@demo", Name: "dev", Team: "demo", Session: s.m.SessionKey, Generation: team.NewUUID(), Role: team.RoleExecutor}
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, id, Env{Ledger: s.led, Box: s.box("dev"), Post: s.post, Workspace: s.space}, in)
	}()
	var once sync.Once
	var err error
	stop = func(cause error) error {
		once.Do(func() {
			cancel(cause)
			err = <-done
		})
		return err
	}
	s.t.Cleanup(func() { _ = stop(errors.New("test over")) })
	return stop
}

func (s *served) tell(text string) ledger.Message {
	return s.send(ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "dev", Text: text, Summary: "x"})
}

// said waits until the agent has given the answer.
func (s *served) said(text string) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Log("\n" + s.dump())
		}
	}()
	s.until("the answer "+text, func() bool {
		for _, e := range s.transcript() {
			if e.Kind == ledger.EntryAssistant && e.Content == text {
				return true
			}
		}
		return false
	})
}

func (s *served) transcript() []ledger.Entry {
	s.t.Helper()
	list, err := s.led.Entries(context.WithoutCancel(s.t.Context()), s.m.SessionKey, 0, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

func (s *served) turns() []ledger.TurnJob {
	s.t.Helper()
	list, err := s.led.TurnJobs(context.WithoutCancel(s.t.Context()), ledger.JobFilter{Session: s.m.SessionKey})
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// dump returns the transcript, one line per entry.
func (s *served) dump() string {
	var b strings.Builder
	for _, e := range s.transcript() {
		fmt.Fprintf(&b, "%d turn %d %s: %.300s\n", e.Seq, e.Job, e.Kind, e.Content)
	}
	return b.String()
}

func echo(name string, readOnly bool, ran func(ctx context.Context, input string) string) llm.Tool {
	return llm.Tool{Tool: model.Tool{Name: name, Schema: json.RawMessage(`{}`)}, ReadOnly: readOnly,
		Run: func(ctx context.Context, c llm.Call) (llm.Result, error) {
			return llm.Result{Text: ran(ctx, string(c.Input))}, ctx.Err()
		}}
}

// recorded is the script model; it records its requests.
type recorded struct {
	script.Provider
	mu    sync.Mutex
	asked []model.Request
}

func (r *recorded) Stream(ctx context.Context, q model.Request, on func(model.Delta)) (model.Answer, error) {
	r.mu.Lock()
	r.asked = append(r.asked, q)
	r.mu.Unlock()
	return r.Provider.Stream(ctx, q, on)
}

// flat returns the system prompt, the tools and the messages of a request, part by part, without
// its ephemeral text.
func flat(t *testing.T, q model.Request) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s %v\n", q.System, q.Tools)
	for _, m := range q.Messages {
		for _, p := range m.Parts {
			raw, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s %s %s\n", m.Role, m.Raw, raw)
		}
	}
	return b.String()
}

// TestRequestsExtend checks that each request begins with the bytes of the previous one, across
// calls, turns, mail during a turn and a steering message. Otherwise no cache would ever hit.
func TestRequestsExtend(t *testing.T) {
	t.Parallel()
	var s *served
	var once sync.Once
	s = newServed(t, echo("work", false, func(context.Context, string) string {
		once.Do(func() {
			s.send(ledger.NewMessage{Kind: team.KindInfo, From: team.LeadName, To: "dev", Text: "by the way"})
			s.tell("@@say first this")
		})
		return "worked"
	}))
	asked := &recorded{}
	s.model = asked
	s.start(ServeIn{First: "you are dev"})
	s.tell("@@call work {}\n@@call work {}\n@@say all done")
	s.said("first this")
	s.said("all done")
	s.tell("@@say bye")
	s.said("bye")
	asked.mu.Lock()
	defer asked.mu.Unlock()
	for i := 1; i < len(asked.asked); i++ {
		if before, now := flat(t, asked.asked[i-1]), flat(t, asked.asked[i]); !strings.HasPrefix(now, before) {
			t.Errorf("request %d does not begin with the one before:\n%s\nbefore:\n%s", i, now, before)
		}
	}
	if len(asked.asked) < 5 {
		t.Errorf("%d requests only", len(asked.asked))
	}
}

func TestServeAnswersMail(t *testing.T) {
	t.Parallel()
	ran := 0
	s := newServed(t, echo("work", false, func(context.Context, string) string { ran++; return "worked" }))
	s.start(ServeIn{First: "you are dev"})
	m := s.tell("@@call work {}\n@@say done it")
	s.said("done it")
	s.until("the receipt", func() bool {
		ds, err := s.led.Deliveries(t.Context(), m.ID)
		return err == nil && len(ds) == 1 && (ds[0].State == team.Accepted)
	})
	s.until("the idle notice", func() bool { return len(s.messages("dev", team.KindIdle)) > 0 })
	if ran != 1 {
		t.Errorf("the tool ran %d times", ran)
	}
	n := len(s.messages("dev", team.KindIdle))
	s.tell("@@say again")
	s.said("again")
	s.until("the next idle notice", func() bool { return len(s.messages("dev", team.KindIdle)) > n })
}

func TestServeSteered(t *testing.T) {
	t.Parallel()
	at, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := newServed(t, echo("slow", false, func(ctx context.Context, _ string) string {
		once.Do(func() { close(at); <-goOn })
		return "slept"
	}))
	s.start(ServeIn{})
	s.tell("the big task\n@@call slow {}\n@@call slow {}\n@@say big task done")
	<-at
	s.tell("@@say steered")
	close(goOn)
	s.said("steered")
	s.until("the resumed turn", func() bool { return strings.Contains(s.dump(), "[Backlog]\nresume: ") })
	s.until("idle", func() bool { return len(s.messages("dev", team.KindIdle)) > 0 })
	t.Log("\n" + s.dump())
}

func TestServeShutsDown(t *testing.T) {
	t.Parallel()
	at := make(chan struct{})
	s := newServed(t, echo("slow", false, func(ctx context.Context, _ string) string { close(at); <-ctx.Done(); return "" }))
	stop := s.start(ServeIn{})
	s.tell("@@call slow {}")
	<-at
	s.askShutdown("dev")
	s.until("the answer", func() bool { return len(s.messages("dev", team.KindShutdownApproved)) == 1 })
	if err := stop(nil); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if j := s.turns()[0]; j.State != team.TurnCancelled {
		t.Errorf("the turn is %s", j.State)
	}
}

func TestServeGoesOn(t *testing.T) {
	t.Parallel()
	at := make(chan struct{}, 2)
	var ran sync.Map
	s := newServed(t, echo("look", true, func(ctx context.Context, input string) string {
		_, again := ran.LoadOrStore("look", true)
		at <- struct{}{}
		if !again {
			<-ctx.Done()
		}
		return "seen"
	}))
	stop := s.start(ServeIn{})
	s.tell("@@call look {}\n@@say looked")
	<-at
	if err := stop(errors.New("killed")); err == nil {
		t.Error("Serve ended without an error")
	}
	s.start(ServeIn{})
	s.said("looked")
	if n := strings.Count(s.dump(), "tool_result"); n != 1 {
		t.Errorf("%d results:\n%s", n, s.dump())
	}
}

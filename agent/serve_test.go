package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/script"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// served is an agent with a model, beside a real ledger and mailbox.
type served struct {
	*rig
	tools []llm.Tool
	m     ledger.Member
}

func newServed(t *testing.T, tools ...llm.Tool) *served {
	r := newRig(t)
	key := team.TeammateSessionKey("")
	m := r.join("dev", key, team.RoleExecutor)
	return &served{rig: r, tools: tools, m: m}
}

// start runs a life of the agent; stop ends it, for cause nil like a process that stops.
func (s *served) start(in ServeIn) (stop func(cause error) error) {
	s.t.Helper()
	return s.startIn(s.t.Context(), in)
}

func (s *served) startIn(ctx context.Context, in ServeIn) (stop func(cause error) error) {
	s.t.Helper()
	ctx, cancel := context.WithCancelCause(ctx)
	in.Sessions = s.led
	in.Turns = &llm.Runner{Sessions: s.led, Resolve: func(context.Context, ledger.Session, ledger.ClaimedTurn) (llm.Setup, error) {
		return llm.Setup{Model: model.Ref{Provider: script.Name, Model: script.Demo}, Provider: script.Provider{}, System: "be good", Tools: s.tools}, nil
	}}
	id := Identity{AgentID: "dev@demo", Name: "dev", Team: "demo", Session: s.m.SessionKey, Generation: team.NewUUID(), Role: team.RoleExecutor}
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, id, Env{Ledger: s.led, Box: s.box("dev"), Post: s.post}, in) }()
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

// dump is the transcript, a line for each entry.
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
	s.until("the next idle notice", func() bool { return len(s.messages("dev", team.KindIdle)) == n+1 })
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

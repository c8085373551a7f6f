package llm

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/script"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// scripted is a model that runs the scripts in its conversation and records its requests.
type scripted struct {
	script.Provider
	mu    sync.Mutex
	asked []model.Request
	// answer, if set, is called first; if it returns nil, the script answers.
	answer func(n int, r model.Request) (*model.Answer, error)
}

func (s *scripted) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Answer, error) {
	s.mu.Lock()
	s.asked = append(s.asked, r)
	n := len(s.asked)
	s.mu.Unlock()
	if s.answer != nil {
		if a, err := s.answer(n, r); a != nil || err != nil {
			if a == nil {
				a = &model.Answer{}
			}
			on(model.Delta{Text: textOf(a.Message)})
			return *a, err
		}
	}
	if len(r.Tools) == 0 {
		return says("a summary"), nil
	}
	return s.Provider.Stream(ctx, r, on)
}

func says(text string) model.Answer {
	return model.Answer{Stop: model.StopEnd, Message: model.Message{Role: model.RoleAssistant, Parts: []model.Part{{Text: text}}}}
}

// testDesk is a Desk without mail.
type testDesk struct {
	mu      sync.Mutex
	screen  strings.Builder
	look    func() Verdict
	take    func(Token) (Verdict, error)
	late    func()
	waits   []time.Duration
	limited []*team.LimitReached
}

func (d *testDesk) Look(context.Context) (Verdict, error) {
	if d.look != nil {
		return d.look(), nil
	}
	return GoOn, nil
}

func (d *testDesk) Take(_ context.Context, token Token) (Verdict, error) {
	if d.take != nil {
		return d.take(token)
	}
	return GoOn, nil
}

func (d *testDesk) Late(context.Context) error {
	if d.late != nil {
		d.late()
	}
	return nil
}

func (d *testDesk) Allowed(ctx context.Context) error { return ctx.Err() }

func (d *testDesk) Limited(ctx context.Context, l *team.LimitReached) error {
	d.limited = append(d.limited, l)
	return ctx.Err()
}

func (d *testDesk) Wait(ctx context.Context, long time.Duration, _ team.WaitFor, _ string) error {
	d.waits = append(d.waits, long)
	return ctx.Err()
}

func (d *testDesk) Pause(context.Context, team.WaitFor, string) (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, nil
}

func (d *testDesk) Claim() *ledger.ClaimTurnIn { return nil }

func (d *testDesk) Write(ctx context.Context, _ string, fn func(context.Context) error) error {
	return fn(context.WithoutCancel(ctx))
}

func (d *testDesk) Say(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.screen.WriteString(text)
}

func (d *testDesk) Line(format string, args ...any) { d.Say(fmt.Sprintf(format, args...) + "\n") }

var _ Desk = (*testDesk)(nil)

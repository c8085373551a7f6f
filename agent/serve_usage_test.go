package agent

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/team"
)

// stoppable is a model whose only answer ends with its request.
type stoppable struct {
	asked  chan struct{}
	usage  team.Usage // reported by then
	answer bool       // the answer is complete
}

func (m *stoppable) Stream(ctx context.Context, _ model.Request, _ func(model.Delta)) (model.Answer, error) {
	m.asked <- struct{}{}
	<-ctx.Done()
	if m.answer {
		return model.Answer{Stop: model.StopEnd, Message: model.Message{Role: model.RoleAssistant, Parts: []model.Part{{Text: "late"}}}, Usage: m.usage}, nil
	}
	return model.Answer{Usage: m.usage}, ctx.Err()
}

func (m *stoppable) Models(context.Context) ([]model.Info, error) { return nil, nil }

// TestUsageOfStoppedTurns checks that the usage of a request that was stopped is unknown, except
// for what the provider had reported.
func TestUsageOfStoppedTurns(t *testing.T) {
	t.Parallel()
	input := team.Usage{InputTokens: 1000}
	whole := team.Usage{InputTokens: 1000, OutputTokens: 10, CostUSD: 0.5, CostKnown: true}
	for name, c := range map[string]struct {
		usage  team.Usage
		answer bool
		price  *model.Price
		want   team.Usage
	}{
		"nothing reported":   {want: team.Usage{Unknown: 1}},
		"input reported":     {usage: input, want: team.Usage{InputTokens: 1000, Unknown: 1}},
		"input with a price": {usage: input, price: &model.Price{Input: 2000}, want: team.Usage{InputTokens: 1000, CostUSD: 2, Unknown: 1}},
		"complete":           {usage: whole, answer: true, want: whole},
	} {
		for how, state := range map[string]team.TurnState{"interrupt": team.TurnCancelled, "shutdown": team.TurnCancelled, "end of the process": team.TurnQueued} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				m := &stoppable{asked: make(chan struct{}, 1), usage: c.usage, answer: c.answer}
				s := newServed(t)
				s.model, s.info = m, model.Info{Price: c.price}
				interrupt := make(chan struct{})
				stop := s.start(ServeIn{First: "you are dev", Interrupt: interrupt})
				s.tell("go")
				<-m.asked
				switch how {
				case "interrupt":
					interrupt <- struct{}{}
				case "shutdown":
					s.askShutdown("dev")
				default:
					_ = stop(errors.New("the process ends"))
				}
				s.until("the turn to stop", func() bool { return s.turns()[0].State == state })
				var used team.Usage
				if err := json.Unmarshal(s.turns()[0].Usage, &used); err != nil || used != c.want {
					t.Errorf("the turn has used %+v, %v, want %+v", used, err, c.want)
				}
			})
		}
	}
}

// cutOnce is a model whose first answer is cut.
type cutOnce struct {
	usage team.Usage // reported of it
	text  string     // said of it
	asked int
}

func (m *cutOnce) Stream(_ context.Context, _ model.Request, on func(model.Delta)) (model.Answer, error) {
	if m.asked++; m.asked > 1 {
		return model.Answer{Stop: model.StopEnd, Message: model.Message{Role: model.RoleAssistant, Parts: []model.Part{{Text: "whole"}}},
			Usage: team.Usage{InputTokens: 1000, OutputTokens: 5}}, nil
	}
	on(model.Delta{Text: m.text})
	return model.Answer{Usage: m.usage}, &model.Error{Kind: model.Cut, Provider: "p", Text: "cut"}
}

func (m *cutOnce) Models(context.Context) ([]model.Info, error) { return nil, nil }

// TestUsageOfCutStreams checks that a request which was cut and made again is counted: what was
// reported of it, and that the rest is unknown.
func TestUsageOfCutStreams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model cutOnce
		want  team.Usage
	}{
		"before anything": {cutOnce{}, team.Usage{InputTokens: 1000, OutputTokens: 5}},
		"reported":        {cutOnce{usage: team.Usage{InputTokens: 1000}}, team.Usage{InputTokens: 2000, OutputTokens: 5, Unknown: 1}},
		"said":            {cutOnce{text: "who"}, team.Usage{InputTokens: 1000, OutputTokens: 5, Unknown: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServed(t)
			s.model = &c.model
			s.start(ServeIn{First: "you are dev"})
			s.tell("go")
			s.said("whole")
			s.rested()
			var used team.Usage
			if err := json.Unmarshal(s.turns()[0].Usage, &used); err != nil || used != c.want {
				t.Errorf("the turn has used %+v, %v, want %+v", used, err, c.want)
			}
		})
	}
}

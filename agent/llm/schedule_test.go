package llm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/agent/model"
)

// TestSchedule checks that a temporary error is retried after the delay that the provider
// requests, or after delays that double. Eight failed tries are followed by a pause of five
// minutes; after three pauses the turn fails.
func TestSchedule(t *testing.T) {
	t.Parallel()
	const s, m = time.Second, time.Minute
	row := []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, m}
	var all []time.Duration
	for range maxPauses {
		all = append(append(all, row...), jobPause)
	}
	all = append(all, row...)
	stream := func(answer func(n int) (*model.Answer, error)) (*testDesk, model.Answer, error) {
		desk := &testDesk{}
		r := &turn{Runner: &Runner{Jitter: func() float64 { return 1 }}, desk: desk}
		r.setup.Provider = &scripted{answer: func(n int, _ model.Request) (*model.Answer, error) { return answer(n) }}
		a, err := r.stream(t.Context(), func(context.Context) (model.Request, error) { return model.Request{}, nil })
		return desk, a, err
	}
	desk, _, err := stream(func(int) (*model.Answer, error) {
		return nil, &model.Error{Kind: model.Cut, Provider: "p", Text: "cut"}
	})
	if err == nil || !slices.Equal(desk.waits, all) {
		t.Errorf("%v, %v\nwant %v", err, desk.waits, all)
	}
	last := says("at last")
	last.Notice = "a notice"
	desk, a, err := stream(func(n int) (*model.Answer, error) {
		if n == 1 {
			return nil, &model.Error{Kind: model.Temporary, Provider: "p", Status: 429, After: 90 * s}
		}
		return &last, nil
	})
	if err != nil || a.Message.Parts[0].Text != "at last" || !slices.Equal(desk.waits, []time.Duration{90 * s}) {
		t.Errorf("%+v, %v, %v", a, err, desk.waits)
	}
	if !strings.Contains(desk.screen.String(), "[a notice]") {
		t.Errorf("no notice: %s", desk.screen.String())
	}
	desk, _, err = stream(func(int) (*model.Answer, error) {
		return nil, &model.Error{Kind: model.Refused, Provider: "p", Text: "no"}
	})
	if err == nil || len(desk.waits) != 0 {
		t.Errorf("refused: %v, %v", err, desk.waits)
	}
}

// TestLoginIsReadAgain checks that a request that was refused for its key is made again with the
// provider of the configuration as it is then, and with the one before while that cannot be read.
func TestLoginIsReadAgain(t *testing.T) {
	t.Parallel()
	refused := func(int, model.Request) (*model.Answer, error) {
		return nil, &model.Error{Kind: model.Login, Provider: "p", Status: 401}
	}
	last := says("at last")
	reads := 0
	desk := &testDesk{}
	r := &turn{Runner: &Runner{}, desk: desk, setup: Setup{
		Provider: &scripted{answer: refused},
		Reopen: func(context.Context) (model.Provider, error) {
			if reads++; reads == 1 {
				return nil, errors.New("half a file")
			}
			return &scripted{answer: func(int, model.Request) (*model.Answer, error) { return &last, nil }}, nil
		},
	}}
	a, err := r.stream(t.Context(), func(context.Context) (model.Request, error) { return model.Request{}, nil })
	if err != nil || a.Message.Parts[0].Text != "at last" || reads != 2 || len(desk.waits) != 2 {
		t.Errorf("%+v, %v after %d reads, waits %v", a, err, reads, desk.waits)
	}
	if !strings.Contains(desk.screen.String(), "[half a file]") {
		t.Errorf("the screen: %s", desk.screen.String())
	}
}

package model_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/messages"
	"github.com/teamctl/teamctl/agent/model/wire"
)

const wholeStream = `event: message_start
data: {"type":"message_start","message":{"usage":{"input_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"so"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}

event: message_stop
data: {"type":"message_stop"}

`

// slowly sends a body in parts, with a pause before each, or never sends headers if mute.
type slowly struct {
	parts []string
	pause time.Duration
	mute  bool
}

func (s slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.mute {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: r,
		Body: io.NopCloser(&slowBody{slowly: s, ctx: r.Context()}),
	}, nil
}

type slowBody struct {
	slowly
	ctx context.Context
}

func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.parts) == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(b.pause):
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
	n := copy(p, b.parts[0])
	if b.parts[0] = b.parts[0][n:]; b.parts[0] == "" {
		b.parts = b.parts[1:]
	}
	return n, nil
}

// TestSilence checks that a request is given up after 120 seconds without data, but not if data
// arrives slowly or if the caller takes its time.
func TestSilence(t *testing.T) {
	for _, c := range []struct {
		name   string
		server slowly
		takes  time.Duration // time the caller takes for each delta
		cut    bool
	}{
		{"slow", slowly{parts: strings.SplitAfter(wholeStream, "\n"), pause: wire.IdleLimit - time.Second}, 0, false},
		{"silent", slowly{parts: strings.SplitAfter(wholeStream, "\n"), pause: wire.IdleLimit + time.Second}, 0, true},
		{"mute", slowly{mute: true}, 0, true},
		{"slow caller", slowly{parts: []string{wholeStream}}, 3 * wire.IdleLimit, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := messages.New(wire.Endpoint{Name: "p", BaseURL: "http://slow.test", Client: &http.Client{Transport: c.server}})
				began := time.Now()
				_, err := p.Stream(t.Context(), model.Request{Model: "m", Messages: []model.Message{user("hi")}}, func(model.Delta) { time.Sleep(c.takes) }) //nolint:forbidigo // in a bubble: the time is not real
				k, _ := model.KindOf(err)
				if c.cut != (err != nil) || c.cut && (k != model.Cut || time.Since(began) != wire.IdleLimit || !strings.Contains(err.Error(), "2m0s")) {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
			})
		})
	}
}

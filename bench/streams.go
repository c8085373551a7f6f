package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/messages"
	"github.com/teamctl/teamctl/agent/model/openai"
	"github.com/teamctl/teamctl/agent/model/wire"
)

// streams: what decoding a long answer adds to reading its events with encoding/json.
var streams = benchmark{name: "streams", title: "Answers of models, decoded", run: runStreams, note: streamsNote}

const streamsNote = "The floor reads the same stream over loopback and decodes each event into a struct of just its text. Beyond it an answer is kept with the provider's own bytes, " +
	"since a later request must repeat them, and each piece is handed on as it arrives."

const (
	goalDecoded = 1.3      // x the events alone
	longStream  = 50 << 20 // bytes
	pieceText   = "a piece of text of an ordinary length, \\\"quoted\\\" "
)

// protocol is a protocol of models with the events of a stream. Each head and tail is complete.
type protocol struct {
	name            string
	head, one, tail string // data of events, a line each
	provider        func(wire.Endpoint) model.Provider
	text            func(data []byte) (string, error) // of an event, with encoding/json alone
}

var protocols = []protocol{
	{
		name:     "messages",
		head:     `{"type":"message_start","message":{"usage":{"input_tokens":1}}}` + "\n" + `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		one:      `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + pieceText + `"}}`,
		tail:     `{"type":"content_block_stop","index":0}` + "\n" + `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}` + "\n" + `{"type":"message_stop"}`,
		provider: func(e wire.Endpoint) model.Provider { return messages.New(e) },
		text: func(data []byte) (string, error) {
			var ev struct {
				Delta struct {
					Text string `json:"text"`
				} `json:"delta"`
			}
			err := json.Unmarshal(data, &ev)
			return ev.Delta.Text, err
		},
	},
	{
		name:     "chat",
		head:     `{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`,
		one:      `{"choices":[{"index":0,"delta":{"content":"` + pieceText + `"}}]}`,
		tail:     `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}` + "\n[DONE]",
		provider: func(e wire.Endpoint) model.Provider { return &openai.Chat{Endpoint: e} },
		text: func(data []byte) (string, error) {
			if string(data) == "[DONE]" {
				return "", nil
			}
			var ev struct {
				Choices []struct {
					Delta struct {
						Content string `json:"content"`
					} `json:"delta"`
				} `json:"choices"`
			}
			err := json.Unmarshal(data, &ev)
			if err != nil || len(ev.Choices) == 0 {
				return "", err
			}
			return ev.Choices[0].Delta.Content, nil
		},
	},
	{
		name:     "responses",
		head:     `{"type":"response.created","response":{"status":"in_progress"}}`,
		one:      `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"` + pieceText + `"}`,
		tail:     `{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
		provider: func(e wire.Endpoint) model.Provider { return &openai.Responses{Endpoint: e} },
		text: func(data []byte) (string, error) {
			var ev struct {
				Delta string `json:"delta"`
			}
			err := json.Unmarshal(data, &ev)
			return ev.Delta, err
		},
	},
}

// stream is the body of an answer of some size, and how much text is in it.
func (p protocol) stream(size int) (body []byte, text int) {
	var b bytes.Buffer
	put := func(data string) { fmt.Fprintf(&b, "data: %s\n\n", data) }
	for line := range strings.Lines(p.head) {
		put(strings.TrimSpace(line))
	}
	for b.Len() < size {
		put(p.one)
		text += len(strings.ReplaceAll(pieceText, "\\", ""))
	}
	for line := range strings.Lines(p.tail) {
		put(strings.TrimSpace(line))
	}
	return b.Bytes(), text
}

func runStreams(ctx context.Context, e env) (string, error) {
	size, rounds := longStream, max(3, e.rounds/8)
	if e.quick {
		size = 4 << 20
	}
	var figures []figure
	for _, p := range protocols {
		body, text := p.stream(size)
		floor, ours, err := decoded(ctx, p, body, text, rounds)
		if err != nil {
			return "", fmt.Errorf("%s: %w", p.name, err)
		}
		figures = append(figures, figure{what: fmt.Sprintf("%s, %d MB", p.name, size>>20), floor: "the events alone", bare: inMillis(floor), ours: inMillis(ours), unit: "ms", goal: ratioAtMost(goalDecoded)})
	}
	return table(rounds, "", figures), nil
}

// decoded reads an answer in turn as its floor and as the agent.
func decoded(ctx context.Context, p protocol, body []byte, text, rounds int) (floor, ours []time.Duration, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(body) // whoever asks sees when it is cut
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	defer func() {
		err = errors.Join(err, server.Close())
		if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}()
	url := "http://" + l.Addr().String()
	provider := p.provider(wire.Endpoint{Name: "bench", BaseURL: url})
	for range rounds {
		began := time.Now()
		n, err := p.bare(ctx, url)
		if err != nil || n != text {
			return nil, nil, errors.Join(err, fmt.Errorf("%d of %d bytes of text in the bare stream", n, text))
		}
		floor = append(floor, time.Since(began))
		n = 0
		began = time.Now()
		if _, err := provider.Stream(ctx, model.Request{Model: "bench", Messages: []model.Message{{Role: model.RoleUser, Parts: []model.Part{{Text: "go"}}}}}, func(d model.Delta) { n += len(d.Text) }); err != nil || n != text {
			return nil, nil, errors.Join(err, fmt.Errorf("%d of %d bytes of text in the answer", n, text))
		}
		ours = append(ours, time.Since(began))
	}
	return floor, ours, nil
}

// bare reads a stream and decodes its events.
func (p protocol) bare(ctx context.Context, url string) (text int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	for in := bufio.NewScanner(res.Body); ; {
		if !in.Scan() {
			return text, in.Err()
		}
		data, is := bytes.CutPrefix(in.Bytes(), []byte("data: "))
		if !is {
			continue
		}
		piece, err := p.text(data)
		if err != nil {
			return text, err
		}
		text += len(piece)
	}
}

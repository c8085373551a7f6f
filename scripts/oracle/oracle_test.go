package oracle

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/goccy/go-yaml"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/messages"
	ours "github.com/teamctl/teamctl/agent/model/openai"
	"github.com/teamctl/teamctl/agent/model/wire"
	"github.com/teamctl/teamctl/internal/fakemodel"
)

// said is an answer as both sides can tell it.
type said struct {
	Text  string
	Calls []call
	Input int64 // tokens
	Out   int64
}

type call struct{ ID, Name, Input string }

func (s *said) call(id, name, input string) {
	var b bytes.Buffer
	if json.Compact(&b, []byte(input)) != nil {
		b.WriteString(input)
	}
	s.Calls = append(s.Calls, call{id, name, b.String()})
}

// canned gives the same answer to whoever asks, and keeps what was asked.
type canned struct {
	kind, body string
	asked      []byte
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	c.asked, _ = io.ReadAll(r.Body)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {c.kind}}, Body: io.NopCloser(strings.NewReader(c.body)), Request: r,
	}, nil
}

// protocol is one of the three, by both sides.
type protocol struct {
	path   string
	ours   func(wire.Endpoint) model.Provider
	theirs func(t *testing.T, c *http.Client) said
	params func() any // what their library makes of a request
}

var protocols = map[string]protocol{
	"messages": {
		"/v1/messages",
		func(e wire.Endpoint) model.Provider { return messages.New(e) },
		func(t *testing.T, c *http.Client) (out said) {
			client := anthropic.NewClient(anthropicoption.WithHTTPClient(c), anthropicoption.WithAPIKey("k"), anthropicoption.WithMaxRetries(0))
			s := client.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{Model: "m", MaxTokens: 1})
			var m anthropic.Message
			for s.Next() {
				if err := m.Accumulate(s.Current()); err != nil {
					t.Fatal(err)
				}
			}
			if s.Err() != nil {
				t.Fatal(s.Err())
			}
			for _, b := range m.Content {
				switch b.Type {
				case "text":
					out.Text += b.Text
				case "tool_use":
					out.call(b.ID, b.Name, string(b.Input))
				}
			}
			out.Input, out.Out = m.Usage.InputTokens+m.Usage.CacheReadInputTokens+m.Usage.CacheCreationInputTokens, m.Usage.OutputTokens
			return out
		},
		func() any { return &anthropic.MessageNewParams{} },
	},
	"chat": {
		"/v1/chat/completions",
		func(e wire.Endpoint) model.Provider { return &ours.Chat{Endpoint: e, OpenAI: true} },
		func(t *testing.T, c *http.Client) (out said) {
			client := openai.NewClient(option.WithHTTPClient(c), option.WithAPIKey("k"), option.WithMaxRetries(0))
			s := client.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{Model: "m"})
			var acc openai.ChatCompletionAccumulator
			for s.Next() {
				c := s.Current()
				acc.AddChunk(c)
				if c.Usage.TotalTokens > 0 { // which it adds up, where a server sends it twice
					out.Input, out.Out = c.Usage.PromptTokens, c.Usage.CompletionTokens
				}
			}
			if s.Err() != nil || len(acc.Choices) == 0 {
				t.Fatal(s.Err(), acc.Choices)
			}
			out.Text = acc.Choices[0].Message.Content
			for _, c := range acc.Choices[0].Message.ToolCalls {
				out.call(c.ID, c.Function.Name, c.Function.Arguments)
			}
			return out
		},
		func() any { return &openai.ChatCompletionNewParams{} },
	},
	"responses": {
		"/v1/responses",
		func(e wire.Endpoint) model.Provider { return &ours.Responses{Endpoint: e} },
		func(t *testing.T, c *http.Client) (out said) {
			client := openai.NewClient(option.WithHTTPClient(c), option.WithAPIKey("k"), option.WithMaxRetries(0))
			s := client.Responses.NewStreaming(t.Context(), responses.ResponseNewParams{Model: "m"})
			var r responses.Response
			for s.Next() {
				if e := s.Current(); e.Type == "response.completed" {
					r = e.Response
				}
			}
			if s.Err() != nil || r.ID == "" {
				t.Fatal(s.Err(), r.ID)
			}
			out.Text = r.OutputText()
			for _, i := range r.Output {
				if i.Type == "function_call" {
					out.call(i.CallID, i.Name, i.Arguments.OfString)
				}
			}
			out.Input, out.Out = r.Usage.InputTokens, r.Usage.OutputTokens
			return out
		},
		func() any { return &responses.ResponseNewParams{} },
	},
}

// ask asks by our provider.
func (p protocol) ask(t *testing.T, c *http.Client, r model.Request) (said, model.Answer) {
	t.Helper()
	a, err := p.ours(wire.Endpoint{Name: "o", BaseURL: "http://oracle.test", Client: c}).Stream(t.Context(), r, func(model.Delta) {})
	if err != nil {
		t.Fatal(err)
	}
	out := said{Input: a.Usage.InputTokens, Out: a.Usage.OutputTokens}
	for _, part := range a.Message.Parts {
		out.Text += part.Text
		if part.Call != nil {
			out.call(part.Call.ID, part.Call.Name, string(part.Call.Input))
		}
	}
	return out, a
}

// compare has both sides read one stream.
func (p protocol) compare(t *testing.T, body string) model.Answer {
	t.Helper()
	c := &http.Client{Transport: &canned{kind: "text/event-stream", body: body}}
	got, a := p.ask(t, c, model.Request{Model: "m", Messages: []model.Message{user("go")}})
	if want := p.theirs(t, c); !reflect.DeepEqual(got, want) {
		t.Errorf("ours   %+v\ntheirs %+v", got, want)
	}
	return a
}

func user(text string) model.Message {
	return model.Message{Role: model.RoleUser, Parts: []model.Part{{Text: text}}}
}

// TestRecorded: what providers have sent means the same to both.
func TestRecorded(t *testing.T) {
	files, err := filepath.Glob("../../agent/model/testdata/wire/*treaming.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			var rec struct {
				Interactions []struct {
					Request  struct{ URL string }
					Response struct{ Body string }
				}
			}
			if err := yaml.Unmarshal(b, &rec); err != nil {
				t.Fatal(err)
			}
			for _, x := range rec.Interactions {
				p := protocols["chat"]
				switch {
				case strings.HasSuffix(x.Request.URL, "/messages"):
					p = protocols["messages"]
				case strings.HasSuffix(x.Request.URL, "/responses"):
					p = protocols["responses"]
				}
				p.compare(t, x.Response.Body)
			}
		})
	}
}

// TestServer: the test server's streams mean the same to both, and their libraries know
// every field of our requests.
func TestServer(t *testing.T) {
	s, err := fakemodel.Start("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Strict()
	tools := []model.Tool{{Name: "note", Description: "notes", Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)}}
	half := 0.5
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			msgs := []model.Message{user("begin"), {Role: model.RoleAssistant, From: model.Ref{Provider: "other", Model: "x"}, Parts: []model.Part{
				{Text: "foreign"}, {Call: &model.Call{ID: "call|foreign", Name: "note", Input: json.RawMessage(`{"text":"a"}`)}},
			}}}
			last := model.Message{Role: model.RoleUser, Cache: true, Parts: []model.Part{{Result: &model.Result{CallID: "call|foreign", Text: "done", Failed: true}}}}
			for _, line := range []string{`@@call note {"text":"Grüße <&> 👩‍👩‍👧"}`, "@@say Grüße <&> 👩‍👩‍👧", "@@say end"} {
				last.Parts = append(last.Parts, model.Part{Text: line})
				msgs = append(msgs, last)
				seen := &tap{}
				_, a := p.ask(t, &http.Client{Transport: seen.to(s.URL + p.path)}, model.Request{
					Model: "m", System: "system", Tools: tools, Messages: msgs, Ephemeral: "now", MaxOutput: 100, Temperature: &half, CacheKey: "key",
				})
				known(t, p.params(), seen.asked)
				p.compare(t, seen.answer.String())
				msgs = append(msgs, a.Message)
				last = model.Message{Role: model.RoleUser, Cache: true}
				for _, part := range a.Message.Parts {
					if part.Call != nil {
						last.Parts = append(last.Parts, model.Part{Result: &model.Result{CallID: part.Call.ID, Text: "done"}})
					}
				}
			}
		})
	}
}

// tap sends requests to a server and keeps both sides.
type tap struct {
	url    string
	asked  []byte
	answer bytes.Buffer
}

func (t *tap) to(url string) *tap { t.url = url; return t }

func (t *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	t.asked, _ = io.ReadAll(r.Body)
	req, err := http.NewRequestWithContext(r.Context(), r.Method, t.url, bytes.NewReader(t.asked))
	if err != nil {
		return nil, err
	}
	req.Header = r.Header
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(resp.Body, &t.answer), resp.Body}
	return resp, nil
}

// known has their library read a request and write it again: a field that it does not know
// would be missing. That a stream is asked for is no field of theirs.
func known(t *testing.T, params any, body []byte) {
	t.Helper()
	if err := json.Unmarshal(body, params); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	again, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(again, &got); err != nil {
		t.Fatal(err)
	}
	delete(want, "stream")
	delete(got, "stream")
	plain(want)
	plain(got)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("sent  %s\nknown %s", body, again)
	}
}

// plain takes out what they write in another way: a result as a list, no null, and of a
// message that was theirs no id and status. Google's extra_content they do not know.
func plain(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			plain(e)
		}
	case map[string]any:
		if list, ok := v["content"].([]any); ok && v["type"] == "tool_result" && len(list) == 1 {
			v["content"] = list[0].(map[string]any)["text"]
		}
		if v["type"] == "message" {
			delete(v, "id")
			delete(v, "status")
		}
		delete(v, "extra_content")
		for k, e := range v {
			if e == nil {
				delete(v, k)
			}
			plain(e)
		}
	}
}

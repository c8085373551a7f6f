package model_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/messages"
	"github.com/teamctl/teamctl/agent/model/openai"
	"github.com/teamctl/teamctl/agent/model/wire"
)

// exchange is a recorded request with its response.
type exchange struct {
	Request struct {
		Body string
		URL  string
	}
	Response struct {
		Body    string
		Status  int `yaml:"code"`
		Headers map[string][]string
	}
}

// recorded reads all exchanges in testdata.
func recorded(t *testing.T) map[string][]exchange {
	t.Helper()
	files, err := filepath.Glob("testdata/wire/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err, "no exchanges")
	}
	all := map[string][]exchange{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var rec struct{ Interactions []exchange }
		if err := yaml.Unmarshal(b, &rec); err != nil {
			t.Fatal(f, err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".yaml")] = rec.Interactions
	}
	return all
}

// answering is an http.RoundTripper that returns one response.
type answering struct {
	kind string
	body io.Reader
	got  []byte // body of the request
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	a.got, _ = io.ReadAll(r.Body)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {a.kind}}, Body: io.NopCloser(a.body), Request: r,
	}, nil
}

// provider returns a provider of the protocol that a URL belongs to.
func provider(url string, e wire.Endpoint) model.Provider {
	switch {
	case strings.HasSuffix(url, "/messages"):
		return messages.New(e)
	case strings.HasSuffix(url, "/responses"):
		return &openai.Responses{Endpoint: e}
	}
	return &openai.Chat{Endpoint: e}
}

// play sends a request in the protocol of the exchange, and answers it with body.
func play(t *testing.T, x exchange, r model.Request, body io.Reader) (model.Answer, string, []byte, error) {
	t.Helper()
	server := &answering{kind: "text/event-stream", body: body}
	if strings.HasPrefix(strings.TrimSpace(x.Response.Body), "{") {
		server.kind = "application/json"
	}
	p := provider(x.Request.URL, wire.Endpoint{Name: "rec", BaseURL: "http://rec.test", Client: &http.Client{Transport: server}})
	var shown strings.Builder
	a, err := p.Stream(t.Context(), r, func(d model.Delta) { shown.WriteString(d.Text) })
	return a, shown.String(), server.got, err
}

// TestReplay checks that recorded answers are decoded, shown as they are stored, and sent back
// byte for byte, however the bytes arrive.
func TestReplay(t *testing.T) {
	t.Parallel()
	for name, all := range recorded(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var conversation []model.Message
			for i, x := range all {
				var asked struct{ Model string }
				if err := json.Unmarshal([]byte(x.Request.Body), &asked); err != nil {
					t.Fatal(err)
				}
				r := model.Request{Model: asked.Model, Messages: append(conversation, model.Message{Role: model.RoleUser, Parts: []model.Part{{Text: "go"}}})}
				got, shown, _, err := play(t, x, r, strings.NewReader(x.Response.Body))
				if err != nil {
					t.Fatalf("exchange %d: %v", i, err)
				}
				text := ""
				var results []model.Part
				for _, p := range got.Message.Parts {
					text += p.Text
					if p.Call != nil {
						if !json.Valid(p.Call.Input) || p.Call.Input[0] != '{' || p.Call.ID == "" || p.Call.Name == "" {
							t.Errorf("call %+v", *p.Call)
						}
						if !strings.Contains(x.Response.Body, p.Call.ID) {
							t.Errorf("the id %s of a call is not the provider's", p.Call.ID)
						}
						results = append(results, model.Part{Result: &model.Result{CallID: p.Call.ID, Text: "5"}})
					}
				}
				if text != shown && streamed(x) {
					t.Errorf("shown %q, kept %q", shown, text)
				}
				if (got.Stop == model.StopCalls) != (len(results) > 0) || len(got.Message.Parts) == 0 {
					t.Errorf("stop %s with %d calls, %d parts", got.Stop, len(results), len(got.Message.Parts))
				}
				if got.Usage.InputTokens == 0 || got.Usage.OutputTokens == 0 {
					t.Errorf("usage %+v", got.Usage)
				}

				if streamed(x) {
					for how, body := range map[string]io.Reader{
						"byte by byte": iotest.OneByteReader(strings.NewReader(x.Response.Body)),
						"CR LF":        strings.NewReader(strings.ReplaceAll(x.Response.Body, "\n", "\r\n")),
						"CR":           strings.NewReader(strings.ReplaceAll(x.Response.Body, "\n", "\r")),
						"comments":     strings.NewReader(strings.ReplaceAll(x.Response.Body, "\n\n", "\n\n: ping\nretry: 3\n\n")),
						"EOF at once":  iotest.DataErrReader(strings.NewReader(strings.TrimSpace(x.Response.Body))),
					} {
						again, _, _, err := play(t, x, r, body)
						if err != nil {
							t.Errorf("%s: %v", how, err)
						} else if diff := cmp.Diff(got, again); diff != "" {
							t.Errorf("%s: %s", how, diff)
						}
					}
				}

				// The next request sends the answer back unchanged, but never to another model.
				if len(results) == 0 {
					results = []model.Part{{Text: "more"}}
				}
				conversation = append(r.Messages, got.Message, model.Message{Role: model.RoleUser, Parts: results})
				next := model.Request{Model: asked.Model, Messages: conversation}
				_, _, body, _ := play(t, x, next, strings.NewReader(x.Response.Body))
				raw := bytes.TrimSuffix(bytes.TrimPrefix(got.Message.Raw, []byte("[")), []byte("]"))
				if len(raw) == 0 || !bytes.Contains(body, raw) || !json.Valid(body) {
					t.Errorf("the answer does not go back as it came: %s in %s", raw, body)
				}
				next.Model += "-next"
				_, _, body, _ = play(t, x, next, strings.NewReader(x.Response.Body))
				if !json.Valid(body) {
					t.Errorf("another model is sent %s", body)
				}
				for _, own := range secrets().FindAllString(string(raw), -1) {
					if strings.Contains(string(body), own) {
						t.Errorf("another model gets %s", own)
					}
				}
			}
		})
	}
}

// secrets matches the fields of an answer that are valid for its own model only.
var secrets = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"(signature|encrypted_content|data|reasoning|reasoning_content|thinking|call_id|id)":"[^"]+"`)
})

// streamed reports whether an exchange was streamed.
func streamed(x exchange) bool { return !strings.HasPrefix(strings.TrimSpace(x.Response.Body), "{") }

// TestReplayCut checks that a stream that ends early, at any byte, is never taken for a complete
// answer.
func TestReplayCut(t *testing.T) {
	t.Parallel()
	cuts := 400
	if testing.Short() {
		cuts = 50
	}
	for name, all := range recorded(t) {
		for i, x := range all {
			if !streamed(x) {
				continue
			}
			r := model.Request{Model: "m", Messages: []model.Message{{Role: model.RoleUser, Parts: []model.Part{{Text: "go"}}}}}
			whole, _, _, err := play(t, x, r, strings.NewReader(x.Response.Body))
			if err != nil {
				t.Fatal(name, err)
			}
			step := 1 + len(x.Response.Body)/cuts
			for n := 0; n < len(x.Response.Body); n += step {
				got, _, _, err := play(t, x, r, strings.NewReader(x.Response.Body[:n]))
				if err == nil {
					got.Usage = whole.Usage // a chat server sends it after the end
					if diff := cmp.Diff(whole, got); diff != "" {
						t.Fatalf("%s %d cut at %d is an answer: %s", name, i, n, diff)
					}
				} else if k, ok := model.KindOf(err); !ok || k != model.Cut {
					t.Fatalf("%s %d cut at %d: %v", name, i, n, err)
				}
			}
		}
	}
}

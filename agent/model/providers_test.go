package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/messages"
	"github.com/teamctl/teamctl/agent/model/openai"
	"github.com/teamctl/teamctl/agent/model/wire"
	"github.com/teamctl/teamctl/internal/fakemodel"
	"github.com/teamctl/teamctl/team"
)

// strict starts a server that refuses the requests that vendors refuse.
func strict(t *testing.T) *fakemodel.Server {
	t.Helper()
	s, err := fakemodel.Start("", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.Strict()
	return s
}

// protocols returns a provider of each protocol, all of them at one server.
func protocols(s *fakemodel.Server, idle time.Duration) map[string]model.Provider {
	at := func(name, base string) wire.Endpoint { return wire.Endpoint{Name: name, BaseURL: base, Idle: idle} }
	return map[string]model.Provider{
		"messages":  messages.New(at("messages", s.URL)),
		"chat":      &openai.Chat{Endpoint: at("chat", s.URL+"/v1"), OpenAI: true},
		"responses": &openai.Responses{Endpoint: at("responses", s.URL+"/v1")},
	}
}

func user(text string) model.Message {
	return model.Message{Role: model.RoleUser, Parts: []model.Part{{Text: text}}}
}

var tools = []model.Tool{
	{Name: "shell", Description: "runs < & >", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)},
	{Name: "note", Schema: json.RawMessage(`{"type":"object"}`)},
}

// numbers matches the part of an id that differs between answers.
var numbers = regexp.MustCompile(`_fake\d+`)

// flat returns an answer as comparable text, without the raw bytes, whose signed ids differ as
// well.
func flat(t *testing.T, a model.Answer) string {
	t.Helper()
	a.Usage = team.Usage{}
	a.Message.Raw = nil
	b, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return numbers.ReplaceAllString(string(b), "")
}

const said = "Grüße & <tags> 👩‍👩‍👧 \\ \"quoted\""

// TestFaultsAtEveryEvent checks that a fault at any event yields either a complete answer or an
// error of a kind that is retried, and that the retry yields the same answer.
func TestFaultsAtEveryEvent(t *testing.T) {
	t.Parallel()
	s := strict(t)
	var fault atomic.Pointer[fakemodel.Fault]
	s.Break(func(fakemodel.Request) *fakemodel.Fault { return fault.Load() })
	for _, script := range []string{"@@say " + said, `@@call note {"text":"` + strings.ReplaceAll(strings.ReplaceAll(said, `\`, `\\`), `"`, `\"`) + `"}`} {
		for name, p := range protocols(s, 30*time.Millisecond) {
			patient := protocols(s, 0)[name]
			ask := func(p model.Provider) (string, string, error) {
				var shown strings.Builder
				a, err := p.Stream(t.Context(), model.Request{Model: "m", Tools: tools, Messages: []model.Message{user(script)}}, func(d model.Delta) { shown.WriteString(d.Text) })
				return flat(t, a), shown.String(), err
			}
			fault.Store(nil)
			want, shown, err := ask(patient)
			if err != nil || shown != "" && shown != said || !strings.Contains(want, "Grüße") {
				t.Fatalf("%s: %s, shown %q: %v", name, want, shown, err)
			}
			fault.Store(&fakemodel.Fault{Whole: true})
			if got, _, err := ask(patient); err != nil || got != want {
				t.Errorf("%s not streamed: %v\n%s\n%s", name, err, got, want)
			}
			for _, how := range []fakemodel.How{
				fakemodel.Reset, fakemodel.End, fakemodel.Stall, fakemodel.Failing, fakemodel.Malformed,
				fakemodel.Trickle, fakemodel.CRLF, fakemodel.Noise,
			} {
				kind, wrong := map[fakemodel.How]model.Kind{
					fakemodel.Reset: model.Cut, fakemodel.End: model.Cut, fakemodel.Stall: model.Cut,
					fakemodel.Failing: model.Temporary, fakemodel.Malformed: model.Cut,
				}[how]
				ends := false
				for after := 0; !ends && after < 100; after++ {
					f := &fakemodel.Fault{How: how, After: after, Bytes: 10 * (after % 8)}
					fault.Store(f)
					asked := patient
					if how == fakemodel.Stall {
						asked = p
					}
					got, _, err := ask(asked)
					switch k, _ := model.KindOf(err); {
					case err == nil:
						if got != want {
							t.Errorf("%s, %s after %d: %s", name, how, after, cmp.Diff(want, got))
						}
						ends = wrong // the fault came after the last event
					case !wrong:
						t.Errorf("%s, %s after %d: %v", name, how, after, err)
					case k != kind:
						t.Errorf("%s, %s after %d: %v is %s, want %s", name, how, after, err, k, kind)
					}
					if !wrong && (how != fakemodel.Noise || after >= 12) { // the others do not depend on the event
						break
					}
				}
				if wrong && !ends {
					t.Errorf("%s, %s: never a complete answer", name, how)
				}
			}
			fault.Store(nil)
			if got, _, err := ask(patient); err != nil || got != want {
				t.Errorf("%s asked again: %v", name, err)
			}
		}
	}
}

// TestUsageOfStopped checks that a request which is ended before its answer returns the usage that
// the provider has reported by then: Messages reports the input at once, Chat Completions nothing.
func TestUsageOfStopped(t *testing.T) {
	t.Parallel()
	s := strict(t)
	s.Break(func(fakemodel.Request) *fakemodel.Fault {
		return &fakemodel.Fault{How: fakemodel.Stall, After: 3}
	})
	for name, p := range protocols(s, 0) {
		if name == "responses" { // reports only with its last event
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			a, err := p.Stream(ctx, model.Request{Model: "m", Tools: tools, Messages: []model.Message{user("@@say " + strings.Repeat(said, 10))}}, func(model.Delta) { cancel() })
			if err == nil || ctx.Err() == nil {
				t.Fatalf("%+v, %v", a, err)
			}
			if reports := name == "messages"; (a.Usage.InputTokens > 0) != reports {
				t.Errorf("usage %+v", a.Usage)
			}
		})
	}
}

// TestTwice checks that a repeated event of a response counts once, by its number. Events of the
// other protocols have no number.
func TestTwice(t *testing.T) {
	t.Parallel()
	s := strict(t)
	var fault atomic.Pointer[fakemodel.Fault]
	s.Break(func(fakemodel.Request) *fakemodel.Fault { return fault.Load() })
	p := protocols(s, 0)["responses"]
	for after := range 30 {
		fault.Store(&fakemodel.Fault{How: fakemodel.Double, After: after})
		var shown strings.Builder
		a, err := p.Stream(t.Context(), model.Request{Model: "m", Tools: tools, Messages: []model.Message{user("@@say " + said)}}, func(d model.Delta) { shown.WriteString(d.Text) })
		if err != nil || shown.String() != said || a.Message.Parts[0].Text != said {
			t.Errorf("event %d: %q, %+v, %v", after, shown.String(), a.Message.Parts, err)
		}
	}
}

// TestRefusals checks the error for each status with its headers and text.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := strict(t)
	var fault atomic.Pointer[fakemodel.Fault]
	s.Break(func(fakemodel.Request) *fakemodel.Fault { return fault.Load() })
	soon := time.Now().Add(time.Hour).UTC()
	for _, c := range []struct {
		name   string
		status int
		header http.Header
		text   string
		kind   model.Kind
		after  time.Duration // upper bound; the error may have up to a minute less
		until  bool
	}{
		{"bad request", 400, nil, "messages: roles must alternate", model.Refused, 0, false},
		{"too long", 400, nil, "prompt is too long: 210000 tokens > 200000 maximum", model.TooLong, 0, false},
		{"too long, chat", 400, nil, "This model's maximum context length is 8192 tokens", model.TooLong, 0, false},
		{"too large", 413, nil, "request exceeds the maximum size", model.TooLong, 0, false},
		{"output bound", 400, nil, "max_tokens: 99999 > 64000", model.Refused, 0, false},
		{"key", 401, nil, "invalid x-api-key", model.Login, 0, false},
		{"permission", 403, nil, "not yours", model.Login, 0, false},
		{"payment", 402, nil, "your credit balance is too low", model.Limited, 0, false},
		{"not found", 404, nil, "no such model", model.Refused, 0, false},
		{"time-out", 408, nil, "", model.Temporary, 0, false},
		{"conflict", 409, nil, "", model.Temporary, 0, false},
		{"rate", 429, nil, "slow down", model.Temporary, 0, false},
		{"rate, seconds", 429, http.Header{"Retry-After": {"7"}}, "slow down", model.Temporary, 7 * time.Second, false},
		{"rate, milliseconds", 429, http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"7"}}, "slow down", model.Temporary, 1500 * time.Millisecond, false},
		{"rate, date", 429, http.Header{"Retry-After": {soon.Format(http.TimeFormat)}}, "slow down", model.Limited, time.Hour, true},
		{"rate, far", 429, http.Header{"Retry-After": {"3600"}}, "limit reached", model.Limited, time.Hour, true},
		{"rate, reset", 429, http.Header{"Anthropic-Ratelimit-Tokens-Remaining": {"0"}, "Anthropic-Ratelimit-Tokens-Reset": {soon.Format(time.RFC3339)}}, "", model.Limited, time.Hour, true},
		{"rate, other reset", 429, http.Header{"X-Ratelimit-Remaining-Requests": {"0"}, "X-Ratelimit-Reset-Requests": {"1m30s"}, "X-Ratelimit-Remaining-Tokens": {"9"}, "X-Ratelimit-Reset-Tokens": {"9h"}}, "", model.Temporary, 90 * time.Second, false},
		{"no retry", 429, http.Header{"X-Should-Retry": {"false"}}, "no", model.Refused, 0, false},
		{"retry", 400, http.Header{"X-Should-Retry": {"true"}}, "yes", model.Temporary, 0, false},
		{"bad header", 429, http.Header{"Retry-After": {"soon"}}, "slow down", model.Temporary, 0, false},
		{"server", 500, nil, "oops", model.Temporary, 0, false},
		{"gateway", 502, nil, "oops", model.Temporary, 0, false},
		{"overloaded", 529, nil, "Overloaded", model.Temporary, 0, false},
		{"redirect", 307, http.Header{"Location": {s.URL + "/elsewhere"}}, "moved", model.Refused, 0, false},
	} {
		for name, p := range protocols(s, 0) {
			fault.Store(&fakemodel.Fault{Status: c.status, Header: c.header, Text: c.text})
			_, err := p.Stream(t.Context(), model.Request{Model: "m", Messages: []model.Message{user("hi")}}, func(model.Delta) {})
			var e *model.Error
			if !errors.As(err, &e) {
				t.Fatalf("%s, %s: %v", c.name, name, err)
			}
			if e.Kind != c.kind || e.Status != c.status || e.Provider != name || !strings.Contains(e.Text, c.text) {
				t.Errorf("%s, %s: %s %+v", c.name, name, e.Kind, e)
			}
			if e.After > c.after || e.After < c.after-time.Minute || e.Until.IsZero() == c.until {
				t.Errorf("%s, %s: after %s until %s", c.name, name, e.After, e.Until)
			}
		}
	}
}

// TestQuota checks that the code or the message in an error body determines the kind of the
// error.
func TestQuota(t *testing.T) {
	t.Parallel()
	e := wire.Endpoint{Name: "p"}
	for body, want := range map[string]model.Kind{
		`{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`: model.Limited,
		`{"error":{"message":"x","type":"invalid_request_error","code":"context_length_exceeded"}}`:                       model.TooLong,
		`{"error":{"code":502,"message":"Upstream"}}`:                                                                     model.Temporary,
		`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`:                                              model.Temporary,
		`{"type":"error","error":{"type":"authentication_error","message":"x"}}`:                                          model.Login,
		`{"type":"error","code":"server_error","message":"x"}`:                                                            model.Temporary,
		`{"error":"out of memory"}`: model.Temporary,
		`[{"error":{"code":400,"message":"The input token count exceeds the maximum"}}]`: model.TooLong,
		`<html>`: model.Temporary,
	} {
		r := wire.ParseRefusal([]byte(body))
		if got := e.Error(r); got.Kind != want || got.Text == "" {
			t.Errorf("%s: %s %q", body, got.Kind, got.Text)
		}
	}
}

// TestNobodyThere checks that a refused connection is temporary, and that a cancelled request
// returns the error of its context.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	s := strict(t)
	all := protocols(s, 0)
	var waits fakemodel.Fault
	waits.How = fakemodel.Stall
	s.Break(func(fakemodel.Request) *fakemodel.Fault { return &waits })
	for name, p := range all {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, _ = s.Wait(ctx, func(r fakemodel.Request) bool { return strings.Contains(r.Body, "cancel "+name) })
			cancel()
		}()
		if _, err := p.Stream(ctx, model.Request{Model: "m", Messages: []model.Message{user("cancel " + name)}}, func(model.Delta) {}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, p := range all {
		_, err := p.Stream(t.Context(), model.Request{Model: "m", Messages: []model.Message{user("x")}}, func(model.Delta) {})
		if k, ok := model.KindOf(err); !ok || k != model.Temporary {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := p.Models(t.Context()); err == nil {
			t.Errorf("%s lists models of a server that is gone", name)
		}
	}
}

// TestLongLine checks that an event of 64 MB is read.
func TestLongLine(t *testing.T) {
	if testing.Short() {
		t.Skip("64 MB for each protocol")
	}
	s := strict(t)
	s.Break(func(fakemodel.Request) *fakemodel.Fault { return &fakemodel.Fault{How: fakemodel.Long, After: 1} })
	for name, p := range protocols(s, 0) {
		a, err := p.Stream(t.Context(), model.Request{Model: "m", Tools: tools, Messages: []model.Message{user("@@say here")}}, func(model.Delta) {})
		if err != nil || a.Message.Parts[0].Text != "here" {
			t.Errorf("%s: %+v, %v", name, a.Message.Parts, err)
		}
	}
}

// TestSwitch checks that a conversation with calls, reasoning and signatures can change from any
// protocol to any other, and that no server refuses it.
func TestSwitch(t *testing.T) {
	t.Parallel()
	s := strict(t)
	all := protocols(s, 0)
	order := []string{"messages", "chat", "responses", "messages", "responses", "chat", "chat", "messages"}
	msgs := []model.Message{user("begin")}
	for i, name := range order {
		for _, line := range []string{fmt.Sprintf(`@@call note {"n":%d,"text":"<&>"}`, i), "@@say " + said} {
			if last := &msgs[len(msgs)-1]; last.Role == model.RoleUser {
				last.Parts = append(last.Parts, model.Part{Text: line})
				last.Cache = true
			}
			a, err := all[name].Stream(t.Context(), model.Request{
				Model: "m", System: "system", Tools: tools, Messages: msgs, Ephemeral: "now", CacheKey: "key",
			}, func(model.Delta) {})
			if err != nil {
				t.Fatalf("step %d, %s: %v", i, name, err)
			}
			msgs = append(msgs, a.Message)
			next := model.Message{Role: model.RoleUser}
			for _, p := range a.Message.Parts {
				if p.Call != nil {
					next.Parts = append(next.Parts, model.Part{Result: &model.Result{CallID: p.Call.ID, Text: "done"}})
				}
			}
			msgs = append(msgs, next)
		}
	}
	calls := 0
	for _, m := range msgs {
		for _, p := range m.Parts {
			if p.Call != nil {
				calls++
			}
		}
	}
	if calls != len(order) {
		t.Errorf("%d calls, want %d", calls, len(order))
	}
}

// TestRequestsExtend checks that a request begins with the bytes of the previous one, apart from
// its ephemeral part.
func TestRequestsExtend(t *testing.T) {
	t.Parallel()
	s := strict(t)
	for name, p := range protocols(s, 0) {
		var msgs []model.Message
		var before string
		for i := range 4 {
			msgs = append(msgs, user(fmt.Sprintf("%d %s\n@@say %s", i, name, said)))
			a, err := p.Stream(t.Context(), model.Request{
				Model: "m", System: "system", Tools: tools, Messages: msgs, Ephemeral: fmt.Sprint("ephemeral ", i), CacheKey: "key",
			}, func(model.Delta) {})
			if err != nil {
				t.Fatal(err)
			}
			msgs = append(msgs, a.Message)
			all := s.Requests()
			body := all[len(all)-1].Body
			stable, _, ok := strings.Cut(before, fmt.Sprint("ephemeral ", i-1))
			// The JSON in front of the ephemeral text belongs to its part.
			stable = strings.TrimSuffix(strings.TrimSuffix(stable, `\n\n`), `},{"type":"text","text":"`)
			stable = strings.TrimSuffix(stable, `,{"type":"message","role":"user","content":[{"type":"input_text","text":"`)
			if i > 0 && (!ok || !strings.HasPrefix(body, stable)) {
				t.Errorf("%s, request %d does not begin with the one before:\n%s\n%s", name, i, stable, body)
			}
			if i > 1 && a.Usage.CachedTokens == 0 {
				t.Errorf("%s, request %d: no cached tokens: %+v", name, i, a.Usage)
			}
			before = body
		}
	}
}

// TestAnyConversation checks that the server of each protocol accepts the request made from any
// messages: each call is followed by exactly one result.
func TestAnyConversation(t *testing.T) {
	s := strict(t)
	all := protocols(s, 0)
	text := rapid.SampledFrom([]string{"", " ", "text", "\n", "more <&> text"})
	id := rapid.SampledFrom([]string{"", "a", "b", "call_1", "toolu_01", "with space", strings.Repeat("long", 30), "ü"})
	input := rapid.SampledFrom([]string{`{}`, `{"a":1}`, `"not json {"`, `[1]`, ``, `null`})
	from := rapid.SampledFrom([]model.Ref{{}, {Provider: "messages", Model: "m"}, {Provider: "chat", Model: "m"}, {Provider: "responses", Model: "m"}, {Provider: "script", Model: "demo"}})
	raw := rapid.SampledFrom([]string{``, `[]`, `[{"type":"text","text":"kept"}]`, `{"role":"assistant","content":"kept"}`, `broken`,
		`[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"kept"}]}]`})
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"messages", "chat", "responses"}).Draw(t, "protocol")
		var msgs []model.Message
		for range rapid.IntRange(0, 7).Draw(t, "messages") {
			m := model.Message{Role: model.RoleUser, Cache: rapid.Bool().Draw(t, "cache")}
			if rapid.Bool().Draw(t, "assistant") {
				m.Role, m.From = model.RoleAssistant, from.Draw(t, "from")
				if r := raw.Draw(t, "raw"); r != "" && strings.HasPrefix(r, "[") == (m.From.Provider != "chat") {
					if m.From.Provider != "messages" == strings.Contains(r, "output_text") || m.From.Provider == "chat" {
						m.Raw = json.RawMessage(r)
					}
				}
			}
			for range rapid.IntRange(0, 4).Draw(t, "parts") {
				var p model.Part
				switch rapid.IntRange(0, 2).Draw(t, "kind") {
				case 0:
					p.Text = text.Draw(t, "text")
				case 1:
					if m.Role == model.RoleAssistant {
						p.Call = &model.Call{ID: id.Draw(t, "id"), Name: "note", Input: json.RawMessage(input.Draw(t, "input"))}
					}
				case 2:
					if m.Role == model.RoleUser {
						p.Result = &model.Result{CallID: id.Draw(t, "id"), Text: text.Draw(t, "result"), Failed: rapid.Bool().Draw(t, "failed")}
					}
				}
				m.Parts = append(m.Parts, p)
			}
			msgs = append(msgs, m)
		}
		_, err := all[name].Stream(context.Background(), model.Request{Model: "m", Tools: tools, Messages: msgs, Ephemeral: text.Draw(t, "ephemeral")}, func(model.Delta) {})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	})
}

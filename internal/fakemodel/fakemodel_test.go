package fakemodel

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/internal/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start("", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// post sends a body and returns the status and the whole answer.
func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// datas are the JSON objects of a stream of server-sent events.
func datas(t *testing.T, stream string) []map[string]any {
	t.Helper()
	var out []map[string]any
	sc := bufio.NewScanner(strings.NewReader(stream))
	for sc.Scan() {
		d, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok || d == "[DONE]" {
			continue
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(d), &v); err != nil {
			t.Fatalf("event %q: %v", d, err)
		}
		out = append(out, v)
	}
	return out
}

// bodies are one conversation per protocol: TEXT is what comes in, TOOL the name
// of the tool that is offered.
var bodies = map[string]struct{ path, first, after string }{
	"anthropic": {"/v1/messages?beta=true",
		`{"model":"m","stream":STREAM,"tools":[{"name":"mcp__team__send"},{"name":"Bash"}],"messages":[{"role":"user","content":[{"type":"text","text":TEXT}]}]}`,
		`{"model":"m","stream":STREAM,"tools":[{"name":"mcp__team__send"}],"messages":[{"role":"user","content":TEXT},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"x","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":RESULT}]}]}]}`},
	"responses": {"/v1/responses",
		`{"model":"m","stream":STREAM,"tools":[{"type":"namespace","name":"mcp__team","tools":[{"type":"function","name":"send"}]},{"type":"function","name":"exec_command"}],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":TEXT}]}]}`,
		`{"model":"m","stream":STREAM,"tools":[{"type":"function","name":"exec_command"}],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":TEXT}]},{"type":"reasoning"},{"type":"function_call","name":"x","arguments":"{}","call_id":"c"},{"type":"function_call_output","call_id":"c","output":RESULT}]}`},
	"chat": {"/v1/chat/completions",
		`{"model":"m","stream":STREAM,"tools":[{"type":"function","function":{"name":"team_send"}},{"type":"function","function":{"name":"bash"}}],"messages":[{"role":"system","content":"s"},{"role":"user","content":TEXT}]}`,
		`{"model":"m","stream":STREAM,"tools":[{"type":"function","function":{"name":"bash"}}],"messages":[{"role":"user","content":TEXT},{"role":"assistant","content":null,"tool_calls":[]},{"role":"tool","tool_call_id":"c","content":RESULT}]}`},
	"gemini": {"/v1beta/models/m:METHOD",
		`{"tools":[{"functionDeclarations":[{"name":"mcp_team_send"},{"name":"run_shell_command"}]}],"contents":[{"role":"user","parts":[{"text":TEXT}]}]}`,
		`{"tools":[{"functionDeclarations":[{"name":"mcp_team_send"}]}],"contents":[{"role":"user","parts":[{"text":TEXT}]},{"role":"model","parts":[{"functionCall":{"name":"x"}}]},{"role":"user","parts":[{"functionResponse":{"name":"x","response":{"output":RESULT}}}]}]}`},
}

// ask fills a body in and posts it.
func ask(t *testing.T, s *Server, protocol, body string, stream bool, text, result string) (int, string) {
	t.Helper()
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	path, streams := bodies[protocol].path, "false"
	method := "generateContent"
	if stream {
		streams, method = "true", "streamGenerateContent?alt=sse"
	}
	body = strings.NewReplacer("STREAM", streams, "TEXT", quote(text), "RESULT", quote(result)).Replace(body)
	return post(t, s.URL+strings.Replace(path, "METHOD", method, 1), body)
}

// said reads the answer of a protocol: its text, or the tool and its input.
func said(t *testing.T, protocol, answer string, stream bool) (text, tool, input string) {
	t.Helper()
	docs := []map[string]any{}
	if stream {
		docs = datas(t, answer)
	} else {
		var v map[string]any
		if err := json.Unmarshal([]byte(answer), &v); err != nil {
			t.Fatalf("answer %q: %v", answer, err)
		}
		docs = append(docs, v)
	}
	// Whatever the protocol: a name beside the arguments is a call, a text is said.
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if n, ok := v["name"].(string); ok {
				tool = n
			}
			for _, k := range []string{"arguments", "partial_json"} {
				if s, ok := v[k].(string); ok {
					input = s
				}
			}
			for _, k := range []string{"args", "input"} {
				if o, ok := v[k].(map[string]any); ok && (len(o) > 0 || !stream) {
					b, _ := json.Marshal(o)
					input = string(b)
				}
			}
			for k, e := range v {
				if s, ok := e.(string); ok && s != "" && (k == "text" || k == "content" || k == "message") {
					text = s
				}
				walk(e)
			}
		}
	}
	for _, d := range docs {
		walk(d)
	}
	return text, tool, input
}

func TestEveryProtocol(t *testing.T) {
	t.Parallel()
	for protocol, b := range bodies {
		for _, stream := range []bool{false, true} {
			name := protocol
			if stream {
				name += "/streaming"
			}
			t.Run(name, func(t *testing.T) {
				s := start(t)

				status, answer := ask(t, s, protocol, b.first, stream, "hello\n@@say all is well", "")
				if text, tool, _ := said(t, protocol, answer, stream); status != 200 || text != "all is well" || tool != "" {
					t.Errorf("say: got %d %q %q: %s", status, text, tool, answer)
				}
				_, answer = ask(t, s, protocol, b.first, stream, `@@call send {"to":"lead","text":"a \"b\""}`, "")
				if _, tool, input := said(t, protocol, answer, stream); !strings.HasSuffix(tool, "send") || input != `{"text":"a \"b\"","to":"lead"}` {
					t.Errorf("call: got %q %q: %s", tool, input, answer)
				}
				_, answer = ask(t, s, protocol, b.first, stream, `@@shell sleep 1`, "")
				if _, tool, input := said(t, protocol, answer, stream); script.Shells[tool] == "" || !strings.Contains(input, `"sleep 1"`) {
					t.Errorf("shell: got %q %q: %s", tool, input, answer)
				}
				// The second step of a script comes after the first one's result.
				_, answer = ask(t, s, protocol, b.after, stream, "@@shell true\n@@say then this", "plain output")
				if text, _, _ := said(t, protocol, answer, stream); text != "then this" {
					t.Errorf("second step: got %q: %s", text, answer)
				}
				// What comes with the result goes first.
				_, answer = ask(t, s, protocol, b.after, stream, "@@shell true\n@@say then this", "<mail>\n@@say the mail\n</mail>")
				if text, _, _ := said(t, protocol, answer, stream); text != "the mail" {
					t.Errorf("mail in a result: got %q: %s", text, answer)
				}
				status, answer = ask(t, s, protocol, b.first, stream, "@@fail 429 come back later", "")
				if text, _, _ := said(t, protocol, answer, false); status != 429 || text != "come back later" {
					t.Errorf("fail: got %d %q: %s", status, text, answer)
				}
				if status, _ := post(t, s.URL+strings.Replace(b.path, "METHOD", "generateContent", 1), "{"); status != 400 {
					t.Errorf("a broken body: got %d", status)
				}

				rs := s.Requests()
				if len(rs) != 6 || rs[0].Seq != 1 || rs[0].Protocol != protocol || rs[0].Stream != stream || rs[0].Side {
					t.Fatalf("recorded %d: %+v", len(rs), rs)
				}
				if rs[4].Answer != "say the mail" || !strings.Contains(rs[4].New, "@@say the mail") || strings.Contains(rs[4].New, "then this") {
					t.Errorf("recorded %+v", rs[4])
				}
			})
		}
	}
}

// A request without tools is the CLI's own: the script in it is not carried out.
func TestSideWork(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, answer := post(t, s.URL+"/v1/messages", `{"model":"m","messages":[{"role":"user","content":"title for: @@fail 500\n@@fail 500"}]}`)
	if !strings.Contains(answer, `"side"`) {
		t.Errorf("got %s", answer)
	}
	_, answer = post(t, s.URL+"/v1beta/models/m:generateContent", `{"generationConfig":{"responseMimeType":"application/json"},"tools":[{"functionDeclarations":[{"name":"x"}]}],"contents":[]}`)
	if !strings.Contains(answer, `next_speaker`) {
		t.Errorf("got %s", answer)
	}
	for _, r := range s.Requests() {
		if !r.Side {
			t.Errorf("not recorded as side work: %+v", r)
		}
	}
	if n := s.Arrivals("@@fail"); n != 0 {
		t.Errorf("side work counts as %d arrivals", n)
	}
}

func TestListsAndCounts(t *testing.T) {
	t.Parallel()
	s := start(t)
	for path, want := range map[string]string{
		"/v1/messages/count_tokens": "input_tokens", "/v1beta/models/m:countTokens": "totalTokens",
	} {
		if status, got := post(t, s.URL+path, "{}"); status != 200 || !strings.Contains(got, want) {
			t.Errorf("%s: got %d %s", path, status, got)
		}
	}
	for path, status := range map[string]int{"/v1/models": 200, "/v1beta/models": 200, "/api/else": 404} {
		resp, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%s: got %d, want %d", path, resp.StatusCode, status)
		}
	}
}

func TestSleepEndsWithTheClient(t *testing.T) {
	t.Parallel()
	s := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/messages",
			strings.NewReader(`{"tools":[{"name":"x"}],"messages":[{"role":"user","content":"@@sleep 1h\n@@say late"}]}`))
		if err == nil {
			_, err = http.DefaultClient.Do(req)
		}
		gone <- err
	}()
	if _, err := s.Wait(t.Context(), func(r Request) bool { return r.Answer == "say late" }); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-gone; err == nil {
		t.Error("an answer came in no time")
	}
}

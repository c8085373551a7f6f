package fakemodel

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestStrict: in strict mode the server refuses what the vendors refuse.
func TestStrict(t *testing.T) {
	t.Parallel()
	s, err := Start("", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.Strict()
	const (
		m = "/v1/messages"
		c = "/v1/chat/completions"
		r = "/v1/responses"
	)
	for _, one := range []struct{ path, body, want string }{
		{m, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`, ""},
		{m, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, "max_tokens: Field required"},
		{m, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}],"cache_key":"x"}`, "Extra inputs"},
		{m, `{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":"hi"}]}`, "roles must alternate"},
		{m, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":" "}]}]}`, "non-empty"},
		{m, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"a b","name":"x","input":{}}]},{"role":"user","content":"b"}]}`, "ids must"},
		{m, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":{}}]},{"role":"user","content":"b"}]}`, "without `tool_result` blocks"},
		{m, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}]}`, "unexpected `tool_use_id`"},
		{m, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"y"}]},{"role":"user","content":"b"}]}`, "Invalid `signature`"},
		{m, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`, "prefill"},
		{c, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, ""},
		{c, `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}}]},{"role":"user","content":"b"}]}`, "must be followed by tool messages"},
		{c, `{"model":"m","messages":[{"role":"tool","tool_call_id":"a","content":"b"}]}`, "must be a response"},
		{c, `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":{}}}]}]}`, "arguments"},
		{r, `{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]}`, ""},
		{r, `{"model":"m","input":[{"type":"function_call_output","call_id":"a","output":"b"}]}`, "No tool call found"},
		{r, `{"model":"m","input":[{"type":"function_call","call_id":"a","name":"x","arguments":"{}"}]}`, "No tool output found"},
		{r, `{"model":"m","input":[{"type":"reasoning","id":"a","summary":[],"encrypted_content":"b"}]}`, "could not be verified"},
	} {
		resp, err := http.Post(s.URL+one.path, "application/json", strings.NewReader(one.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || (one.want == "") != (resp.StatusCode == 200) || !strings.Contains(string(answer), one.want) {
			t.Errorf("%s: %d %s, %v; want %q", one.body, resp.StatusCode, answer, err, one.want)
		}
	}
}

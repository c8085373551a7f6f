package wire

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/agent/model"
)

// longPause is the shortest pause that counts as a usage limit and not as congestion.
const longPause = 5 * time.Minute

// maxWords is the maximum length of the kept provider text.
const maxWords = 500

// Refusal is a provider's report of a failed request, in a body or in an event.
type Refusal struct {
	Status  int // 0 in an event without a status
	Type    string
	Code    string
	Text    string
	Headers http.Header // nil in an event
}

// statuses maps the providers' error types and codes to a status, for events after status 200 that
// name none.
var statuses = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "invalid_api_key": 401, "billing_error": 402,
	"permission_error": 403, "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429,
	"rate_limit_exceeded": 429, "insufficient_quota": 429, "api_error": 500, "server_error": 500,
	"timeout_error": 504, "overloaded_error": 529,
}

// overQuota and tooLong are codes and types; tooLongWords are texts of providers without a code. A
// wrong match costs one compaction, a missing one the turn.
var (
	overQuota    = []string{"insufficient_quota", "billing_error", "billing_hard_limit_reached", "usage_limit_reached", "quota_exceeded"}
	tooLong      = []string{"context_length_exceeded", "request_too_large", "exceed_context_size_error", "string_above_max_length"}
	tooLongWords = []string{
		"prompt is too long",                           // Anthropic
		"maximum context length",                       // OpenAI, vLLM
		"exceeds the context window",                   // OpenAI Responses
		"input token count exceeds",                    // Google
		"exceeds the available context size",           // llama.cpp
		"context length of only",                       // LM Studio
		"input length and `max_tokens` exceed context", // Anthropic
	}
)

// Error classifies a refusal.
func (e Endpoint) Error(r Refusal) *model.Error {
	out := &model.Error{Kind: model.Refused, Status: r.Status, Provider: e.Name, Text: shorten(r.Text)}
	status := r.Status
	if status == 0 || status == http.StatusOK {
		status = cmp.Or(statuses[r.Code], statuses[r.Type], number(r.Code), http.StatusInternalServerError)
	}
	now := e.now()
	out.After = pause(r.Headers, now)
	words := strings.ToLower(r.Text)
	is := func(all []string) bool { return slices.Contains(all, r.Code) || slices.Contains(all, r.Type) }
	switch {
	case is(tooLong) || status == http.StatusRequestEntityTooLarge ||
		status < 500 && slices.ContainsFunc(tooLongWords, func(w string) bool { return strings.Contains(words, w) }):
		out.Kind = model.TooLong
	case status == http.StatusPaymentRequired || is(overQuota), status == http.StatusTooManyRequests && out.After >= longPause:
		out.Kind = model.Limited
		if out.After > 0 {
			out.Until = now.Add(out.After)
		}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		out.Kind = model.Login
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests, status >= 500:
		out.Kind = model.Temporary
	}
	switch r.Headers.Get("X-Should-Retry") {
	case "true":
		if out.Kind == model.Refused {
			out.Kind = model.Temporary
		}
	case "false":
		if out.Kind == model.Temporary {
			out.Kind = model.Refused
		}
	}
	return out
}

func number(code string) int {
	n, err := strconv.Atoi(code)
	if err != nil || n < 400 || n > 599 {
		return 0
	}
	return n
}

// pause returns how long a provider asks to wait: Retry-After-Ms, Retry-After, else the reset of
// the limits that are used up.
func pause(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return seconds(ms / 1000)
	}
	if after := h.Get("Retry-After"); after != "" {
		if s, err := strconv.ParseFloat(after, 64); err == nil {
			return seconds(s)
		}
		if at, err := http.ParseTime(after); err == nil {
			return max(at.Sub(now), 0)
		}
	}
	var longest time.Duration
	for name, values := range h {
		name = strings.ToLower(name)
		kind, reset := strings.CutSuffix(name, "-reset") // anthropic-ratelimit-tokens-reset
		left := kind + "-remaining"
		if !reset { // x-ratelimit-reset-tokens
			if kind, reset = strings.CutPrefix(name, "x-ratelimit-reset-"); reset {
				left = "x-ratelimit-remaining-" + kind
			}
		}
		if !reset || len(values) == 0 || h.Get(left) != "0" {
			continue
		}
		longest = max(longest, until(values[0], now))
	}
	return longest
}

// until parses a reset: a time, seconds since 1970, or a duration.
func until(s string, now time.Time) time.Duration {
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return max(at.Sub(now), 0)
	}
	if d, err := time.ParseDuration(s); err == nil {
		return max(d, 0)
	}
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil:
		return 0
	case n > 1e12: // milliseconds since 1970
		return max(time.UnixMilli(int64(n)).Sub(now), 0)
	case n > 1e9:
		return max(time.Unix(int64(n), 0).Sub(now), 0)
	}
	return seconds(n)
}

func seconds(s float64) time.Duration {
	if !(s > 0) { // also NaN
		return 0
	}
	return time.Duration(math.Min(s, 366*24*3600) * float64(time.Second))
}

// ParseRefusal parses the body of an error in any of the providers' forms.
func ParseRefusal(body []byte) Refusal {
	var r Refusal
	raw := json.RawMessage(body)
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 { // Google wraps it in a list
		raw = list[0]
	}
	type words struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Type    json.RawMessage `json:"type"`
		Code    json.RawMessage `json:"code"`
		Status  json.RawMessage `json:"status"`
	}
	var w words
	if json.Unmarshal(raw, &w) != nil {
		r.Text = strings.TrimSpace(string(body))
		return r
	}
	if text := str(w.Error); text != "" {
		r.Text = text
	} else if len(w.Error) > 0 && w.Error[0] == '{' {
		var inner words
		if json.Unmarshal(w.Error, &inner) == nil {
			w = inner
		}
	}
	r.Type, r.Code = str(w.Type), str(w.Code)
	r.Text = cmp.Or(r.Text, str(w.Message), str(w.Detail), strings.TrimSpace(string(body)))
	return r
}

// str returns a JSON string or number as text.
func str(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

func shorten(s string) string {
	s = strings.ToValidUTF8(strings.TrimSpace(s), "\uFFFD")
	if len(s) <= maxWords {
		return s
	}
	return strings.ToValidUTF8(s[:maxWords], "") + "..."
}

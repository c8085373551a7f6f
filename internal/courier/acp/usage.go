package acp

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// tooMany is the error code, taken from HTTP, with which Gemini CLI refuses a prompt at a limit.
const tooMany = 429

// Usage returns the usage of the conversation so far, if the agent reports it.
func (a *Agent) Usage() team.Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// count adds the usage of a turn. The protocol calls the numbers those of the turn in one place
// and those of the session in another; the known agents count by the turn (OpenCode; Gemini CLI in
// its own _meta.quota).
func (a *Agent) count(out acp.PromptResponse) {
	var in, answer, cached int
	if u := out.Usage; u != nil {
		read, written, thought := value(u.CachedReadTokens), value(u.CachedWriteTokens), value(u.ThoughtTokens)
		in, answer, cached = u.InputTokens+read+written, u.OutputTokens+thought, read
	} else {
		var meta struct {
			Quota struct {
				Tokens struct {
					Input  int `json:"input_tokens"`
					Output int `json:"output_tokens"`
				} `json:"token_count"`
			} `json:"quota"`
		}
		b, err := json.Marshal(out.Meta)
		if err != nil || json.Unmarshal(b, &meta) != nil {
			return
		}
		in, answer = meta.Quota.Tokens.Input, meta.Quota.Tokens.Output
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used.InputTokens += int64(in)
	a.used.OutputTokens += int64(answer)
	a.used.CachedTokens += int64(cached)
}

// costs records the cost of the session; mu is held.
func (a *Agent) costs(c *acp.Cost) {
	if c != nil && strings.EqualFold(c.Currency, "USD") {
		a.used.CostUSD = c.Amount
	}
}

func value(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// limitOf returns the usage limit for which an agent refused a prompt, nil for any other error.
// Its end comes from the error's words or from fields of its data.
func limitOf(err error, now time.Time) *team.LimitReached {
	var refused *acp.RequestError
	if !errors.As(err, &refused) {
		return nil
	}
	d := limitData{words: []string{refused.Message}}
	d.read("", refused.Data, now)
	words := strings.Join(d.words, "\n")
	until, limited := adapter.LimitIn(adapter.ACP, words, now)
	if !limited && refused.Code != tooMany {
		return nil
	}
	if until.IsZero() {
		until = d.until
	}
	return &team.LimitReached{Until: until, Words: strings.Join(d.words, " / ")}
}

// limitData holds what the data of an error says about a limit.
type limitData struct {
	words []string
	until time.Time
}

func (d *limitData) read(key string, v any, now time.Time) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			d.read(strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(k)), e, now)
		}
	case []any:
		for _, e := range v {
			d.read(key, e, now)
		}
	case float64:
		d.ends(key, v, now)
	case string:
		if n, err := strconv.ParseFloat(strings.TrimSuffix(v, "s"), 64); err == nil {
			d.ends(key, n, now)
			return
		}
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			if strings.HasPrefix(key, "reset") {
				d.until = at
			}
			return
		}
		if key == "message" || key == "details" || key == "error" {
			d.words = append(d.words, v)
		}
	}
}

// ends interprets a number as a duration in seconds, or as a Unix time in seconds or milliseconds.
func (d *limitData) ends(key string, n float64, now time.Time) {
	const milliseconds = 1e11 // a time in seconds reaches this in the year 5138
	switch {
	case n <= 0:
	case key == "retryafter", key == "retryafterseconds", key == "retrydelay":
		d.until = now.Add(time.Duration(n * float64(time.Second)))
	case key == "retryafterms":
		d.until = now.Add(time.Duration(n * float64(time.Millisecond)))
	case key != "resetsat" && key != "resetat":
	case n > milliseconds:
		d.until = time.UnixMilli(int64(n))
	default:
		d.until = time.Unix(int64(n), 0)
	}
}

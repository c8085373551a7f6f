package adapter

import (
	"encoding/json"
	"strings"
	"sync"
)

// geminiRecord parses the transcript of Gemini CLI. It writes a text of a hook when it sends it
// to its model, which may fail or be cancelled: only a text with a later answer counts. A
// resumed conversation consists of the messages that are set last.
type geminiRecord struct {
	answered []string // texts that the model has answered, oldest first
	open     []string // texts since its last answer
	answer   string   // id of its last answer, which is written again with the results of its tools
}

// geminiMessage holds the used fields of a message in the transcript.
type geminiMessage struct {
	ID      string
	Type    string
	Content any
	Set     *struct{ Messages []geminiMessage } `json:"$set"`
}

func (r *geminiRecord) line(data []byte) {
	var m geminiMessage
	if json.Unmarshal(data, &m) != nil {
		return
	}
	if m.Set == nil {
		r.message(m)
		return
	}
	if len(m.Set.Messages) > 0 {
		*r = geminiRecord{}
		for _, m := range m.Set.Messages {
			r.message(m)
		}
	}
}

func (r *geminiRecord) message(m geminiMessage) {
	switch {
	case m.Type == "user":
		r.open = append(r.open, stringsIn(m.Content)...)
	case m.Type == "gemini" && (m.ID == "" || m.ID != r.answer):
		r.answered, r.open, r.answer = append(r.answered, r.open...), nil, m.ID
	}
}

// stringsIn returns the strings in a JSON value: a text, or the result of a tool at any depth.
func stringsIn(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			out = append(out, stringsIn(e)...)
		}
	case map[string]any:
		for _, e := range v {
			out = append(out, stringsIn(e)...)
		}
	}
	return out
}

// angles replaces angle brackets as Gemini CLI does in the output of a hook.
var angles = sync.OnceValue(func() *strings.Replacer { return strings.NewReplacer("<", "&lt;", ">", "&gt;") })

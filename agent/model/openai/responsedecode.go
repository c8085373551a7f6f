package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/wire"
	"github.com/teamctl/teamctl/team"
)

// responseDecoder assembles a response.
type responseDecoder struct {
	e   wire.Endpoint
	ids *wire.IDs
	on  func(model.Delta)

	read   wire.Object // the newest event
	ended  bool
	newest int64 // sequence number + 1 of the newest event
	done   map[int64]json.RawMessage
	text   strings.Builder   // for servers without items
	taken  map[string]string // ids of calls, by the server's ids
	whole  response
}

type response struct {
	Status     string            `json:"status"`
	Output     []json.RawMessage `json:"output"`
	Error      json.RawMessage   `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage struct {
		Input   int64 `json:"input_tokens"`
		Output  int64 `json:"output_tokens"`
		Details struct {
			Cached int64 `json:"cached_tokens"`
			Write  int64 `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		OutDetails struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

func (d *responseDecoder) malformed(what string) error { return d.e.Cut("malformed stream: " + what) }

// event handles one event. Unknown kinds are ignored.
func (d *responseDecoder) event(e wire.Event) error {
	if string(e.Data) == "[DONE]" { // from servers that mix the protocols
		return nil
	}
	ev := &d.read
	if ev.Read(e.Data) != nil {
		return d.malformed("an event that cannot be read")
	}
	index, ok := ev.Int("output_index")
	sequence, sound := ev.Int("sequence_number")
	if !ok || !sound {
		return d.malformed("an event that cannot be read")
	}
	if !wire.IsNull(ev.Get("sequence_number")) {
		if sequence < d.newest {
			return nil // a duplicate
		}
		d.newest = sequence + 1
	}
	switch kind := cmp.Or(ev.Text("type"), e.Name); kind {
	case "response.output_text.delta", "response.refusal.delta":
		if text := ev.Text("delta"); text != "" {
			d.text.WriteString(text)
			d.on(model.Delta{Text: text})
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		if text := ev.Text("delta"); text != "" {
			d.on(model.Delta{Thinking: text})
		}
	case "response.output_item.added":
		if o, err := wire.ParseObject(ev.Get("item")); err == nil && o.Text("type") == "function_call" {
			d.on(model.Delta{Call: &model.Call{ID: d.id(o), Name: o.Text("name")}})
		}
	case "response.output_item.done":
		if d.done == nil {
			d.done = map[int64]json.RawMessage{}
		}
		d.done[index] = bytes.Clone(ev.Get("item"))
	case "response.completed", "response.incomplete", "response.failed", "response.done":
		return d.end(ev.Get("response"))
	case "error":
		return d.e.Error(wire.ParseRefusal(e.Data))
	default:
		if kind == "" && !wire.IsNull(ev.Get("error")) {
			return d.e.Error(wire.ParseRefusal(e.Data))
		}
	}
	return nil
}

// id returns the id of a call in the conversation; the server's may be a duplicate or missing.
func (d *responseDecoder) id(o *wire.Object) string {
	key := o.Text("call_id") + "\x00" + o.Text("id")
	if id, ok := d.taken[key]; ok && len(key) > 1 {
		return id
	}
	if d.taken == nil {
		d.taken = map[string]string{}
	}
	d.taken[key] = d.ids.Take(o.Text("call_id"))
	return d.taken[key]
}

// end handles the final response.
func (d *responseDecoder) end(raw json.RawMessage) error {
	if err := json.Unmarshal(raw, &d.whole); err != nil {
		return d.malformed("a response that cannot be read")
	}
	if !wire.IsNull(d.whole.Error) || d.whole.Status == "failed" || d.whole.Status == "cancelled" {
		return d.e.Error(wire.ParseRefusal(raw))
	}
	d.ended = true
	return nil
}

// answer returns the complete answer.
func (d *responseDecoder) answer(self model.Ref) (model.Answer, error) {
	a := model.Answer{Message: model.Message{Role: model.RoleAssistant, From: self}, Stop: model.StopEnd}
	if d.whole.Status == "incomplete" {
		a.Stop = model.StopLimit
		if d.whole.Incomplete.Reason == "content_filter" {
			a.Stop = model.StopRefused
		}
	}
	all := d.whole.Output
	if len(all) == 0 {
		for _, i := range slices.Sorted(maps.Keys(d.done)) {
			all = append(all, d.done[i])
		}
	}
	if len(all) == 0 && d.text.Len() > 0 {
		all = items(model.Message{Role: model.RoleAssistant, Parts: []model.Part{{Text: d.text.String()}}})
	}
	var raws []json.RawMessage
	for i, raw := range all {
		o, err := wire.ParseObject(raw)
		if err != nil {
			return a, d.malformed("an item that cannot be read")
		}
		switch o.Text("type") {
		case "message":
			text, refused := textOf(o.Get("content"))
			if refused {
				a.Stop = model.StopRefused
			}
			if strings.TrimSpace(text) == "" {
				continue
			}
			a.Message.Parts = append(a.Message.Parts, model.Part{Text: text})
		case "function_call":
			args := o.Text("arguments")
			if a.Stop == model.StopLimit && i == len(all)-1 && !wire.Whole(args) {
				continue // neither run nor sent back
			}
			id := d.id(o)
			if o.Text("call_id") != id {
				o.Set("call_id", wire.Quote(id))
				raw = o.Bytes()
			}
			a.Message.Parts = append(a.Message.Parts, model.Part{Call: &model.Call{ID: id, Name: o.Text("name"), Input: wire.Input(args)}})
			if a.Stop == model.StopEnd {
				a.Stop = model.StopCalls
			}
		case "reasoning":
			// Without its content it only refers to data that the provider has not stored.
			if o.Text("encrypted_content") == "" && len(o.Get("content")) <= len("[]") {
				continue
			}
		}
		raws = append(raws, raw)
	}
	if len(a.Message.Parts) > 0 && len(raws) > 0 {
		a.Message.Raw = wire.List(raws)
	}
	u := d.whole.Usage
	a.Usage = team.Usage{
		InputTokens: u.Input, OutputTokens: u.Output, CachedTokens: u.Details.Cached,
		CacheWriteTokens: u.Details.Write, ReasoningTokens: u.OutDetails.Reasoning,
	}
	return a, nil
}

// textOf returns the text of a message; refused reports that the model refused.
func textOf(raw json.RawMessage) (text string, refused bool) {
	var parts []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return wire.Text(raw), false
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
		b.WriteString(p.Refusal)
		refused = refused || p.Type == "refusal"
	}
	return b.String(), refused
}

package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/wire"
	"github.com/teamctl/teamctl/team"
)

// chatDecoder assembles a message.
type chatDecoder struct {
	e   wire.Endpoint
	ids *wire.IDs
	on  func(model.Delta)

	// The newest chunk, and what is in it.
	chunk, choice, piece wire.Object

	content wire.Piece
	some    bool              // there was content
	list    []json.RawMessage // content in the form of a list
	calls   []*chatCalling
	other   wire.Object            // unknown fields
	pieces  map[string]*wire.Piece // unknown fields with strings
	lists   map[string]*details    // unknown fields with lists
	finish  string
	usage   chatUsage
}

// chatCalling is a partly received call.
type chatCalling struct {
	index  int // -1: the server gives none
	was    string
	fields *wire.Object // of the call
	fn     *wire.Object // of its function
	args   wire.Piece
}

type chatUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	In         struct {
		Cached int64 `json:"cached_tokens"`
		Write  int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Out struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Hit  int64    `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cost *float64 `json:"cost"`                    // OpenRouter
}

func (d *chatDecoder) malformed(what string) error { return d.e.Cut("malformed stream: " + what) }

// event handles one chunk, or a whole answer.
func (d *chatDecoder) event(data []byte) error {
	c := &d.chunk
	if c.Read(data) != nil {
		return d.malformed("a chunk that cannot be read")
	}
	if !wire.IsNull(c.Get("error")) {
		return d.e.Error(wire.ParseRefusal(data))
	}
	if raw := c.Get("usage"); !wire.IsNull(raw) {
		d.usage = chatUsage{}
		if json.Unmarshal(raw, &d.usage) != nil {
			return d.malformed("a chunk that cannot be read")
		}
	}
	var err error
	list := wire.Each(c.Get("choices"), func(raw json.RawMessage) {
		if err == nil {
			err = d.choose(raw)
		}
	})
	if err == nil && !list {
		return d.malformed("a chunk that cannot be read")
	}
	return err
}

// choose handles one of the choices of a chunk.
func (d *chatDecoder) choose(raw json.RawMessage) error {
	c := &d.choice
	if c.Read(raw) != nil {
		return d.malformed("a chunk that cannot be read")
	}
	index, ok := c.Int("index")
	if !ok {
		return d.malformed("a chunk that cannot be read")
	}
	if index != 0 {
		return nil
	}
	finish := c.Text("finish_reason")
	if trouble := c.Get("error"); !wire.IsNull(trouble) || finish == "error" {
		return d.e.Error(wire.ParseRefusal(append(append([]byte(`{"error":`), orNull(trouble)...), '}')))
	}
	delta := c.Get("delta")
	if wire.IsNull(delta) {
		delta = c.Get("message") // of an answer that is not streamed
	}
	if !wire.IsNull(delta) {
		if d.piece.Read(delta) != nil {
			return d.malformed("a delta that cannot be read")
		}
		if err := d.delta(&d.piece); err != nil {
			return err
		}
	}
	if finish != "" {
		d.finish = finish
	}
	return nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// delta handles a piece of the message. It retains nothing of o.
func (d *chatDecoder) delta(o *wire.Object) error {
	thought := ""
	for name, value := range o.All() {
		switch {
		case name == "role" || wire.IsNull(value):
		case name == "content":
			d.take(value)
		case name == "tool_calls":
			var calls []json.RawMessage
			if json.Unmarshal(value, &calls) != nil {
				return d.malformed("calls that cannot be read")
			}
			for _, raw := range calls {
				if err := d.call(raw); err != nil {
					return err
				}
			}
		case wire.IsString(value):
			p := d.pieces[name]
			if p == nil {
				if d.pieces == nil {
					d.pieces = map[string]*wire.Piece{}
				}
				p = &wire.Piece{}
				d.pieces[name] = p
				d.other.Set(name, nil) // reserves its position
			}
			p.Add(value)
			if name == "reasoning_content" || name == "reasoning" { // some servers send both
				thought = wire.Text(value)
			}
		case value[0] == '[':
			l := d.lists[name]
			if l == nil {
				if d.lists == nil {
					d.lists = map[string]*details{}
				}
				l = &details{}
				d.lists[name] = l
				d.other.Set(name, nil) // reserves its position
			}
			if !l.add(value) {
				return d.malformed("a list that cannot be read")
			}
		default:
			d.other.Set(name, bytes.Clone(value))
		}
	}
	if thought != "" {
		d.on(model.Delta{Thinking: thought})
	}
	return nil
}

// take handles a piece of the text, or of content in the form of a list.
func (d *chatDecoder) take(value json.RawMessage) {
	if d.content.Add(value) {
		d.some = true
		if text := wire.Text(value); text != "" {
			d.on(model.Delta{Text: text})
		}
		return
	}
	var items []json.RawMessage
	_ = json.Unmarshal(value, &items) // anything else is dropped
	for _, raw := range items {
		o, err := wire.ParseObject(raw)
		if err != nil {
			continue
		}
		if o.Text("type") == "text" {
			d.take(o.Get("text"))
			continue
		}
		d.list = append(d.list, raw)
	}
}

// call handles a piece of a call.
func (d *chatDecoder) call(raw json.RawMessage) error {
	o, err := wire.ParseObject(raw)
	if err != nil {
		return d.malformed("a call that cannot be read")
	}
	fn := &wire.Object{}
	if f := o.Get("function"); !wire.IsNull(f) {
		if fn, err = wire.ParseObject(f); err != nil {
			return d.malformed("a function that cannot be read")
		}
	}
	c := d.which(o, fn)
	if c == nil {
		c = &chatCalling{index: -1, was: o.Text("id"), fields: &wire.Object{}, fn: &wire.Object{}}
		_ = json.Unmarshal(o.Get("index"), &c.index) // missing
		id := d.ids.Take(c.was)
		c.fields.Set("id", wire.Quote(id))
		c.fields.Set("type", wire.Quote("function"))
		c.fields.Set("function", nil)
		c.fn.Set("name", wire.Quote(fn.Text("name")))
		c.fn.Set("arguments", nil)
		d.calls = append(d.calls, c)
		d.on(model.Delta{Call: &model.Call{ID: id, Name: fn.Text("name")}})
	}
	for _, name := range o.Names() {
		if value := o.Get(name); name != "id" && name != "index" && name != "type" && name != "function" && !wire.IsNull(value) {
			c.fields.Set(name, value)
		}
	}
	for _, name := range fn.Names() {
		switch value := fn.Get(name); {
		case wire.IsNull(value):
		case name == "arguments":
			if !c.args.Add(value) { // some servers send an object
				c.args.Add(wire.Quote(string(value)))
			}
		case name != "name" || c.fn.Text("name") == "":
			c.fn.Set(name, value)
		}
	}
	return nil
}

// which returns the call of a piece; nil for a new one. Some servers omit the index or the id, or
// number every call 0.
func (d *chatDecoder) which(o, fn *wire.Object) *chatCalling {
	id, index := o.Text("id"), -1
	_ = json.Unmarshal(o.Get("index"), &index) // missing
	for _, c := range d.calls {
		switch {
		case index >= 0 && c.index == index && (id == "" || id == c.was || fn.Text("name") == ""):
			return c
		case index < 0 && id != "" && id == c.was:
			return c
		}
	}
	if n := len(d.calls); index < 0 && id == "" && fn.Text("name") == "" && n > 0 {
		return d.calls[n-1]
	}
	return nil
}

// answer returns the complete answer.
func (d *chatDecoder) answer(self model.Ref) (model.Answer, error) {
	a := model.Answer{Message: model.Message{Role: model.RoleAssistant, From: self}, Stop: model.StopEnd}
	switch d.finish {
	case "":
		return a, d.e.Cut("the stream ended without finish_reason")
	case "length":
		a.Stop = model.StopLimit
	case "content_filter":
		a.Stop = model.StopRefused
	}
	raw := &wire.Object{}
	raw.Set("role", wire.Quote("assistant"))
	raw.Set("content", json.RawMessage("null"))
	if d.some {
		raw.Set("content", d.content.Bytes())
		if text := d.content.Text(); strings.TrimSpace(text) != "" {
			a.Message.Parts = append(a.Message.Parts, model.Part{Text: text})
		}
	}
	if len(d.list) > 0 {
		if d.some {
			d.list = append(d.list, wire.Encode(map[string]json.RawMessage{"type": wire.Quote("text"), "text": d.content.Bytes()}))
		}
		raw.Set("content", wire.List(d.list))
	}
	for _, name := range d.other.Names() {
		if p := d.pieces[name]; p != nil {
			raw.Set(name, p.Bytes())
		} else if l := d.lists[name]; l != nil {
			raw.Set(name, l.bytes())
		} else {
			raw.Set(name, d.other.Get(name))
		}
	}
	var calls []json.RawMessage
	for i, c := range d.calls {
		text := c.args.Text()
		if a.Stop == model.StopLimit && i == len(d.calls)-1 && !wire.Whole(text) {
			continue // neither run nor sent back
		}
		c.fn.Set("arguments", c.args.Bytes())
		c.fields.Set("function", c.fn.Bytes())
		calls = append(calls, c.fields.Bytes())
		a.Message.Parts = append(a.Message.Parts, model.Part{Call: &model.Call{ID: c.fields.Text("id"), Name: c.fn.Text("name"), Input: wire.Input(text)}})
	}
	if len(calls) > 0 {
		raw.Set("tool_calls", wire.List(calls))
		if a.Stop == model.StopEnd {
			a.Stop = model.StopCalls
		}
	}
	if len(a.Message.Parts) > 0 {
		a.Message.Raw = raw.Bytes()
	}
	a.Usage = d.used()
	return a, nil
}

// used returns the usage reported so far. Most servers report it at the end, some with each chunk.
func (d *chatDecoder) used() team.Usage {
	u := d.usage
	out := team.Usage{
		InputTokens: u.Prompt, OutputTokens: u.Completion, CachedTokens: max(u.In.Cached, u.Hit),
		CacheWriteTokens: u.In.Write, ReasoningTokens: u.Out.Reasoning,
	}
	if u.Cost != nil {
		out.CostUSD, out.CostKnown = *u.Cost, true
	}
	return out
}

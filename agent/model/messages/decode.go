package messages

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/wire"
	"github.com/teamctl/teamctl/team"
)

// decoder assembles an answer.
type decoder struct {
	p   *Provider
	ids *wire.IDs
	on  func(model.Delta)

	read, piece  wire.Object // the newest event, and the piece in it
	begun, ended bool
	open         *arriving
	blocks       []*arriving
	stop         string
	usage        usage
}

type usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

// event handles one event. Unknown kinds are ignored.
func (d *decoder) event(e wire.Event) error {
	ev := &d.read
	if ev.Read(e.Data) != nil {
		return d.malformed("an event that cannot be read")
	}
	index, ok := ev.Int("index")
	if !ok {
		return d.malformed("an event that cannot be read")
	}
	switch cmp.Or(ev.Text("type"), e.Name) {
	case "message_start":
		if d.begun {
			return d.malformed("a second message_start")
		}
		d.begun = true
		var message struct {
			Usage json.RawMessage `json:"usage"`
		}
		if raw := ev.Get("message"); !wire.IsNull(raw) && json.Unmarshal(raw, &message) != nil {
			return d.malformed("an event that cannot be read")
		}
		return d.count(message.Usage)
	case "content_block_start":
		if d.open != nil || len(d.blocks) > 0 && d.blocks[len(d.blocks)-1].index >= index {
			return d.malformed("a block out of order")
		}
		return d.start(index, ev.Get("content_block"))
	case "content_block_delta":
		if d.open == nil || d.open.index != index {
			return d.malformed("a piece of a block that is not open")
		}
		return d.delta(ev.Get("delta"))
	case "content_block_stop":
		if d.open == nil || d.open.index != index {
			return d.malformed("the end of a block that is not open")
		}
		d.open = nil
	case "message_delta":
		var delta struct {
			Stop string `json:"stop_reason"`
		}
		if err := json.Unmarshal(ev.Get("delta"), &delta); err != nil {
			return d.malformed("a message_delta that cannot be read")
		}
		if delta.Stop != "" {
			d.stop = delta.Stop
		}
		return d.count(ev.Get("usage"))
	case "message_stop":
		if !d.begun || d.open != nil {
			return d.malformed("message_stop within a block")
		}
		d.ended = true
	case "error":
		return d.p.Error(wire.ParseRefusal(e.Data))
	}
	return nil
}

func (d *decoder) malformed(what string) error { return d.p.Cut("malformed stream: " + what) }

// count applies the numbers present: later ones replace earlier ones.
func (d *decoder) count(raw json.RawMessage) error {
	if !wire.IsNull(raw) && json.Unmarshal(raw, &d.usage) != nil {
		return d.malformed("usage that cannot be read")
	}
	return nil
}

// start begins a block and reports its initial text.
func (d *decoder) start(index int64, raw json.RawMessage) error {
	o, err := wire.ParseObject(raw)
	if err != nil {
		return d.malformed("a block that cannot be read")
	}
	b := newBlock(index, o)
	switch b.kind {
	case "tool_use":
		was := o.Text("id")
		if b.id = d.ids.Take(was); b.id != was {
			o.Set("id", wire.Quote(b.id))
		}
		d.on(model.Delta{Call: &model.Call{ID: b.id, Name: o.Text("name")}})
	case "text", "thinking":
		d.show(o)
	}
	d.open, d.blocks = b, append(d.blocks, b)
	return nil
}

func (d *decoder) delta(raw json.RawMessage) error {
	if d.piece.Read(raw) != nil {
		return d.malformed("a piece that cannot be read")
	}
	d.open.add(&d.piece)
	d.show(&d.piece)
	return nil
}

func (d *decoder) show(o *wire.Object) {
	if text := o.Text("text"); text != "" {
		d.on(model.Delta{Text: text})
	}
	if text := o.Text("thinking"); text != "" {
		d.on(model.Delta{Thinking: text})
	}
}

// answer returns the complete answer.
func (d *decoder) answer(self model.Ref) (model.Answer, error) {
	a := model.Answer{Message: model.Message{Role: model.RoleAssistant, From: self}, Stop: model.StopEnd}
	switch d.stop {
	case "":
		return a, d.malformed("no stop_reason")
	case "max_tokens", "model_context_window_exceeded":
		a.Stop = model.StopLimit
	case "refusal":
		a.Stop = model.StopRefused
	}
	var raws []json.RawMessage
	calls := 0
	for i, b := range d.blocks {
		call, whole := b.close()
		if !whole && a.Stop == model.StopLimit && i == len(d.blocks)-1 {
			continue // neither run nor sent back
		}
		text := ""
		if b.kind == "text" {
			if text = b.fields.Text("text"); strings.TrimSpace(text) == "" {
				continue // the protocol does not accept it back
			}
		}
		raws = append(raws, b.fields.Bytes())
		if call != nil {
			calls++
			a.Message.Parts = append(a.Message.Parts, model.Part{Call: call})
		} else if b.kind == "text" {
			a.Message.Parts = append(a.Message.Parts, model.Part{Text: text})
		}
	}
	if len(raws) > 0 {
		a.Message.Raw = wire.List(raws)
	}
	if calls > 0 && a.Stop == model.StopEnd {
		a.Stop = model.StopCalls
	}
	a.Usage = d.used()
	return a, nil
}

// used returns the usage reported so far.
func (d *decoder) used() team.Usage {
	u := d.usage
	return team.Usage{
		InputTokens: u.Input + u.CacheRead + u.CacheWrite, OutputTokens: u.Output,
		CachedTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite,
	}
}

// whole decodes an answer that is not streamed.
func (d *decoder) whole(body []byte) error {
	var m struct {
		Type    string            `json:"type"`
		Content []json.RawMessage `json:"content"`
		Stop    string            `json:"stop_reason"`
		Usage   json.RawMessage   `json:"usage"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return d.p.Cut("the answer cannot be read: " + err.Error())
	}
	if m.Type == "error" {
		return d.p.Error(wire.ParseRefusal(body))
	}
	for i, raw := range m.Content {
		if err := d.start(int64(i), raw); err != nil {
			return err
		}
	}
	d.stop = m.Stop
	return d.count(m.Usage)
}

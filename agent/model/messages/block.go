package messages

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/wire"
)

// arriving is a block of an answer, complete or not.
type arriving struct {
	index  int64
	kind   string
	id     string // of a call
	fields *wire.Object
	pieces map[string]*wire.Piece       // of fields that arrive in pieces
	lists  map[string][]json.RawMessage // of fields that are lists, such as citations
}

func newBlock(index int64, o *wire.Object) *arriving {
	return &arriving{index: index, kind: o.Text("type"), fields: o, pieces: map[string]*wire.Piece{}, lists: map[string][]json.RawMessage{}}
}

// add adds a delta: it appends every string to the field of that name, and every other value to a
// list. Unknown fields are therefore preserved as well. It retains nothing of delta.
func (b *arriving) add(delta *wire.Object) {
	for name, value := range delta.All() {
		switch name {
		case "type":
			continue
		case "partial_json":
			name = "input"
		case "citation":
			name = "citations"
		}
		if !wire.IsString(value) {
			b.lists[name] = append(b.lists[name], bytes.Clone(value))
			continue
		}
		p := b.pieces[name]
		if p == nil {
			p = &wire.Piece{}
			p.Add(b.fields.Get(name)) // the initial value of the block
			b.pieces[name] = p
		}
		p.Add(value)
	}
}

// close joins the pieces. It returns the call, if the block is one, and whether the block is
// complete: a call with all of its input, a thought with its signature.
func (b *arriving) close() (call *model.Call, whole bool) {
	for _, name := range slices.Sorted(maps.Keys(b.pieces)) {
		if b.kind != "tool_use" || name != "input" {
			b.fields.Set(name, b.pieces[name].Bytes())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.lists)) {
		var before []json.RawMessage
		_ = json.Unmarshal(b.fields.Get(name), &before) // missing, or null
		b.fields.Set(name, wire.List(append(before, b.lists[name]...)))
	}
	if b.kind != "tool_use" {
		return nil, b.kind != "thinking" || b.fields.Text("signature") != ""
	}
	call = &model.Call{ID: b.id, Name: b.fields.Text("name"), Input: b.fields.Get("input")}
	if p := b.pieces["input"]; p != nil {
		text := p.Text()
		call.Input, whole = wire.Input(text), wire.Whole(text)
		if whole {
			b.fields.Set("input", call.Input)
		}
		return call, whole
	}
	if wire.IsNull(call.Input) {
		call.Input = json.RawMessage(`{}`)
	}
	return call, string(call.Input) != `{}`
}

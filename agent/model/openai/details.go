package openai

import (
	"encoding/json"

	"github.com/teamctl/teamctl/agent/model/wire"
)

// details is a list whose elements arrive in pieces, such as reasoning_details: an element with
// the index and type of the previous one continues it.
type details struct{ all []*detail }

type detail struct {
	fields *wire.Object // nil for an element that is not an object
	raw    json.RawMessage
	pieces map[string]*wire.Piece // of fields that arrive in pieces
}

// grows lists the fields of an element that arrive in pieces.
var grows = map[string]bool{"text": true, "summary": true}

// add appends a list; false for any other value.
func (l *details) add(list json.RawMessage) bool {
	var more []json.RawMessage
	if json.Unmarshal(list, &more) != nil {
		return false
	}
	for _, raw := range more {
		o, err := wire.ParseObject(raw)
		if err != nil {
			l.all = append(l.all, &detail{raw: raw})
			continue
		}
		if n := len(l.all); n > 0 && l.all[n-1].continues(o) {
			l.all[n-1].take(o)
			continue
		}
		l.all = append(l.all, &detail{fields: o, pieces: map[string]*wire.Piece{}})
	}
	return true
}

func (d *detail) continues(o *wire.Object) bool {
	if d.fields == nil || wire.IsNull(o.Get("index")) {
		return false
	}
	return string(d.fields.Get("index")) == string(o.Get("index")) && string(d.fields.Get("type")) == string(o.Get("type"))
}

func (d *detail) take(o *wire.Object) {
	for _, name := range o.Names() {
		value := o.Get(name)
		switch {
		case wire.IsNull(value):
		case grows[name] && wire.IsString(value):
			p := d.pieces[name]
			if p == nil {
				p = &wire.Piece{}
				p.Add(d.fields.Get(name)) // its initial value
				d.pieces[name] = p
			}
			p.Add(value)
		default:
			d.fields.Set(name, value)
		}
	}
}

// bytes returns the whole list.
func (l *details) bytes() json.RawMessage {
	out := make([]json.RawMessage, len(l.all))
	for i, d := range l.all {
		if d.fields == nil {
			out[i] = d.raw
			continue
		}
		for name, p := range d.pieces {
			d.fields.Set(name, p.Bytes()) // their positions exist
		}
		out[i] = d.fields.Bytes()
	}
	return wire.List(out)
}

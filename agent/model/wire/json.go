package wire

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Object is a JSON object that preserves the order and the bytes of its fields.
type Object struct {
	names  []string
	values map[string]json.RawMessage
}

// ParseObject parses a JSON object.
func ParseObject(raw []byte) (*Object, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	if t != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	o := &Object{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		o.Set(name.(string), v)
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	return o, nil
}

// Names returns the names of the fields, in order.
func (o *Object) Names() []string { return o.names }

// Get returns the value of a field; nil if there is none.
func (o *Object) Get(name string) json.RawMessage { return o.values[name] }

// Text returns the value of a string field; "" for any other value.
func (o *Object) Text(name string) string { return Text(o.values[name]) }

// Set sets a field; a new one comes last.
func (o *Object) Set(name string, v json.RawMessage) {
	if o.values == nil {
		o.values = map[string]json.RawMessage{}
	}
	if _, ok := o.values[name]; !ok {
		o.names = append(o.names, name)
	}
	o.values[name] = v
}

// Drop removes a field.
func (o *Object) Drop(name string) {
	if _, ok := o.values[name]; !ok {
		return
	}
	delete(o.values, name)
	names := o.names[:0]
	for _, n := range o.names {
		if n != name {
			names = append(names, n)
		}
	}
	o.names = names
}

// Bytes encodes the object.
func (o *Object) Bytes() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, n := range o.names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(Quote(n))
		b.WriteByte(':')
		b.Write(o.values[n])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Piece is a JSON string that arrives in pieces, each a JSON string of its own. Its zero value is
// empty.
type Piece struct{ buf []byte }

// Add appends the contents of a JSON string unchanged. It returns false for any other value.
func (p *Piece) Add(raw json.RawMessage) bool {
	if !IsString(raw) {
		return false
	}
	p.buf = append(p.buf, raw[1:len(raw)-1]...)
	return true
}

// Bytes returns the whole as one JSON string.
func (p *Piece) Bytes() json.RawMessage {
	out := make([]byte, 0, len(p.buf)+2)
	return append(append(append(out, '"'), p.buf...), '"')
}

// Text returns the whole, decoded.
func (p *Piece) Text() string { return Text(p.Bytes()) }

// IsString reports whether raw is a JSON string.
func IsString(raw json.RawMessage) bool { return len(raw) >= 2 && raw[0] == '"' }

// Text decodes a JSON string; it returns "" for any other value.
func Text(raw json.RawMessage) string {
	var s string
	if !IsString(raw) || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// Quote encodes a JSON string with as few escapes as possible.
func Quote(s string) json.RawMessage { return Encode(s) }

// Encode encodes v as JSON without escaping <, > and &, which encoding/json does even within raw
// JSON. It panics on values that cannot be encoded: callers pass only their own types.
func Encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// List encodes a JSON array of JSON values.
func List(all []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, one := range all {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, one...)
	}
	return append(out, ']')
}

// IsNull reports whether a field is missing or null.
func IsNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

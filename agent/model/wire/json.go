package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"strconv"
)

// Object is a JSON object that preserves the order and the bytes of its fields.
type Object struct {
	fields []field
	index  map[string]int // of the fields by name, of an object with many
}

type field struct {
	name  string
	value json.RawMessage
}

// manyFields is the number of fields from which on they are found by a map.
const manyFields = 16

var errNoObject = errors.New("not a JSON object")

// ParseObject parses a JSON object. It copies raw.
func ParseObject(raw []byte) (*Object, error) {
	o := &Object{}
	return o, o.Read(bytes.Clone(raw))
}

// Read parses a JSON object without copying it: the values are valid as long as raw is. It
// replaces what o had. After an error o has no valid contents.
func (o *Object) Read(raw []byte) error {
	b := skipSpace(raw)
	if len(b) == 0 || b[0] != '{' {
		return errNoObject
	}
	before := o.fields
	o.fields, o.index = o.fields[:0], nil
	rest, ok := walk(b, 0, func(name, value []byte) {
		n := len(o.fields)
		if in := name[1 : len(name)-1]; n < len(before) && string(in) == before[n].name && bytes.IndexByte(in, '\\') < 0 {
			o.Set(before[n].name, value) // the objects of a stream are alike: without an allocation
			return
		}
		o.Set(Text(name), value)
	})
	if !ok || len(skipSpace(rest)) > 0 {
		return errors.New("not valid JSON")
	}
	return nil
}

// at returns the position of a field; -1 if there is none.
func (o *Object) at(name string) int {
	if o.index != nil {
		if i, ok := o.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range o.fields {
		if o.fields[i].name == name {
			return i
		}
	}
	return -1
}

func (o *Object) add(name string, v json.RawMessage) {
	o.fields = append(o.fields, field{name, v})
	switch n := len(o.fields); {
	case o.index != nil:
		o.index[name] = n - 1
	case n > manyFields:
		o.index = make(map[string]int, 2*n)
		for i, f := range o.fields {
			o.index[f.name] = i
		}
	}
}

// Names returns the names of the fields, in order.
func (o *Object) Names() []string {
	out := make([]string, len(o.fields))
	for i, f := range o.fields {
		out[i] = f.name
	}
	return out
}

// All yields the names and values of the fields, in order. The object may not be changed meanwhile.
func (o *Object) All() iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for _, f := range o.fields {
			if !yield(f.name, f.value) {
				return
			}
		}
	}
}

// Get returns the value of a field; nil if there is none.
func (o *Object) Get(name string) json.RawMessage {
	if i := o.at(name); i >= 0 {
		return o.fields[i].value
	}
	return nil
}

// Text returns the value of a string field; "" for any other value.
func (o *Object) Text(name string) string { return Text(o.Get(name)) }

// Int returns the value of a field with an integer, 0 if there is none or it is null; false for
// any other value.
func (o *Object) Int(name string) (n int64, ok bool) {
	raw := o.Get(name)
	if IsNull(raw) {
		return 0, true
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}

// Set sets a field; a new one comes last.
func (o *Object) Set(name string, v json.RawMessage) {
	if i := o.at(name); i >= 0 {
		o.fields[i].value = v
		return
	}
	o.add(name, v)
}

// Bytes encodes the object.
func (o *Object) Bytes() json.RawMessage {
	size := len("{}")
	for _, f := range o.fields {
		size += len(`"":,`) + len(f.name) + len(f.value)
	}
	out := append(make([]byte, 0, size), '{')
	for i, f := range o.fields {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, Quote(f.name)...), ':')
		out = append(out, f.value...)
	}
	return append(out, '}')
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
	size := len("[]")
	for _, one := range all {
		size += len(one) + 1
	}
	out := append(make([]byte, 0, size), '[')
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

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"
)

// Object is a JSON object that preserves the order and the bytes of its fields.
type Object struct {
	names  []string
	values map[string]json.RawMessage
}

// ParseObject parses a JSON object. It copies raw.
func ParseObject(raw []byte) (*Object, error) {
	if !json.Valid(raw) {
		return nil, errors.New("not valid JSON")
	}
	rest := skipSpace(bytes.Clone(raw))
	if rest[0] != '{' {
		return nil, errors.New("not a JSON object")
	}
	o := &Object{}
	for rest = skipSpace(rest[1:]); rest[0] != '}'; rest = skipSpace(rest) {
		if rest[0] == ',' {
			rest = skipSpace(rest[1:])
		}
		n := valueLen(rest)
		name := Text(json.RawMessage(rest[:n]))
		rest = skipSpace(skipSpace(rest[n:])[1:]) // after the colon
		n = valueLen(rest)
		o.Set(name, json.RawMessage(rest[:n:n]))
		rest = rest[n:]
	}
	return o, nil
}

func skipSpace(b []byte) []byte { return bytes.TrimLeft(b, " \t\r\n") }

// valueLen returns the length of the value at the start of valid JSON.
func valueLen(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i // the end of a number or a word, and of what is around it
			}
			depth--
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(b)
}

// Names returns the names of the fields, in order.
func (o *Object) Names() []string { return slices.Clone(o.names) }

// Get returns the value of a field; nil if there is none.
func (o *Object) Get(name string) json.RawMessage { return o.values[name] }

// Text returns the value of a string field; "" for any other value.
func (o *Object) Text(name string) string { return Text(o.Get(name)) }

// Set sets a field; a new one comes last.
func (o *Object) Set(name string, v json.RawMessage) {
	if _, ok := o.values[name]; !ok {
		o.names = append(o.names, name)
	}
	if o.values == nil {
		o.values = map[string]json.RawMessage{}
	}
	o.values[name] = v
}

// Drop removes a field.
func (o *Object) Drop(name string) {
	o.names = slices.DeleteFunc(o.names, func(n string) bool { return n == name })
	delete(o.values, name)
}

// Bytes encodes the object.
func (o *Object) Bytes() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range o.names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(Quote(name))
		b.WriteByte(':')
		b.Write(o.values[name])
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
	if !IsString(raw) {
		return ""
	}
	if in := raw[1 : len(raw)-1]; verbatim(in) {
		return string(in)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// verbatim reports whether a JSON string is equal to its text. It must be ASCII, since invalid UTF-8 is
// replaced.
func verbatim(in []byte) bool {
	for _, c := range in {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
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

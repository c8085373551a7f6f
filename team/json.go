package team

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

// JSONField is one key of a JSON object with its value as it stands in the text.
type JSONField struct {
	Key   string
	Value json.RawMessage
}

// JSONObject is a JSON object that keeps the order of its keys, so that what a
// foreign program wrote comes back as it was.
type JSONObject []JSONField

// ParseJSONObject reads one object and nothing after it. Of a key that stands
// twice the last value counts, in the place of the first, as in JavaScript.
func ParseJSONObject(data []byte) (JSONObject, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if tok != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	var obj JSONObject
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, ok := tok.(string)
		if !ok {
			return nil, errors.New("object key is not a string")
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		obj.Set(key, raw)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the JSON object")
	}
	return obj, nil
}

// Index is the place of key, or -1.
func (o JSONObject) Index(key string) int {
	for i := range o {
		if o[i].Key == key {
			return i
		}
	}
	return -1
}

// Set replaces the value of key, or adds it at the end.
func (o *JSONObject) Set(key string, value json.RawMessage) {
	if i := o.Index(key); i >= 0 {
		(*o)[i].Value = value
		return
	}
	*o = append(*o, JSONField{key, value})
}

// AppendJSON appends the object in compact form; values are copied as they are.
func (o JSONObject) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for i, f := range o {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendJSONString(dst, f.Key)
		dst = append(dst, ':')
		dst = append(dst, f.Value...)
	}
	return append(dst, '}')
}

const hexDigits = "0123456789abcdef"

// AppendJSONString appends s as JSON.stringify writes it: control characters,
// quote and backslash are escaped and nothing else. (encoding/json escapes also
// U+2028 and U+2029, which would change files that others wrote.) Invalid UTF-8
// becomes U+FFFD.
func AppendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		i++
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= ' ':
			dst = append(dst, c)
		case c == '\b':
			dst = append(dst, '\\', 'b')
		case c == '\f':
			dst = append(dst, '\\', 'f')
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(dst, '"')
}

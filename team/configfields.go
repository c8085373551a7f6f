package team

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// jsonField ties one key to a field of T. encode returns nil when the key is to
// be absent.
type jsonField[T any] struct {
	key    string
	parts  bool // its parts keep what was written of them, each by itself
	encode func(*T) []byte
	decode func(*T, json.RawMessage) error
}

func decodeFields[T any](v *T, obj JSONObject, fields []jsonField[T]) error {
	for _, f := range fields {
		i := obj.Index(f.key)
		if i < 0 {
			continue
		}
		if err := f.decode(v, obj[i].Value); err != nil {
			return fmt.Errorf("key %q: %w", f.key, err)
		}
	}
	return nil
}

// mergeFields is the object to write: the keys of parsed in their order with v's
// values, and v's other keys behind their neighbours in the table. A value that
// did not change is copied as it was written (a null, an escaped character), so
// that a file goes round byte for byte.
func mergeFields[T any](v *T, parsed JSONObject, fields []jsonField[T]) JSONObject {
	out := make(JSONObject, 0, len(parsed)+len(fields))
	for _, p := range parsed {
		i := slices.IndexFunc(fields, func(f jsonField[T]) bool { return f.key == p.Key })
		if i < 0 {
			out = append(out, p)
			continue
		}
		f := fields[i]
		now := f.encode(v)
		if !f.parts && !bytes.Equal(now, p.Value) {
			var was T
			if err := f.decode(&was, p.Value); err == nil && bytes.Equal(f.encode(&was), now) {
				now = p.Value
			}
		}
		if now != nil {
			out = append(out, JSONField{p.Key, now})
		}
	}
	at := 0 // behind the last key of the table that is in out
	for _, f := range fields {
		if i := out.Index(f.key); i >= 0 {
			at = i + 1
			continue
		}
		if parsed.Index(f.key) >= 0 {
			continue // was there and is gone
		}
		if value := f.encode(v); value != nil {
			out = append(out, JSONField{})
			copy(out[at+1:], out[at:])
			out[at] = JSONField{f.key, value}
			at++
		}
	}
	return out
}

func stringField[T any](key string, always bool, at func(*T) *string) jsonField[T] {
	return jsonField[T]{
		key: key,
		encode: func(v *T) []byte {
			s := *at(v)
			if s == "" && !always {
				return nil
			}
			return AppendJSONString(nil, s)
		},
		decode: func(v *T, raw json.RawMessage) error { return json.Unmarshal(raw, at(v)) },
	}
}

func intField[T any](key string, at func(*T) *int64) jsonField[T] {
	return jsonField[T]{
		key:    key,
		encode: func(v *T) []byte { return strconv.AppendInt(nil, *at(v), 10) },
		decode: func(v *T, raw json.RawMessage) error {
			var n float64 // JavaScript has one kind of number; milliseconds fit exactly
			err := json.Unmarshal(raw, &n)
			*at(v) = int64(n)
			return err
		},
	}
}

func boolField[T any](key string, at func(*T) **bool) jsonField[T] {
	return jsonField[T]{
		key: key,
		encode: func(v *T) []byte {
			b := *at(v)
			if b == nil {
				return nil
			}
			return strconv.AppendBool(nil, *b)
		},
		decode: func(v *T, raw json.RawMessage) error { return json.Unmarshal(raw, at(v)) },
	}
}

func stringsField[T any](key string, always bool, at func(*T) *[]string) jsonField[T] {
	return jsonField[T]{
		key: key,
		encode: func(v *T) []byte {
			list := *at(v)
			if len(list) == 0 && !always {
				return nil
			}
			out := []byte{'['}
			for i, s := range list {
				if i > 0 {
					out = append(out, ',')
				}
				out = AppendJSONString(out, s)
			}
			return append(out, ']')
		},
		decode: func(v *T, raw json.RawMessage) error { return json.Unmarshal(raw, at(v)) },
	}
}

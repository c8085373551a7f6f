package tools

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// inputSchema is the schema of an input.
type inputSchema struct {
	raw      json.RawMessage
	required []string
}

var schemas sync.Map // inputSchema by reflect.Type

func schemaOf[In any]() inputSchema {
	of := reflect.TypeFor[In]()
	if s, ok := schemas.Load(of); ok {
		return s.(inputSchema)
	}
	raw, required := appendSchema(nil, of, "")
	s := inputSchema{raw, required}
	schemas.Store(of, s)
	return s
}

// appendSchema appends the schema of a type, as the library jsonschema makes it, which takes a
// hundred times as long: a fifth of what an agent needs from its start to its first request. It
// panics on types that no input has.
func appendSchema(b []byte, of reflect.Type, description string) (_ []byte, required []string) {
	switch of.Kind() {
	case reflect.String:
		b = append(b, `{"type":"string"`...)
	case reflect.Bool:
		b = append(b, `{"type":"boolean"`...)
	case reflect.Int:
		b = append(b, `{"type":"integer"`...)
	case reflect.Slice:
		b, _ = appendSchema(append(b, `{"type":["null","array"],"items":`...), of.Elem(), "")
	case reflect.Struct:
		b, required = appendProperties(append(b, `{"type":"object"`...), of)
	default:
		panic(fmt.Sprintf("schema of %s", of)) // a type of a tool
	}
	if description != "" {
		b = append(append(b, `,"description":`...), quoted(description)...)
	}
	if len(required) > 0 {
		b = append(append(b, `,"required":`...), quoted(required)...)
	}
	if of.Kind() == reflect.Struct {
		b = append(b, `,"additionalProperties":false`...)
	}
	return append(b, '}'), required
}

func appendProperties(b []byte, of reflect.Type) (_ []byte, required []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, optional := strings.CutSuffix(f.Tag.Get("json"), ",omitempty")
		if !optional {
			required = append(required, name)
		}
		sep := `,`
		if i == 0 {
			sep = `,"properties":{`
		}
		b = append(append(append(b, sep...), quoted(name)...), ':')
		b, _ = appendSchema(b, f.Type, f.Tag.Get("jsonschema"))
	}
	if of.NumField() > 0 {
		b = append(b, '}')
	}
	return b, required
}

func quoted(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings only
	}
	return b
}

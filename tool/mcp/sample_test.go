package mcp

import (
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/teamctl/teamctl/tool/op"
)

func mustSchema(t *testing.T, o op.Op) *jsonschema.Schema {
	t.Helper()
	s, err := o.InputSchema()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sample is a value that fits a schema.
func sample(s *jsonschema.Schema) any {
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	if v, ok := map[string]any{"boolean": true, "integer": 1, "object": map[string]any{}, "array": []any{}}[s.Type]; ok {
		return v
	}
	return "1"
}

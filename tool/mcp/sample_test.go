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
	switch {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type == "boolean":
		return true
	case s.Type == "integer":
		return 1
	case s.Type == "object":
		return map[string]any{}
	case s.Type == "array":
		return []any{}
	}
	return "1"
}

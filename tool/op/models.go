package op

import (
	_ "embed" // modelFile and toolFile
	"encoding/json"
	"fmt"
	"sync"
)

// modelFile is made by scripts/gen: making the schemas takes a fifth of the processor time from the
// start of an agent to its first request.
//
//go:embed models.json
var modelFile []byte

// ModelSchemas returns the input schemas of the operations that the model of a member may call, by
// name: the team is its own.
func ModelSchemas() (map[string]json.RawMessage, error) {
	var schemas map[string]json.RawMessage
	if err := json.Unmarshal(modelFile, &schemas); err != nil {
		return nil, fmt.Errorf("read the schemas of the operations: %w", err)
	}
	return schemas, nil
}

// ModelSchemaFile makes the file that ModelSchemas reads.
func ModelSchemaFile() ([]byte, error) {
	b := []byte("{")
	for _, o := range all() {
		if o.Outside {
			continue
		}
		schema, err := o.InputSchema()
		if err != nil {
			return nil, err
		}
		delete(schema.Properties, "team_name") // only its own team is possible
		raw, err := json.Marshal(schema)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", o.Name, err)
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "\n%q: %s", o.Name, raw)
	}
	return append(b, "\n}\n"...), nil
}

// toolFile is made by scripts/gen: making the schemas takes a third of the processor time from the
// start of an MCP server to its list of tools.
//
//go:embed tools.json
var toolFile []byte

// Schemas are those of one operation.
type Schemas struct {
	Input  json.RawMessage `json:"input"`
	Output json.RawMessage `json:"output"`
}

// ToolSchemas returns the schemas of all operations, by name.
var ToolSchemas = sync.OnceValues(func() (map[string]Schemas, error) {
	var schemas map[string]Schemas
	if err := json.Unmarshal(toolFile, &schemas); err != nil {
		return nil, fmt.Errorf("read the schemas of the operations: %w", err)
	}
	return schemas, nil
})

// ToolSchemaFile makes the file that ToolSchemas reads.
func ToolSchemaFile() ([]byte, error) {
	b := []byte("{")
	for _, o := range all() {
		in, err := o.InputSchema()
		if err != nil {
			return nil, err
		}
		out, err := o.OutputSchema()
		if err != nil {
			return nil, err
		}
		var raw Schemas
		if raw.Input, err = json.Marshal(in); err == nil {
			raw.Output, err = json.Marshal(out)
		}
		if err != nil {
			return nil, fmt.Errorf("schemas of %s: %w", o.Name, err)
		}
		text, err := json.Marshal(raw)
		if err != nil {
			return nil, fmt.Errorf("schemas of %s: %w", o.Name, err)
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "\n%q: %s", o.Name, text)
	}
	return append(b, "\n}\n"...), nil
}

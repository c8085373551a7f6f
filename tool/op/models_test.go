package op_test

import (
	"encoding/json"
	"testing"

	"github.com/teamctl/teamctl/tool/op"
)

// A model can satisfy each schema: what is required is a property. Operations outside a team,
// which models are not offered, have none.
func TestModelSchemas(t *testing.T) {
	t.Parallel()
	schemas, err := op.ModelSchemas()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range op.All() {
		raw, ok := schemas[o.Name]
		if ok == o.Outside {
			t.Errorf("%s: schema %v, outside %v", o.Name, ok, o.Outside)
		}
		if !ok {
			continue
		}
		var s struct {
			Required   []string
			Properties map[string]json.RawMessage
		}
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(o.Name, err)
		}
		for _, name := range s.Required {
			if _, ok := s.Properties[name]; !ok {
				t.Errorf("%s requires %s, which it has not", o.Name, name)
			}
		}
	}
}

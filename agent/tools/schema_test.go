package tools

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// The schemas of inputs are those of the library.
func TestSchemas(t *testing.T) {
	t.Parallel()
	type part struct {
		Text string `json:"text" jsonschema:"a \"quoted\" <word> & more"`
		On   bool   `json:"on,omitempty"`
	}
	schemaOf[struct{}]()
	schemaOf[struct {
		Names []string `json:"names,omitempty" jsonschema:"names"`
		Parts []part   `json:"parts" jsonschema:"parts"`
		One   part     `json:"one" jsonschema:"a part"`
		N     int      `json:"n"`
	}]()
	(&Space{}).Tools()
	n := 0
	schemas.Range(func(of, got any) bool {
		n++
		want, err := jsonschema.ForType(of.(reflect.Type), nil)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		s := got.(inputSchema)
		if string(s.raw) != string(raw) || len(s.required)+len(want.Required) > 0 && !reflect.DeepEqual(s.required, want.Required) {
			t.Errorf("%s:\n%s requires %q, want\n%s requires %q", of, s.raw, s.required, raw, want.Required)
		}
		return true
	})
	if n < 10 {
		t.Errorf("%d types", n)
	}
}

package op

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool/teamfile"
)

// schemaFor returns the schema of a type. Raw JSON may be any value in a result and must be an
// object in an input. Values that the library makes nullable because a Go slice or pointer can be
// nil are not nullable here: a null input counts as missing, and Encode writes no nulls, which
// clients in other languages cannot handle.
func schemaFor(t reflect.Type, input bool) (*jsonschema.Schema, error) {
	raw := &jsonschema.Schema{Description: "Any JSON value."} // {} would be encoded as true
	if input {
		raw = &jsonschema.Schema{Type: "object"}
	}
	types := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): raw,
		reflect.TypeFor[team.TaskStatus](): enum(team.TaskStatuses()),
		reflect.TypeFor[team.Mode]():       enum(modes),
		reflect.TypeFor[MessageType]():     enum(MessageTypes()),
		reflect.TypeFor[team.EdgeType]():   enum(team.EdgeTypes()),
	}
	if input {
		types[reflect.TypeFor[team.Limits]()] = teamfile.LimitsSchema()
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: types})
	if err != nil {
		return nil, err
	}
	tighten(s)
	if input {
		teamfile.ForDoor(s, t, "call")
	} else {
		loosen(s) // results may gain fields
	}
	return s, nil
}

var modes = []team.Mode{team.ModeDefault, team.ModeAcceptEdits, team.ModeBypass, team.ModePlan, team.ModeDelegate, team.ModeDontAsk}

func enum[T ~string](list []T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, v := range list {
		s.Enum = append(s.Enum, string(v))
	}
	return s
}

// tighten removes null from the types of a schema and its descendants.
func tighten(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if i := slices.Index(s.Types, "null"); i >= 0 {
		s.Types = slices.Delete(s.Types, i, i+1)
		if len(s.Types) == 1 {
			s.Type, s.Types = s.Types[0], nil
		}
	}
	tighten(s.Items)
	tighten(s.AdditionalProperties)
	for _, p := range s.Properties {
		tighten(p)
	}
}

// loosen permits further properties in the objects of a result.
func loosen(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Properties != nil {
		s.AdditionalProperties = nil
	}
	loosen(s.Items)
	loosen(s.AdditionalProperties)
	for _, p := range s.Properties {
		loosen(p)
	}
}

// checkInput validates the input and returns it without nulls.
func (o Op) checkInput(raw json.RawMessage) (json.RawMessage, error) {
	if len(strings.TrimSpace(string(raw))) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	var in map[string]any
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, team.Errorf(team.CodeInvalid, "the input of %s is not a JSON object: %w", o.Name, err).WithReason(team.ReasonInput)
	}
	maps.DeleteFunc(in, func(_ string, v any) bool { return v == nil })
	schema, err := o.InputSchema()
	if err != nil {
		return nil, err
	}
	for other, name := range o.Also {
		v, ok := in[other]
		if !ok {
			continue
		}
		if _, twice := in[name]; twice {
			return nil, team.Errorf(team.CodeInvalid, "%s and %s are the same parameter", other, name).WithReason(team.ReasonInput)
		}
		delete(in, other)
		in[name] = v
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if _, ok := schema.Properties[name]; !ok {
			return nil, team.Errorf(team.CodeInvalid, "%s has no parameter %q", o.Name, name).WithReason(team.ReasonInput).WithHint(o.parameters(schema))
		}
	}
	for _, name := range schema.Required {
		if _, ok := in[name]; !ok {
			return nil, team.Errorf(team.CodeInvalid, "%s is required", name).WithReason(team.ReasonInput).WithHint(o.parameters(schema))
		}
	}
	for _, name := range ids {
		if v, ok := in[name]; ok {
			in[name] = idText(v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in)) { // one at a time, so that the error names it
		r, err := schema.Properties[name].Resolve(nil)
		if err == nil {
			err = r.Validate(in[name])
		}
		if err != nil {
			return nil, team.Errorf(team.CodeInvalid, "%s: %s", name, plain(err)).WithReason(team.ReasonInput)
		}
	}
	for _, f := range team.DoorFields(o.in, "call") {
		if v, ok := in[f.Name]; ok && f.Name != f.JSON {
			delete(in, f.Name)
			in[f.JSON] = v
		}
	}
	out, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode the input of %s: %w", o.Name, err)
	}
	return out, nil
}

// ids are the parameters with ids. Models and clients sometimes send an id that consists of digits
// as a number, which is accepted.
var ids = []string{"task_id", "task_ids", "dependsOn", "addDependsOn", "removeDependsOn", "addBlocks", "addBlockedBy", "request_id", "message_id", "id"}

func idText(v any) any {
	switch v := v.(type) {
	case float64:
		if v == float64(int64(v)) {
			return strconv.FormatInt(int64(v), 10)
		}
	case []any:
		for i := range v {
			v[i] = idText(v[i])
		}
	}
	return v
}

// plain returns the text of a validation error without the path, which the caller adds.
func plain(err error) string {
	text := err.Error()
	for strings.HasPrefix(text, "validating ") {
		_, rest, ok := strings.Cut(text, ": ")
		if !ok {
			break
		}
		text = rest
	}
	return text
}

func (o Op) parameters(s *jsonschema.Schema) string {
	if len(s.Properties) == 0 {
		return o.Name + " takes no parameters"
	}
	names := make([]string, 0, len(s.Properties))
	for _, n := range s.PropertyOrder {
		if slices.Contains(s.Required, n) {
			n += " (required)"
		}
		names = append(names, n)
	}
	return "its parameters are " + strings.Join(names, ", ")
}

// Encode encodes a result as JSON that matches the output schema: a nil list becomes an empty one,
// and other nulls are omitted.
func (o Op) Encode(out any) (json.RawMessage, error) {
	b, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode the result of %s: %w", o.Name, err)
	}
	if !bytes.Contains(b, []byte("null")) {
		return b, nil
	}
	schema, err := o.OutputSchema()
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("read the result of %s: %w", o.Name, err)
	}
	if b, err = json.Marshal(fill(schema, v)); err != nil {
		return nil, fmt.Errorf("encode the result of %s: %w", o.Name, err)
	}
	return b, nil
}

// fill replaces null by an empty list where the schema has a list.
func fill(s *jsonschema.Schema, v any) any {
	if s == nil {
		return v
	}
	switch v := v.(type) {
	case nil:
		if s.Type == "array" {
			return []any{}
		}
	case []any:
		for i := range v {
			v[i] = fill(s.Items, v[i])
		}
	case map[string]any:
		for name, val := range v {
			p := s.Properties[name]
			if p == nil {
				continue // of a free-form object: unchanged
			}
			if v[name] = fill(p, val); v[name] == nil && p.Type != "" && !slices.Contains(s.Required, name) {
				delete(v, name)
			}
		}
	}
	return v
}

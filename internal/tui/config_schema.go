package tui

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// ConfigSchema returns the JSON schema of ui.yaml, indented, with a final newline.
func ConfigSchema() ([]byte, error) {
	s := &jsonschema.Schema{
		Schema: "https://json-schema.org/draft/2020-12/schema", ID: "https://github.com/teamctl/teamctl/docs/ui.schema.json",
		Title: ConfigName, Description: "What a person has chosen for the screens of teamctl.", Type: "object",
		Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	add := func(in *jsonschema.Schema, name string, p *jsonschema.Schema, fallback any) error {
		if fallback != nil {
			text, err := json.Marshal(fallback)
			if err != nil {
				return fmt.Errorf("default of %s: %w", name, err)
			}
			p.Default = text
		}
		in.Properties[name] = p
		in.PropertyOrder = append(in.PropertyOrder, name)
		return nil
	}
	for _, x := range settings() {
		if err := add(s, x.key, &jsonschema.Schema{Enum: []any{true, false, "on", "off"}, Description: x.about}, x.fallback); err != nil {
			return nil, err
		}
	}
	word := &jsonschema.Schema{Type: "string"}
	pager := &jsonschema.Schema{
		Description: "the program that the changes of a file are piped through, or a list of it and its arguments, such as [delta, --side-by-side]",
		AnyOf:       []*jsonschema.Schema{{Type: "string", Pattern: `^\S+$`}, {Type: "array", Items: word}},
	}
	if err := add(s, pagerKey, pager, nil); err != nil {
		return nil, err
	}
	keys := &jsonschema.Schema{
		Type: "object", Description: "the keys of commands and actions; an empty list is no key, and what is not named keeps its keys",
		Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for _, b := range bindings() {
		if b.action != nil && b.action.Confirm {
			continue
		}
		one := []*jsonschema.Schema{
			{Type: "string", Pattern: "^(.|ctrl-[abd-gj-ln-z]|" + strings.Join(named, "|") + ")$"},
			{Type: "integer", Minimum: jsonschema.Ptr(0.0), Maximum: jsonschema.Ptr(9.0)}, // without quotes a digit is a number
		}
		p := &jsonschema.Schema{Description: b.title, AnyOf: append(one, &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{AnyOf: one[:2:2]}})}
		if err := add(keys, b.id, p, append([]string{}, b.keys...)); err != nil {
			return nil, err
		}
	}
	if err := add(s, "keys", keys, nil); err != nil {
		return nil, err
	}
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return append(out, '\n'), nil
}
